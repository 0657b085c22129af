/* Attributes of instructions from protobuf to the graph.  Numbers are held
 * against the arrays that they index here or by inference, which follows. */
#include "hlo_attr.h"

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

/* Where the row's field is in the instruction's message, or in a message in
 * that; NULL: which is not there. */
static const void *field_of(const ctx *c, const hlo_attr_row *r)
{
    const char *p = (const char *)c->p;
    const void *at;
    const char *const *m;

    if (r->msg) {
        m = at = p + r->msg->at;
        if (!(p = *m))
            return NULL;
    }
    return p + r->pb;
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

/* ---- any op's ---- */

static sd_status read_dims(ctx *c, const hlo_attr_row *r, const void *from)
{
    *(hlo_dims *)hlo_attr_field(r, c->in) = dims(c, *(const pb_ints *)from);
    return NULL;
}

/* What text may leave out cannot be told from 0 here. */
static sd_status read_int(ctx *c, const hlo_attr_row *r, const void *from)
{
    int64_t v = *(const int64_t *)from;

    *(int64_t *)hlo_attr_field(r, c->in) =
        v || !(r->flags & HLO_A_QUIET) ? v : r->unset;
    return NULL;
}

static sd_status read_bits(ctx *c, const hlo_attr_row *r, const void *from)
{
    return in_range(*(const int64_t *)from, 1 << 20, r->key,
                    hlo_attr_field(r, c->in));
}

static sd_status read_flag(ctx *c, const hlo_attr_row *r, const void *from)
{
    *(bool *)hlo_attr_field(r, c->in) = *(const int64_t *)from != 0;
    return NULL;
}

static int names_of(const hlo_attr_row *r)
{
    int n = 0;

    while (r->names[n])
        n++;
    return n;
}

static sd_status read_choice(ctx *c, const hlo_attr_row *r, const void *from)
{
    int v = 0;
    sd_status st =
        r->flags & HLO_A_NAMED
            ? pick(c, *(const sd_bytes *)from, r->names, r->what, (int)r->unset,
                   &v)
            : in_range(*(const int64_t *)from, names_of(r), r->what, &v);

    if (v < r->least)
        v = (int)r->unset;
    *(int *)hlo_attr_field(r, c->in) = v;
    return st;
}

static sd_status read_real(ctx *c, const hlo_attr_row *r, const void *from)
{
    *(double *)hlo_attr_field(r, c->in) = (double)*(const float *)from;
    return NULL;
}

/* ---- those of one op or two ---- */

static sd_status read_compare(ctx *c, const hlo_attr_row *r, const void *from)
{
    hlo_inst *in = c->in;
    sd_dtype t = in->narg ? in->arg[0]->shape->dtype : SD_F32;

    return pick(c, *(const sd_bytes *)from, hlo_cmp_type_name,
                "comparison type", (int)hlo_usual_compare(t),
                hlo_attr_field(r, in));
}

static sd_status read_slice(ctx *c, const hlo_attr_row *r, const void *from)
{
    int n = c->p->slice.n;
    hlo_inst *in = c->in;

    (void)r;
    (void)from;
    if (in->narg < 1 || n != in->arg[0]->shape->rank)
        return sd_error(SD_INVALID, "%d slice dimensions for its operand", n);
    hlo_attr_by_dim(c->a, in, n);
    for (int i = 0; i < n; i++) {
        in->u.slice.start[i] = c->p->slice.at[i].start;
        in->u.slice.limit[i] = c->p->slice.at[i].limit;
        in->u.slice.stride[i] = c->p->slice.at[i].stride;
    }
    return NULL;
}

static sd_status read_pad(ctx *c, const hlo_attr_row *r, const void *from)
{
    int n = c->p->pad ? c->p->pad->dim.n : 0;
    hlo_inst *in = c->in;

    (void)r;
    (void)from;
    if (in->narg < 1 || n != in->arg[0]->shape->rank)
        return sd_error(SD_INVALID, "%d padded dimensions for its operand", n);
    hlo_attr_by_dim(c->a, in, n);
    for (int i = 0; i < n; i++) {
        in->u.pad.low[i] = c->p->pad->dim.at[i].low;
        in->u.pad.high[i] = c->p->pad->dim.at[i].high;
        in->u.pad.interior[i] = c->p->pad->dim.at[i].interior;
    }
    return NULL;
}

static hlo_window_dim *window_of(ctx *c, int *nout)
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

static hlo_conv *conv_of(const ctx *c)
{
    return (hlo_conv *)(uintptr_t)c->in->u.block;
}

static sd_status read_window(ctx *c, const hlo_attr_row *r, const void *from)
{
    (void)r;
    (void)from;
    if (c->in->op == HLO_CONVOLUTION)
        conv_of(c)->win = window_of(c, &conv_of(c)->nspatial);
    else
        c->in->u.window.dim = window_of(c, &c->in->u.window.n);
    return NULL;
}

static sd_status read_precision(ctx *c, const hlo_attr_row *r, const void *from)
{
    const pb_precision *p = c->p->precision;
    hlo_prec *prec = hlo_attr_field(r, c->in);
    sd_status st = NULL;
    int v = 0;

    (void)from;
    for (int i = 0; p && !st && i < SD_MIN(p->operand.n, 2); i++) {
        st = in_range(p->operand.at[i], 3, "precision", &v);
        prec[i] = (hlo_prec)v;
    }
    return st;
}

static sd_status read_algorithm(ctx *c, const hlo_attr_row *r, const void *from)
{
    const pb_precision *p = c->p->precision;
    sd_status st;
    int v = 0;

    (void)from;
    if (!p || !p->algorithm)
        return NULL;
    st = in_range(p->algorithm, HLO_ALGORITHM_COUNT, "dot algorithm", &v);
    if (!st)
        *(const char **)hlo_attr_field(r, c->in) = hlo_algorithm_table[v].name;
    return st;
}

/* The numbers have rows of their own, before this. */
static sd_status read_labels(ctx *c, const hlo_attr_row *r, const void *from)
{
    hlo_conv *d = conv_of(c);
    int nwin = d->nspatial; /* by the window */

    (void)r;
    (void)from;
    d->nspatial = d->in_spatial.n;
    if (nwin != d->nspatial)
        return sd_error(SD_INVALID,
                        "a window of %d dimensions for %d spatial ones", nwin,
                        d->nspatial);
    return NULL;
}

static sd_status read_topk(ctx *c, const hlo_attr_row *r, const void *from)
{
    (void)r;
    (void)from;
    if (!c->p->largest)
        return sd_error(SD_UNIMPLEMENTED, "the smallest elements");
    c->in->dims = hlo_dims_copy(c->a, &c->p->k, 1);
    c->in->u.sort.stable = true;
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

static sd_status read_custom(ctx *c, const hlo_attr_row *r, const void *from)
{
    const pb_inst *p = c->p;
    hlo_custom *u = sd_arena_new(c->a, hlo_custom);
    sd_status st;

    (void)r;
    (void)from;
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

static sd_status read_collective(ctx *c, const hlo_attr_row *r,
                                 const void *from)
{
    const pb_inst *p = c->p;
    hlo_collective *to = sd_arena_new(c->a, hlo_collective);
    sd_status st;

    (void)r;
    (void)from;
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

/* ---- all ---- */

static sd_status (*const read_kind[HLO_A_KIND_COUNT])(ctx *c,
                                                      const hlo_attr_row *r,
                                                      const void *from) = {
    [HLO_A_DIMS] = read_dims,
    [HLO_A_DIM] = read_dims,
    [HLO_A_INT] = read_int,
    [HLO_A_BITS] = read_bits,
    [HLO_A_FLAG] = read_flag,
    [HLO_A_CHOICE] = read_choice,
    [HLO_A_REAL] = read_real,
    [HLO_A_COMPARE] = read_compare,
    [HLO_A_SLICE] = read_slice,
    [HLO_A_PAD] = read_pad,
    [HLO_A_WINDOW] = read_window,
    [HLO_A_LABELS] = read_labels,
    [HLO_A_PRECISION] = read_precision,
    [HLO_A_ALGORITHM] = read_algorithm,
    [HLO_A_TOPK] = read_topk,
    [HLO_A_CUSTOM] = read_custom,
    [HLO_A_COLLECTIVE] = read_collective,
};

sd_status hlo_attrs_of_pb(hlo_module *m, const pb_inst *p, hlo_inst *in)
{
    ctx c = {m, m->arena, p, in};
    sd_status st;

    hlo_attr_begin(c.a, in);
    hlo_for_each_attr(r, in->op) {
        const void *from = field_of(&c, r);

        if (!from && r->msg->name)
            return lacks(r->msg->name);
        if (from && read_kind[r->kind] &&
            (st = read_kind[r->kind](&c, r, from)))
            return st;
    }
    return NULL;
}
