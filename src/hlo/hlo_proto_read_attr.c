/* Attributes of instructions from protobuf to the graph.  Numbers are held
 * against the arrays that they index here or by inference, which follows. */
#include "hlo_proto.h"

typedef struct {
    hlo_module *m;
    sd_arena *a;
    const pb_inst *p;
    hlo_inst *in;
} ctx;

static hlo_dims dims(ctx *c, pb_ints v)
{
    return hlo_dims_copy(c->a, v.at, v.n);
}

static sd_status lacks(const char *what)
{
    return sd_error(SD_INVALID, "it has no %s", what);
}

/* A text that is one of a list; empty: the value for unset. */
static sd_status pick(ctx *c, sd_bytes s, const char *const *name,
                      const char *what, int unset, int *out)
{
    for (int i = 0; s.len && name[i]; i++)
        if (strlen(name[i]) == s.len && memcmp(name[i], s.at, s.len) == 0) {
            *out = i;
            return NULL;
        }
    *out = unset;
    if (!s.len && unset >= 0)
        return NULL;
    return sd_error(SD_INVALID, "%s \"%s\" is none of XLA's", what,
                    pb_shown(c->a, s));
}

static sd_status in_range(int64_t v, int64_t n, const char *what, int *out)
{
    if (v < 0 || v >= n)
        return sd_error(SD_INVALID, "%s %" PRId64 " is none of XLA's", what, v);
    *out = (int)v;
    return NULL;
}

static sd_status read_compare(ctx *c)
{
    hlo_inst *in = c->in;
    sd_dtype t = in->narg ? in->arg[0]->shape->dtype : SD_F32;
    int dir = 0, type = 0;
    sd_status st;

    if ((st = pick(c, c->p->compare_dir, hlo_cmp_dir_name, "direction", -1,
                   &dir)) ||
        (st = pick(c, c->p->compare_type, hlo_cmp_type_name, "comparison type",
                   (int)hlo_usual_compare(t), &type)))
        return st;
    in->u.compare.dir = (hlo_cmp_dir)dir;
    in->u.compare.type = (hlo_cmp_type)type;
    return NULL;
}

static sd_status read_slice(ctx *c)
{
    int n = c->p->slice.n;
    hlo_inst *in = c->in;

    if (in->narg < 1 || n != in->arg[0]->shape->rank)
        return sd_error(SD_INVALID, "%d slice dimensions for its operand", n);
    in->u.slice.start = sd_arena_array(c->a, int64_t, n + 1);
    in->u.slice.limit = sd_arena_array(c->a, int64_t, n + 1);
    in->u.slice.stride = sd_arena_array(c->a, int64_t, n + 1);
    for (int i = 0; i < n; i++) {
        in->u.slice.start[i] = c->p->slice.at[i].start;
        in->u.slice.limit[i] = c->p->slice.at[i].limit;
        in->u.slice.stride[i] = c->p->slice.at[i].stride;
    }
    return NULL;
}

static sd_status read_pad(ctx *c)
{
    int n = c->p->pad ? c->p->pad->dim.n : 0;
    hlo_inst *in = c->in;

    if (in->narg < 1 || n != in->arg[0]->shape->rank)
        return sd_error(SD_INVALID, "%d padded dimensions for its operand", n);
    in->u.pad.low = sd_arena_array(c->a, int64_t, n + 1);
    in->u.pad.high = sd_arena_array(c->a, int64_t, n + 1);
    in->u.pad.interior = sd_arena_array(c->a, int64_t, n + 1);
    for (int i = 0; i < n; i++) {
        in->u.pad.low[i] = c->p->pad->dim.at[i].low;
        in->u.pad.high[i] = c->p->pad->dim.at[i].high;
        in->u.pad.interior[i] = c->p->pad->dim.at[i].interior;
    }
    return NULL;
}

static hlo_window_dim *read_window(ctx *c, int *nout)
{
    const pb_window *w = c->p->window;
    int n = w ? w->dim.n : 0;
    hlo_window_dim *to = sd_arena_array(c->a, hlo_window_dim, n + 1);

    for (int i = 0; i < n; i++) {
        const pb_window_dim *d = &w->dim.at[i];

        to[i] = (hlo_window_dim){
            d->size,          d->stride,          d->pad_low,      d->pad_high,
            d->base_dilation, d->window_dilation, d->reversal != 0};
    }
    *nout = n;
    return to;
}

