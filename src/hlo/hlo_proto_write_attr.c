/* Attributes of instructions from the graph to protobuf. */
#include "hlo_proto.h"

static pb_ints ints(sd_arena *a, const int64_t *at, int n)
{
    hlo_dims d = hlo_dims_copy(a, at, n);

    return pb_of_dims(d);
}

static pb_window *window_to_pb(sd_arena *a, const hlo_window_dim *w, int n)
{
    pb_window *p = sd_arena_new(a, pb_window);

    p->dim.at = sd_arena_array(a, pb_window_dim, n + 1);
    p->dim.n = n;
    for (int i = 0; i < n; i++)
        p->dim.at[i] = (pb_window_dim){.size = w[i].size,
                                       .stride = w[i].stride,
                                       .pad_low = w[i].pad_low,
                                       .pad_high = w[i].pad_high,
                                       .window_dilation = w[i].window_dilation,
                                       .base_dilation = w[i].base_dilation,
                                       .reversal = w[i].reversal};
    return p;
}

static void precision_to_pb(sd_arena *a, const hlo_prec *prec,
                            const char *algorithm, pb_inst *p)
{
    p->precision = sd_arena_new(a, pb_precision);
    p->precision->operand = ints(a, (int64_t[]){prec[0], prec[1]}, 2);
    if (algorithm)
        p->precision->algorithm =
            (int)(hlo_algorithm_of(algorithm) - hlo_algorithm_table);
}

static void dot_to_pb(sd_arena *a, const hlo_dot *d, pb_inst *p)
{
    p->dot = sd_arena_new(a, pb_dot);
    *p->dot = (pb_dot){.lhs_contract = pb_of_dims(d->lhs_contract),
                       .rhs_contract = pb_of_dims(d->rhs_contract),
                       .lhs_batch = pb_of_dims(d->lhs_batch),
                       .rhs_batch = pb_of_dims(d->rhs_batch)};
    precision_to_pb(a, d->prec, d->algorithm, p);
}

static void conv_to_pb(sd_arena *a, const hlo_conv *c, pb_inst *p)
{
    p->conv = sd_arena_new(a, pb_conv);
    *p->conv = (pb_conv){.k_in = c->k_in,
                         .k_out = c->k_out,
                         .k_spatial = pb_of_dims(c->k_spatial),
                         .in_batch = c->in_batch,
                         .in_feature = c->in_feature,
                         .in_spatial = pb_of_dims(c->in_spatial),
                         .out_batch = c->out_batch,
                         .out_feature = c->out_feature,
                         .out_spatial = pb_of_dims(c->out_spatial)};
    p->window = window_to_pb(a, c->win, c->nspatial);
    p->feature_groups = c->feature_groups;
    p->batch_groups = c->batch_groups;
    precision_to_pb(a, c->prec, NULL, p);
}

static void gather_to_pb(sd_arena *a, const hlo_inst *in, pb_inst *p)
{
    const hlo_gather *g = in->u.gather;
    pb_gather *to = sd_arena_new(a, pb_gather);

    *to = (pb_gather){.offset_dims = pb_of_dims(g->offset_dims),
                      .collapsed = pb_of_dims(g->collapsed),
                      .index_map = pb_of_dims(g->index_map),
                      .index_vector_dim = g->index_vector_dim,
                      .operand_batch = pb_of_dims(g->operand_batch),
                      .indices_batch = pb_of_dims(g->indices_batch)};
    if (in->op == HLO_SCATTER)
        p->scatter = to;
    else
        p->gather = to;
    p->gather_slice_sizes = pb_of_dims(g->slice_sizes);
    p->sorted = g->sorted;
    p->unique = g->unique;
}

static void slice_to_pb(sd_arena *a, const hlo_inst *in, pb_inst *p)
{
    int n = in->shape->rank;

    p->slice.at = sd_arena_array(a, pb_slice, n + 1);
    p->slice.n = n;
    for (int i = 0; i < n; i++)
        p->slice.at[i] = (pb_slice){in->u.slice.start[i], in->u.slice.limit[i],
                                    in->u.slice.stride[i]};
}

static void pad_to_pb(sd_arena *a, const hlo_inst *in, pb_inst *p)
{
    int n = in->shape->rank;

    p->pad = sd_arena_new(a, pb_pad);
    p->pad->dim.at = sd_arena_array(a, pb_pad_dim, n + 1);
    p->pad->dim.n = n;
    for (int i = 0; i < n; i++)
        p->pad->dim.at[i] = (pb_pad_dim){in->u.pad.low[i], in->u.pad.high[i],
                                         in->u.pad.interior[i]};
}

static void custom_to_pb(sd_arena *a, const hlo_inst *in, pb_inst *p)
{
    const hlo_custom *c = in->u.custom;

    p->dims = (pb_ints){0}; /* a library call's numbers, of no meaning to XLA */
    p->target = pb_str(c->target);
    p->config = (sd_bytes){(const uint8_t *)c->config, c->config_len};
    p->has_side_effect = c->has_side_effect;
    /* XLA prints "unspecified", and does not read it: the first is meant */
    p->api_version = c->api_version ? c->api_version : 1;
    p->alias.at = sd_arena_array(a, pb_custom_alias, c->nalias + 1);
    p->alias.n = c->nalias;
    for (int i = 0; i < c->nalias; i++)
        p->alias.at[i] = (pb_custom_alias){
            pb_of_dims(c->alias[i].out_index), c->alias[i].operand,
            pb_of_dims(c->alias[i].operand_index)};
    if (!hlo_custom_is_laid_out(c))
        return;
    p->constrain_layout = 1;
    hlo_shape_to_pb(a, hlo_custom_result(a, in), p->shape);
    p->operand_shapes.at = sd_arena_array(a, pb_shape, in->narg + 1);
    p->operand_shapes.n = in->narg;
    for (int i = 0; i < in->narg; i++) {
        sd_shape s = hlo_custom_operand(in, i);

        hlo_shape_to_pb(a, &s, &p->operand_shapes.at[i]);
    }
}

