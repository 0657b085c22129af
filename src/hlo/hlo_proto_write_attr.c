/* Attributes of instructions from the graph to protobuf, by the rows of the
 * attribute table. */
#include "hlo_attr.h"

static pb_ints ints(sd_arena *a, const int64_t *at, int n)
{
    hlo_dims d = hlo_dims_copy(a, at, n);

    return pb_of_dims(d);
}

/* Where the row's field is in an instruction's message, or in a message in
 * that, which is made when it is not there. */
static void *field_of(sd_arena *a, const hlo_attr_row *r, pb_inst *p)
{
    char *bytes = (char *)p;
    void *at, **m;

    if (!r->msg)
        return bytes + r->pb;
    m = at = bytes + r->msg->at;
    if (!*m)
        *m = sd_arena_alloc(a, r->msg->bytes);
    return (char *)*m + r->pb;
}

/* ---- any op's ---- */

static void write_dims(sd_arena *a, const hlo_attr_row *r, const hlo_inst *in,
                       pb_inst *p)
{
    const hlo_dims *d = hlo_attr_field(r, in);

    *(pb_ints *)field_of(a, r, p) = pb_of_dims(*d);
}

static void write_int(sd_arena *a, const hlo_attr_row *r, const hlo_inst *in,
                      pb_inst *p)
{
    *(int64_t *)field_of(a, r, p) = *(const int64_t *)hlo_attr_field(r, in);
}

static void write_bits(sd_arena *a, const hlo_attr_row *r, const hlo_inst *in,
                       pb_inst *p)
{
    *(int64_t *)field_of(a, r, p) = *(const int *)hlo_attr_field(r, in);
}

static void write_flag(sd_arena *a, const hlo_attr_row *r, const hlo_inst *in,
                       pb_inst *p)
{
    *(int64_t *)field_of(a, r, p) = *(const bool *)hlo_attr_field(r, in);
}

static void write_choice(sd_arena *a, const hlo_attr_row *r, const hlo_inst *in,
                         pb_inst *p)
{
    int v = *(const int *)hlo_attr_field(r, in);
    void *to = field_of(a, r, p);

    if (r->flags & HLO_A_NAMED)
        *(sd_bytes *)to = pb_str(r->names[v]);
    else
        *(int64_t *)to = v;
}

static void write_real(sd_arena *a, const hlo_attr_row *r, const hlo_inst *in,
                       pb_inst *p)
{
    *(float *)field_of(a, r, p) = (float)*(const double *)hlo_attr_field(r, in);
}

/* ---- those of one op or two ---- */

static void write_compare(sd_arena *a, const hlo_attr_row *r,
                          const hlo_inst *in, pb_inst *p)
{
    *(sd_bytes *)field_of(a, r, p) =
        pb_str(hlo_cmp_type_name[in->u.compare.type]);
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

static void write_window(sd_arena *a, const hlo_attr_row *r, const hlo_inst *in,
                         pb_inst *p)
{
    (void)r;
    if (in->op == HLO_CONVOLUTION)
        p->window = window_to_pb(a, in->u.conv->win, in->u.conv->nspatial);
    else
        p->window = window_to_pb(a, in->u.window.dim, in->u.window.n);
}

/* XLA has another one by the number of ours; of digits that are gone already
 * nobody loses any. */
static hlo_prec known_precision(hlo_prec p)
{
    return p == HLO_PREC_TF32 ? HLO_PREC_DEFAULT : p;
}

static void write_precision(sd_arena *a, const hlo_attr_row *r,
                            const hlo_inst *in, pb_inst *p)
{
    const hlo_prec *prec = hlo_attr_field(r, in);

    p->precision = sd_arena_new(a, pb_precision);
    p->precision->operand = ints(
        a, (int64_t[]){known_precision(prec[0]), known_precision(prec[1])}, 2);
}

/* Its number stands beside the precision. */
static void write_algorithm(sd_arena *a, const hlo_attr_row *r,
                            const hlo_inst *in, pb_inst *p)
{
    const char *name = in->u.dot->algorithm;

    (void)a;
    (void)r;
    if (name)
        p->precision->algorithm =
            (int)(hlo_algorithm_of(name) - hlo_algorithm_table);
}

static void write_slice(sd_arena *a, const hlo_attr_row *r, const hlo_inst *in,
                        pb_inst *p)
{
    int n = in->shape->rank;

    (void)r;
    p->slice.at = sd_arena_array(a, pb_slice, n + 1);
    p->slice.n = n;
    for (int i = 0; i < n; i++)
        p->slice.at[i] = (pb_slice){in->u.slice.start[i], in->u.slice.limit[i],
                                    in->u.slice.stride[i]};
}

static void write_pad(sd_arena *a, const hlo_attr_row *r, const hlo_inst *in,
                      pb_inst *p)
{
    int n = in->shape->rank;

    (void)r;
    p->pad = sd_arena_new(a, pb_pad);
    p->pad->dim.at = sd_arena_array(a, pb_pad_dim, n + 1);
    p->pad->dim.n = n;
    for (int i = 0; i < n; i++)
        p->pad->dim.at[i] = (pb_pad_dim){in->u.pad.low[i], in->u.pad.high[i],
                                         in->u.pad.interior[i]};
}

static void write_topk(sd_arena *a, const hlo_attr_row *r, const hlo_inst *in,
                       pb_inst *p)
{
    (void)a;
    (void)r;
    p->k = in->dims.at[0];
    p->largest = 1;
}

static void write_custom(sd_arena *a, const hlo_attr_row *r, const hlo_inst *in,
                         pb_inst *p)
{
    const hlo_custom *c = in->u.custom;

    (void)r;
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

static void write_collective(sd_arena *a, const hlo_attr_row *r,
                             const hlo_inst *in, pb_inst *p)
{
    const hlo_collective *c = in->u.coll;
    pb_device_list *l;

    (void)r;
    if (in->op == HLO_OUTFEED) {
        p->outfeed_shape = sd_arena_new(a, pb_shape);
        hlo_shape_to_pb(a, in->arg[0]->shape, p->outfeed_shape);
        return;
    }
    p->dims = pb_of_dims(in->dims);
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

static void (*const write_kind[HLO_A_KIND_COUNT])(sd_arena *a,
                                                  const hlo_attr_row *r,
                                                  const hlo_inst *in,
                                                  pb_inst *p) = {
    [HLO_A_DIMS] = write_dims,
    [HLO_A_DIM] = write_dims,
    [HLO_A_INT] = write_int,
    [HLO_A_BITS] = write_bits,
    [HLO_A_FLAG] = write_flag,
    [HLO_A_CHOICE] = write_choice,
    [HLO_A_REAL] = write_real,
    [HLO_A_COMPARE] = write_compare,
    [HLO_A_SLICE] = write_slice,
    [HLO_A_PAD] = write_pad,
    [HLO_A_WINDOW] = write_window,
    [HLO_A_PRECISION] = write_precision,
    [HLO_A_ALGORITHM] = write_algorithm,
    [HLO_A_TOPK] = write_topk,
    [HLO_A_CUSTOM] = write_custom,
    [HLO_A_COLLECTIVE] = write_collective,
};

void hlo_attrs_to_pb(sd_arena *a, const hlo_inst *in, pb_inst *p)
{
    hlo_for_each_attr(r, in->op)
        if (write_kind[r->kind])
            write_kind[r->kind](a, r, in, p);
}