static sd_status read_precision(ctx *c, hlo_prec *prec, const char **algorithm)
{
    const pb_precision *p = c->p->precision;
    sd_status st = NULL;
    int v = 0;

    for (int i = 0; p && !st && i < SD_MIN(p->operand.n, 2); i++) {
        st = in_range(p->operand.at[i], 3, "precision", &v);
        prec[i] = (hlo_prec)v;
    }
    if (!st && p && p->algorithm && algorithm &&
        !(st =
              in_range(p->algorithm, HLO_ALGORITHM_COUNT, "dot algorithm", &v)))
        *algorithm = hlo_algorithm_table[v].name;
    return st;
}

static sd_status read_dot(ctx *c)
{
    const pb_dot *p = c->p->dot;
    hlo_dot *d = sd_arena_new(c->a, hlo_dot);

    if (!p)
        return lacks("dot_dimension_numbers");
    d->lhs_contract = dims(c, p->lhs_contract);
    d->rhs_contract = dims(c, p->rhs_contract);
    d->lhs_batch = dims(c, p->lhs_batch);
    d->rhs_batch = dims(c, p->rhs_batch);
    c->in->u.dot = d;
    return read_precision(c, d->prec, &d->algorithm);
}

static sd_status read_conv(ctx *c)
{
    const pb_conv *p = c->p->conv;
    hlo_conv *d = sd_arena_new(c->a, hlo_conv);
    int nwin;

    if (!p)
        return lacks("convolution_dimension_numbers");
    d->k_in = p->k_in;
    d->k_out = p->k_out;
    d->k_spatial = dims(c, p->k_spatial);
    d->in_batch = p->in_batch;
    d->in_feature = p->in_feature;
    d->in_spatial = dims(c, p->in_spatial);
    d->out_batch = p->out_batch;
    d->out_feature = p->out_feature;
    d->out_spatial = dims(c, p->out_spatial);
    d->nspatial = d->in_spatial.n;
    /* unset means one */
    d->feature_groups = c->p->feature_groups ? c->p->feature_groups : 1;
    d->batch_groups = c->p->batch_groups ? c->p->batch_groups : 1;
    d->win = read_window(c, &nwin);
    if (nwin != d->nspatial)
        return sd_error(SD_INVALID,
                        "a window of %d dimensions for %d spatial ones", nwin,
                        d->nspatial);
    c->in->u.conv = d;
    return read_precision(c, d->prec, NULL);
}

static sd_status read_gather(ctx *c)
{
    bool scatter = c->in->op == HLO_SCATTER;
    const pb_gather *p = scatter ? c->p->scatter : c->p->gather;
    hlo_gather *g = sd_arena_new(c->a, hlo_gather);

    if (!p)
        return lacks(scatter ? "scatter_dimension_numbers"
                             : "gather_dimension_numbers");
    g->offset_dims = dims(c, p->offset_dims);
    g->collapsed = dims(c, p->collapsed);
    g->index_map = dims(c, p->index_map);
    g->index_vector_dim = p->index_vector_dim;
    g->operand_batch = dims(c, p->operand_batch);
    g->indices_batch = dims(c, p->indices_batch);
    g->slice_sizes = dims(c, c->p->gather_slice_sizes);
    g->sorted = c->p->sorted != 0;
    g->unique = c->p->unique != 0;
    c->in->u.gather = g;
    return NULL;
}

static sd_status read_triangular(ctx *c)
{
    const pb_triangular *p = c->p->triangular;
    int trans = 0;
    sd_status st;

    if (!p)
        return lacks("triangular_solve_options");
    if ((st = in_range(p->trans, 4, "transpose", &trans)))
        return st;
    c->in->u.linalg.left = p->left != 0;
    c->in->u.linalg.lower = p->lower != 0;
    c->in->u.linalg.unit = p->unit != 0;
    c->in->u.linalg.trans =
        trans ? (hlo_transpose_kind)trans : HLO_TRANSPOSE_NONE;
    return NULL;
}

/* ---- custom calls ---- */