static void collective_to_pb(sd_arena *a, const hlo_inst *in, pb_inst *p)
{
    const hlo_collective *c = in->u.coll;
    pb_device_list *l;

    if (!c)
        return;
    p->channel_id = c->channel;
    p->is_host_transfer = c->host_transfer;
    p->use_global_ids = c->use_global_ids;
    if (in->op == HLO_COLLECTIVE_PERMUTE) {
        p->pairs.at = sd_arena_array(a, pb_pair, c->ngroup + 1);
        p->pairs.n = (int)c->ngroup;
        for (int64_t i = 0; i < c->ngroup; i++)
            p->pairs.at[i] = (pb_pair){c->groups[2 * i], c->groups[2 * i + 1]};
        return;
    }
    if (hlo_info(in)->cls != HLO_C_COLLECTIVE || !in->narg)
        return;
    l = p->device_list = sd_arena_new(a, pb_device_list);
    l->groups.at = sd_arena_array(a, pb_group, c->ngroup + 1);
    l->groups.n = (int)c->ngroup;
    for (int64_t i = 0; i < c->ngroup; i++)
        l->groups.at[i].ids =
            ints(a, c->groups + i * c->group_size, hlo_group_members(c, i));
    if (in->op == HLO_ALL_GATHER || in->op == HLO_REDUCE_SCATTER ||
        in->op == HLO_ALL_TO_ALL)
        p->dims = ints(a, in->dims.n ? in->dims.at : &c->dim, 1);
}

void hlo_attrs_to_pb(sd_arena *a, const hlo_inst *in, pb_inst *p)
{
    p->dims = pb_of_dims(in->dims);
    switch (in->op) {
    case HLO_COMPARE:
        p->compare_dir = pb_str(hlo_cmp_dir_name[in->u.compare.dir]);
        p->compare_type = pb_str(hlo_cmp_type_name[in->u.compare.type]);
        break;
    case HLO_REDUCE_PRECISION:
        p->exponent_bits = in->u.precision.exponent;
        p->mantissa_bits = in->u.precision.mantissa;
        break;
    case HLO_PARAMETER:
        p->parameter_number = in->u.param.index;
        break;
    case HLO_GET_TUPLE_ELEMENT:
        p->tuple_index = in->u.tuple.index;
        break;
    case HLO_SLICE:
        slice_to_pb(a, in, p);
        break;
    case HLO_PAD:
        pad_to_pb(a, in, p);
        break;
    case HLO_DYNAMIC_SLICE:
        p->dims = (pb_ints){0};
        p->slice_sizes = pb_of_dims(in->dims);
        break;
    case HLO_GATHER:
    case HLO_SCATTER:
        gather_to_pb(a, in, p);
        break;
    case HLO_REDUCE_WINDOW:
    case HLO_SELECT_AND_SCATTER:
        p->window = window_to_pb(a, in->u.window.dim, in->u.window.n);
        break;
    case HLO_SORT:
        p->is_stable = in->u.sort.stable;
        break;
    case HLO_TOPK:
        p->dims = (pb_ints){0};
        p->k = in->dims.at[0];
        p->largest = 1;
        break;
    case HLO_DOT:
        dot_to_pb(a, in->u.dot, p);
        break;
    case HLO_CONVOLUTION:
        conv_to_pb(a, in->u.conv, p);
        break;
    case HLO_RNG:
        p->distribution = in->u.rng.distribution;
        break;
    case HLO_RNG_BIT_GENERATOR:
        p->rng_algorithm = in->u.rng.algo;
        break;
    case HLO_FFT:
        p->fft_type = in->u.fft.type;
        p->fft_length = ints(a, in->u.fft.length, in->u.fft.n);
        break;
    case HLO_CHOLESKY:
        p->cholesky = sd_arena_new(a, pb_cholesky);
        p->cholesky->lower = in->u.linalg.lower;
        break;
    case HLO_TRIANGULAR_SOLVE:
        p->triangular = sd_arena_new(a, pb_triangular);
        *p->triangular = (pb_triangular){in->u.linalg.left, in->u.linalg.lower,
                                         in->u.linalg.unit, in->u.linalg.trans};
        break;
    case HLO_BATCH_NORM_TRAINING:
    case HLO_BATCH_NORM_INFERENCE:
    case HLO_BATCH_NORM_GRAD:
        p->epsilon = (float)in->u.norm.epsilon;
        p->feature_index = in->u.norm.feature;
        break;
    case HLO_FUSION:
        p->fusion_kind = pb_str(hlo_fusion_name[in->u.fusion.kind]);
        break;
    case HLO_CUSTOM_CALL:
        custom_to_pb(a, in, p);
        break;
    case HLO_OUTFEED:
        p->outfeed_shape = sd_arena_new(a, pb_shape);
        hlo_shape_to_pb(a, in->arg[0]->shape, p->outfeed_shape);
        break;
    default:
        if (hlo_info(in)->cls == HLO_C_COLLECTIVE ||
            hlo_info(in)->cls == HLO_C_TOKENS)
            collective_to_pb(a, in, p);
    }
}