static sd_status read_operand_layouts(ctx *c, hlo_custom *u)
{
    const sd_shape *s;
    sd_status st;

    if (c->p->operand_shapes.n != c->in->narg)
        return sd_error(SD_INVALID, "layouts of %d operands for %d",
                        c->p->operand_shapes.n, c->in->narg);
    u->operand_layout = sd_arena_array(c->a, hlo_dims, c->in->narg + 1);
    for (int i = 0; i < c->in->narg; i++) {
        if ((st = hlo_shape_of_pb(c->a, &c->p->operand_shapes.at[i], &s)))
            return sd_note(st, "layout of operand %d", i);
        if (s->layout && s->rank == c->in->arg[i]->shape->rank)
            u->operand_layout[i] = (hlo_dims){s->layout, s->rank};
    }
    hlo_custom_take_layouts(c->a, c->in, u);
    return NULL;
}

static sd_status read_custom(ctx *c)
{
    const pb_inst *p = c->p;
    hlo_custom *u = sd_arena_new(c->a, hlo_custom);
    sd_status st;

    if (!p->target.len)
        return lacks("custom_call_target");
    u->target = pb_text(c->a, p->target);
    u->config = sd_arena_str(c->a, (const char *)p->config.at, p->config.len);
    u->config_len = p->config.len;
    u->has_side_effect = p->has_side_effect != 0;
    if ((st = in_range(p->api_version ? p->api_version : 1, 5,
                       "custom call API version", &u->api_version)))
        return st;
    u->nalias = p->alias.n;
    u->alias = sd_arena_alloc(c->a, sizeof *u->alias * (size_t)(u->nalias + 1));
    for (int i = 0; i < u->nalias; i++) {
        const pb_custom_alias *e = &p->alias.at[i];

        u->alias[i].out_index = dims(c, e->out_index);
        u->alias[i].operand = e->operand;
        u->alias[i].operand_index = dims(c, e->operand_index);
    }
    c->in->u.custom = u;
    if (hlo_is_guise(u) && !hlo_unmask(c->in))
        return sd_error(SD_INVALID, "%s with backend_config %s", u->target,
                        u->config);
    return p->constrain_layout ? read_operand_layouts(c, u) : NULL;
}

/* ---- collectives ---- */

static sd_status read_groups(ctx *c, const pb_group *g, int n,
                             hlo_collective *to)
{
    hlo_dims *d = sd_arena_array(c->a, hlo_dims, n + 1);
    int64_t most = 0;

    for (int i = 0; i < n; i++) {
        d[i] = pb_dims(g[i].ids);
        most = SD_MAX(most, d[i].n);
    }
    if (most * n > 1 << 20) /* filling up must not cost more than reading */
        return sd_error(SD_INVALID, "%d replica groups of up to %" PRId64, n,
                        most);
    hlo_set_groups(c->a, d, n, to);
    return NULL;
}

static sd_status read_iota_groups(ctx *c, const pb_iota_groups *g,
                                  hlo_collective *to)
{
    to->ngroup = g->ngroup;
    to->group_size = g->group_size;
    to->groups = hlo_iota_groups(c->a, g->ngroup, g->group_size,
                                 pb_dims(g->dims), pb_dims(g->perm));
    if (!to->groups)
        return sd_error(SD_INVALID,
                        "%" PRId64 " replica groups of %" PRId64
                        " that do not share out the devices",
                        g->ngroup, g->group_size);
    return NULL;
}

static sd_status read_pairs(ctx *c, hlo_collective *to)
{
    int n = c->p->pairs.n;
    int64_t *at = sd_arena_array(c->a, int64_t, 2 * (size_t)n + 1);

    for (int i = 0; i < n; i++) {
        at[2 * i] = c->p->pairs.at[i].source;
        at[2 * i + 1] = c->p->pairs.at[i].target;
    }
    to->groups = at;
    to->ngroup = n;
    to->group_size = n ? 2 : 0;
    return NULL;
}

static sd_status read_devices(ctx *c, hlo_collective *to)
{
    const pb_device_list *l = c->p->device_list;

    if (c->p->pairs.n)
        return read_pairs(c, to);
    if (c->p->iota_groups)
        return read_iota_groups(c, c->p->iota_groups, to);
    if (l && l->iota)
        return read_iota_groups(c, l->iota, to);
    if (l)
        return read_groups(c, l->groups.at, l->groups.n, to);
    return read_groups(c, c->p->groups.at, c->p->groups.n, to);
}

static sd_status read_collective(ctx *c)
{
    const pb_inst *p = c->p;
    hlo_collective *to = sd_arena_new(c->a, hlo_collective);
    sd_status st;

    to->channel = p->channel_id ? p->channel_id : p->all_reduce_id;
    to->use_global_ids = p->use_global_ids != 0;
    to->host_transfer = p->is_host_transfer != 0;
    if ((st = read_devices(c, to)))
        return st;
    to->dim = p->dims.n ? p->dims.at[0] : 0;
    to->split_count = to->group_size;
    c->in->dims = (hlo_dims){0};
    if (c->in->op == HLO_ALL_GATHER)
        c->in->dims = dims(c, p->dims);
    c->in->u.coll = to;
    return NULL;
}

/* ---- by op ---- */

static sd_status read_small(ctx *c)
{
    const pb_inst *p = c->p;
    hlo_inst *in = c->in;
    int v = 0;
    sd_status st = NULL;

    switch (in->op) {
    case HLO_RNG:
        st = in_range(p->distribution, 3, "distribution", &v);
        in->u.rng.distribution = (hlo_rng_distribution)v;
        break;
    case HLO_RNG_BIT_GENERATOR:
        st = in_range(p->rng_algorithm, 3, "algorithm", &v);
        in->u.rng.algo = (hlo_rng_algo)v;
        break;
    case HLO_FFT:
        st = in_range(p->fft_type, 4, "FFT type", &v);
        in->u.fft.type = (hlo_fft_type)v;
        in->u.fft.length = dims(c, p->fft_length).at;
        in->u.fft.n = p->fft_length.n;
        break;
    case HLO_FUSION:
        st = pick(c, p->fusion_kind, hlo_fusion_name, "fusion kind", 0, &v);
        in->u.fusion.kind = (hlo_fusion_kind)v;
        break;
    case HLO_REDUCE_PRECISION:
        if (!(st = in_range(p->exponent_bits, 1 << 20, "exponent_bits", &v)))
            in->u.precision.exponent = v;
        if (!st &&
            !(st = in_range(p->mantissa_bits, 1 << 20, "mantissa_bits", &v)))
            in->u.precision.mantissa = v;
        break;
    case HLO_TOPK:
        if (!p->largest)
            return sd_error(SD_UNIMPLEMENTED, "the smallest elements");
        in->dims = hlo_dims_copy(c->a, &p->k, 1);
        in->u.sort.stable = true;
        break;
    default: /* the norms */
        in->u.norm.epsilon = (double)p->epsilon;
        in->u.norm.feature = p->feature_index;
    }
    return st;
}

sd_status hlo_attrs_of_pb(hlo_module *m, const pb_inst *p, hlo_inst *in)
{
    ctx c = {m, m->arena, p, in};

    in->dims = dims(&c, p->dims);
    switch (in->op) {
    case HLO_COMPARE:
        return read_compare(&c);
    case HLO_GET_TUPLE_ELEMENT:
        in->u.tuple.index = p->tuple_index;
        return NULL;
    case HLO_SLICE:
        return read_slice(&c);
    case HLO_PAD:
        return read_pad(&c);
    case HLO_DYNAMIC_SLICE:
        in->dims = dims(&c, p->slice_sizes);
        return NULL;
    case HLO_GATHER:
    case HLO_SCATTER:
        return read_gather(&c);
    case HLO_REDUCE_WINDOW:
    case HLO_SELECT_AND_SCATTER:
        in->u.window.dim = read_window(&c, &in->u.window.n);
        return NULL;
    case HLO_SORT:
        in->u.sort.stable = p->is_stable != 0;
        return NULL;
    case HLO_DOT:
        return read_dot(&c);
    case HLO_CONVOLUTION:
        return read_conv(&c);
    case HLO_CHOLESKY:
        in->u.linalg.lower = p->cholesky && p->cholesky->lower;
        in->u.linalg.trans = HLO_TRANSPOSE_NONE;
        return NULL;
    case HLO_TRIANGULAR_SOLVE:
        return read_triangular(&c);
    case HLO_CUSTOM_CALL:
        return read_custom(&c);
    case HLO_RNG:
    case HLO_RNG_BIT_GENERATOR:
    case HLO_FFT:
    case HLO_FUSION:
    case HLO_REDUCE_PRECISION:
    case HLO_TOPK:
    case HLO_BATCH_NORM_TRAINING:
    case HLO_BATCH_NORM_INFERENCE:
    case HLO_BATCH_NORM_GRAD:
        return read_small(&c);
    default:
        return hlo_info(in)->cls == HLO_C_COLLECTIVE ||
                       hlo_info(in)->cls == HLO_C_TOKENS
                   ? read_collective(&c)
                   : NULL;
    }
}
