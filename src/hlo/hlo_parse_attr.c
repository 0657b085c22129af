/* Attributes of an instruction: from key=value as written to the fields of
 * the op.  Each op takes what it knows; what is left over is an error, except
 * for what XLA adds for itself. */
#include "hlo_text.h"

#include <stdlib.h>

typedef struct {
    hlo_lexer *x;
    hlo_attrs *as;
    hlo_inst *in;
} reader;

/* ---- values ---- */

/* A lexer over one attribute's value; false when it is not given. */
static bool open_attr(reader *r, const char *key, hlo_lexer *v)
{
    for (int i = 0; i < r->as->n; i++) {
        hlo_attr *a = &r->as->at[i];

        if (a->used || !hlo_word_is(a->key, key))
            continue;
        a->used = true;
        *v = *r->x;
        v->at = a->value.at;
        v->end = a->value.at + a->value.len;
        return !r->x->bad;
    }
    return false;
}

static void close_attr(reader *r, hlo_lexer *v)
{
    hlo_skip_space(v);
    if (!v->bad && v->at < v->end)
        hlo_fail(v, "the end of the value");
    if (v->bad) {
        r->x->at = v->bad_at;
        hlo_fail(r->x, v->bad);
    }
}

static hlo_dims dims(reader *r, const char *key)
{
    hlo_dims d = {0};
    hlo_lexer v;

    if (open_attr(r, key, &v)) {
        d = hlo_take_dims(&v);
        close_attr(r, &v);
    }
    return d;
}

static int64_t integer(reader *r, const char *key, int64_t unset)
{
    hlo_lexer v;

    if (!open_attr(r, key, &v))
        return unset;
    unset = hlo_take_int(&v);
    close_attr(r, &v);
    return unset;
}

static int small(reader *r, const char *key)
{
    int64_t v = integer(r, key, 0);

    if (v < 0 || v > 1 << 20)
        hlo_fail(r->x, "a small number");
    return (int)v;
}

static bool flag(reader *r, const char *key)
{
    bool on = false;
    hlo_lexer v;

    if (open_attr(r, key, &v)) {
        on = hlo_accept_word(&v, "true");
        if (!on && !hlo_accept_word(&v, "false"))
            hlo_fail(&v, "true or false");
        close_attr(r, &v);
    }
    return on;
}

static int name_in(hlo_lexer *v, const char *const *names)
{
    hlo_word w = hlo_take_name(v);

    for (int i = 0; names[i]; i++)
        if (hlo_word_is(w, names[i]))
            return i;
    v->at = w.at;
    hlo_fail(v, "a name of its list");
    return 0;
}

static int choice(reader *r, const char *key, const char *const *names,
                  int unset)
{
    hlo_lexer v;

    if (!open_attr(r, key, &v))
        return unset;
    unset = name_in(&v, names);
    close_attr(r, &v);
    return unset;
}

/* "..." unescaped, or {...} as it stands. */
static const char *text(reader *r, const char *key, size_t *len)
{
    const char *s;
    hlo_lexer v;

    *len = 0;
    if (!open_attr(r, key, &v))
        return NULL;
    hlo_skip_space(&v);
    if (v.at < v.end && *v.at == '"') {
        s = hlo_take_string(&v, len);
        close_attr(r, &v);
        return s;
    }
    *len = (size_t)(v.end - v.at);
    return sd_arena_str(r->x->arena, v.at, *len);
}

static void want(reader *r, const char *what)
{
    hlo_fail(r->x, what);
}

static int arg_rank(reader *r)
{
    if (r->in->narg < 1) {
        want(r, "an operand");
        return 0;
    }
    return r->in->arg[0]->shape->rank;
}

/* ---- computations ---- */

static hlo_comp *take_comp(reader *r, hlo_lexer *v)
{
    hlo_word w = hlo_take_name(v);
    hlo_comp *c = v->bad ? NULL : r->as->find(r->as->ctx, w);

    if (!c) {
        if (!v->bad)
            v->at = w.at;
        hlo_fail(v, "the name of a computation defined above");
    }
    return c;
}

/* One computation under each of the keys. */
static void read_comps(reader *r, int n, const char *const *key)
{
    hlo_comp *c[2] = {NULL, NULL};
    hlo_lexer v;

    for (int i = 0; i < n; i++) {
        if (!open_attr(r, key[i], &v)) {
            want(r, "the computation that this op needs");
            return;
        }
        c[i] = take_comp(r, &v);
        close_attr(r, &v);
    }
    if (!r->x->bad)
        hlo_set_comps(r->in, n, c);
}

static void read_comp(reader *r, const char *key)
{
    read_comps(r, 1, &key);
}

static bool read_comp_list(reader *r, const char *key)
{
    sd_vec(hlo_comp *) c = {0};
    hlo_lexer v;

    if (!open_attr(r, key, &v))
        return false;
    hlo_expect(&v, "{");
    if (!hlo_accept(&v, "}")) {
        do
            *sd_push(r->x->arena, &c) = take_comp(r, &v);
        while (hlo_accept(&v, ","));
        hlo_expect(&v, "}");
    }
    close_attr(r, &v);
    if (!r->x->bad)
        hlo_set_comps(r->in, c.n, c.at);
    return true;
}

/* ---- windows ---- */

/* 3x3, or 1_1x0_2: n numbers, or pairs of them, into one field each. */
static int take_by_x(hlo_lexer *v, int n, hlo_window_dim *w, const char *key)
{
    int k = 0;

    do {
        int64_t a = hlo_take_int(v);

        if (k == n) {
            hlo_fail(v, "as many entries as the window has dimensions");
            break;
        }
        if (!strcmp(key, "size")) {
            w[k].size = a;
        } else if (!strcmp(key, "stride")) {
            w[k].stride = a;
        } else if (!strcmp(key, "lhs_dilate")) {
            w[k].base_dilation = a;
        } else if (!strcmp(key, "rhs_dilate")) {
            w[k].window_dilation = a;
        } else if (!strcmp(key, "rhs_reversal")) {
            w[k].reversal = a != 0;
        } else if (!strcmp(key, "pad")) {
            w[k].pad_low = a;
            hlo_expect(v, "_");
            w[k].pad_high = hlo_take_int(v);
        } else {
            hlo_fail(v, "a part of a window");
        }
        k++;
    } while (hlo_accept(v, "x") && !v->bad);
    return k;
}

static hlo_window_dim *read_window(reader *r, int *n)
{
    hlo_window_dim w[SD_MAX_RANK];
    hlo_lexer v;
    int got;

    *n = 0;
    for (int i = 0; i < SD_MAX_RANK; i++)
        w[i] = (hlo_window_dim){1, 1, 0, 0, 1, 1, false};
    if (!open_attr(r, "window", &v))
        return NULL;
    hlo_expect(&v, "{");
    while (!v.bad && !hlo_accept(&v, "}")) {
        hlo_word key = hlo_take_name(&v);
        const char *name = sd_arena_str(v.arena, key.at, key.len);

        hlo_expect(&v, "=");
        got = take_by_x(&v, *n ? *n : SD_MAX_RANK, w, name);
        if (*n && got != *n)
            hlo_fail(&v, "as many entries as the window has dimensions");
        *n = got;
    }
    close_attr(r, &v);
    return *n ? sd_arena_copy(r->x->arena, w, sizeof *w * (size_t)*n) : NULL;
}

/* ---- contractions ---- */

static void read_precision(reader *r, hlo_prec *p)
{
    hlo_lexer v;

    if (!open_attr(r, "operand_precision", &v))
        return;
    hlo_expect(&v, "{");
    p[0] = (hlo_prec)name_in(&v, hlo_prec_name);
    hlo_expect(&v, ",");
    p[1] = (hlo_prec)name_in(&v, hlo_prec_name);
    hlo_expect(&v, "}");
    close_attr(r, &v);
}

static void read_dot(reader *r)
{
    hlo_dot *d = sd_arena_new(r->x->arena, hlo_dot);
    size_t len;

    d->lhs_batch = dims(r, "lhs_batch_dims");
    d->rhs_batch = dims(r, "rhs_batch_dims");
    d->lhs_contract = dims(r, "lhs_contracting_dims");
    d->rhs_contract = dims(r, "rhs_contracting_dims");
    read_precision(r, d->prec);
    d->algorithm = text(r, "algorithm", &len);
    r->in->u.dot = d;
}

/* "b01f": where the two letters and the spatial dimensions stand. */
static void take_labels(hlo_lexer *v, const char *letter, int64_t *first,
                        int64_t *second, hlo_dims *spatial)
{
    int64_t at[SD_MAX_RANK];
    int n = 0, top = 0;

    for (int i = 0; i < SD_MAX_RANK; i++)
        at[i] = -1;
    *first = *second = -1;
    hlo_skip_space(v);
    for (; v->at < v->end && *v->at != '_' && *v->at != '-'; v->at++, n++) {
        int s = *v->at - '0';

        if (n == SD_MAX_RANK) {
            hlo_fail(v, "at most 32 dimensions");
            return;
        }
        if (*v->at == letter[0] && *first < 0) {
            *first = n;
        } else if (*v->at == letter[1] && *second < 0) {
            *second = n;
        } else if (s >= 0 && s < SD_MAX_RANK && at[s] < 0) {
            at[s] = n;
            top = SD_MAX(top, s + 1);
        } else {
            hlo_fail(v, "dimension labels, each once");
            return;
        }
    }
    for (int i = 0; i < top; i++)
        if (at[i] < 0)
            hlo_fail(v, "spatial dimensions without gaps");
    if (*first < 0 || *second < 0)
        hlo_fail(v, "labels of both dimensions that are not spatial");
    *spatial = hlo_dims_copy(v->arena, at, top);
}

static void read_conv(reader *r)
{
    hlo_conv *c = sd_arena_new(r->x->arena, hlo_conv);
    hlo_lexer v;
    int n;

    c->win = read_window(r, &n);
    c->feature_groups = integer(r, "feature_group_count", 1);
    c->batch_groups = integer(r, "batch_group_count", 1);
    read_precision(r, c->prec);
    r->in->u.conv = c;
    if (!open_attr(r, "dim_labels", &v)) {
        want(r, "dim_labels");
        return;
    }
    take_labels(&v, "bf", &c->in_batch, &c->in_feature, &c->in_spatial);
    hlo_expect(&v, "_");
    take_labels(&v, "io", &c->k_in, &c->k_out, &c->k_spatial);
    hlo_expect(&v, "->");
    take_labels(&v, "bf", &c->out_batch, &c->out_feature, &c->out_spatial);
    c->nspatial = c->in_spatial.n;
    if (n != c->nspatial)
        hlo_fail(&v, "as many window dimensions as spatial ones");
    close_attr(r, &v);
}

/* ---- gather and scatter ---- */

static void read_gather(reader *r)
{
    hlo_gather *g = sd_arena_new(r->x->arena, hlo_gather);
    bool s = r->in->op == HLO_SCATTER;

    g->offset_dims = dims(r, s ? "update_window_dims" : "offset_dims");
    g->collapsed = dims(r, s ? "inserted_window_dims" : "collapsed_slice_dims");
    g->index_map =
        dims(r, s ? "scatter_dims_to_operand_dims" : "start_index_map");
    g->operand_batch =
        dims(r, s ? "input_batching_dims" : "operand_batching_dims");
    g->indices_batch = dims(r, s ? "scatter_indices_batching_dims"
                                 : "start_indices_batching_dims");
    g->index_vector_dim = integer(r, "index_vector_dim", 0);
    if (!s)
        g->slice_sizes = dims(r, "slice_sizes");
    g->sorted = flag(r, "indices_are_sorted");
    g->unique = flag(r, "unique_indices");
    r->in->u.gather = g;
    if (s)
        read_comp(r, "to_apply");
}

/* ---- slices and pads ---- */

static int64_t *row(reader *r, int n)
{
    return sd_arena_array(r->x->arena, int64_t, n + 1);
}

static void read_slice(reader *r)
{
    int n = arg_rank(r), i = 0;
    hlo_inst *in = r->in;
    hlo_lexer v;

    in->u.slice.start = row(r, n);
    in->u.slice.limit = row(r, n);
    in->u.slice.stride = row(r, n);
    if (!open_attr(r, "slice", &v)) {
        want(r, "slice={...}");
        return;
    }
    hlo_expect(&v, "{");
    for (; i < n && !v.bad; i++) {
        if (i)
            hlo_expect(&v, ",");
        hlo_expect(&v, "[");
        in->u.slice.start[i] = hlo_take_int(&v);
        hlo_expect(&v, ":");
        in->u.slice.limit[i] = hlo_take_int(&v);
        in->u.slice.stride[i] = hlo_accept(&v, ":") ? hlo_take_int(&v) : 1;
        hlo_expect(&v, "]");
    }
    hlo_expect(&v, "}");
    close_attr(r, &v);
}

static void read_pad(reader *r)
{
    int n = arg_rank(r);
    hlo_inst *in = r->in;
    hlo_lexer v;

    in->u.pad.low = row(r, n);
    in->u.pad.high = row(r, n);
    in->u.pad.interior = row(r, n);
    if (!n) { /* "padding=" of a scalar pads nothing */
        if (open_attr(r, "padding", &v))
            v.at = v.end;
        return;
    }
    if (!open_attr(r, "padding", &v)) {
        want(r, "padding=...");
        return;
    }
    for (int i = 0; i < n && !v.bad; i++) {
        if (i)
            hlo_expect(&v, "x");
        in->u.pad.low[i] = hlo_take_int(&v);
        hlo_expect(&v, "_");
        in->u.pad.high[i] = hlo_take_int(&v);
        in->u.pad.interior[i] = hlo_accept(&v, "_") ? hlo_take_int(&v) : 0;
    }
    close_attr(r, &v);
}

/* ---- custom calls and collectives ---- */

static void read_aliases(reader *r, hlo_custom *c)
{
    sd_vec(typeof(*c->alias)) list = {0};
    hlo_lexer v;

    if (!open_attr(r, "output_to_operand_aliasing", &v))
        return;
    hlo_expect(&v, "{");
    while (!v.bad && !hlo_accept(&v, "}")) {
        typeof(*c->alias) a = {0};

        a.out_index = hlo_take_dims(&v);
        hlo_expect(&v, ":");
        hlo_expect(&v, "(");
        a.operand = hlo_take_int(&v);
        hlo_expect(&v, ",");
        a.operand_index = hlo_take_dims(&v);
        hlo_expect(&v, ")");
        hlo_accept(&v, ",");
        if (a.operand < 0 || a.operand >= r->in->narg)
            hlo_fail(&v, "one of the operands");
        *sd_push(r->x->arena, &list) = a;
    }
    close_attr(r, &v);
    c->alias = (void *)list.at;
    c->nalias = list.n;
}

static void read_layouts(reader *r, hlo_custom *c)
{
    int nout = r->in->shape->dtype == SD_TUPLE ? r->in->shape->nelem : 1;
    hlo_lexer v;

    if (open_attr(r, "operand_layout_constraints", &v)) {
        c->operand_layout =
            sd_arena_array(r->x->arena, hlo_dims, r->in->narg + 1);
        hlo_expect(&v, "{");
        for (int i = 0; i < r->in->narg && !v.bad; i++) {
            const sd_shape *s;

            if (i)
                hlo_expect(&v, ",");
            if ((s = hlo_take_shape(&v)) && s->layout)
                c->operand_layout[i] = (hlo_dims){s->layout, s->rank};
        }
        hlo_expect(&v, "}");
        close_attr(r, &v);
    }
    if (open_attr(r, "result_layouts", &v)) {
        c->result_layout = sd_arena_array(r->x->arena, hlo_dims, nout + 1);
        hlo_expect(&v, "{");
        for (int i = 0; i < nout && !v.bad; i++) {
            if (i)
                hlo_expect(&v, ",");
            c->result_layout[i] = hlo_take_dims(&v);
        }
        hlo_expect(&v, "}");
        close_attr(r, &v);
    }
}

static void read_custom(reader *r)
{
    hlo_custom *c = sd_arena_new(r->x->arena, hlo_custom);
    size_t len;

    c->target = text(r, "custom_call_target", &len);
    if (!c->target)
        want(r, "custom_call_target");
    c->config = text(r, "backend_config", &c->config_len);
    if (!c->config)
        c->config = "";
    c->has_side_effect = flag(r, "custom_call_has_side_effect");
    c->api_version = choice(r, "api_version", hlo_api_name, 1);
    read_aliases(r, c);
    read_layouts(r, c);
    r->in->u.custom = c;
    read_comp_list(r, "called_computations");
}

/* [4,2]<=[8]: the numbers 0 to 7 in four groups of two */
static void take_iota_groups(hlo_lexer *v, hlo_collective *c)
{
    int64_t *g, n;

    hlo_expect(v, "[");
    c->ngroup = hlo_take_int(v);
    hlo_expect(v, ",");
    c->group_size = hlo_take_int(v);
    hlo_expect(v, "]");
    hlo_expect(v, "<");
    hlo_expect(v, "=");
    hlo_expect(v, "[");
    n = hlo_take_int(v);
    hlo_expect(v, "]");
    if (v->bad)
        return;
    if (n < 1 || n > 1 << 16 || c->ngroup < 1 || c->group_size < 1 ||
        c->ngroup > n || c->ngroup * c->group_size != n) {
        hlo_fail(v, "groups that share out the devices");
        return;
    }
    g = sd_arena_array(v->arena, int64_t, n);
    for (int64_t i = 0; i < n; i++)
        g[i] = i;
    c->groups = g;
}

static void take_groups(hlo_lexer *v, hlo_collective *c)
{
    sd_vec(int64_t) all = {0};

    hlo_skip_space(v);
    if (v->at < v->end && *v->at == '[') {
        take_iota_groups(v, c);
        return;
    }
    hlo_expect(v, "{");
    if (hlo_accept(v, "}"))
        return;
    do {
        hlo_dims d = hlo_take_dims(v);

        if (c->ngroup && d.n != c->group_size)
            hlo_fail(v, "groups of one size");
        for (int i = 0; i < d.n; i++)
            *sd_push(v->arena, &all) = d.at[i];
        c->group_size = d.n;
        c->ngroup++;
    } while (hlo_accept(v, ",") && !v->bad);
    hlo_expect(v, "}");
    c->groups = all.at;
}

static void read_collective(reader *r)
{
    hlo_collective *c = sd_arena_new(r->x->arena, hlo_collective);
    hlo_dims d = dims(r, "dimensions");
    hlo_lexer v;

    c->channel = integer(r, "channel_id", 0);
    c->use_global_ids = flag(r, "use_global_device_ids");
    c->host_transfer = flag(r, "is_host_transfer");
    if (open_attr(r, "replica_groups", &v) ||
        open_attr(r, "source_target_pairs", &v)) {
        take_groups(&v, c);
        close_attr(r, &v);
    }
    c->dim = d.n ? d.at[0] : 0;
    c->split_count = c->group_size;
    if (r->in->op == HLO_ALL_GATHER)
        r->in->dims = d;
    r->in->u.coll = c;
    if (hlo_info(r->in)->props & HLO_P_REGION)
        read_comp(r, "to_apply");
}

/* ---- the rest ---- */

static void read_compare(reader *r)
{
    hlo_lexer v;
    sd_kind k =
        r->in->narg ? sd_dtype_kind(r->in->arg[0]->shape->dtype) : SD_K_FLOAT;
    hlo_cmp_type usual = k == SD_K_SINT                     ? HLO_CMP_SIGNED
                         : k == SD_K_UINT || k == SD_K_PRED ? HLO_CMP_UNSIGNED
                                                            : HLO_CMP_FLOAT;

    if (!open_attr(r, "direction", &v)) {
        want(r, "direction=EQ, NE, GE, GT, LE or LT");
        return;
    }
    r->in->u.compare.dir = (hlo_cmp_dir)name_in(&v, hlo_cmp_dir_name);
    close_attr(r, &v);
    r->in->u.compare.type =
        (hlo_cmp_type)choice(r, "type", hlo_cmp_type_name, (int)usual);
}

static void read_norm(reader *r)
{
    size_t len;
    const char *s = text(r, "epsilon", &len);
    char *end;

    r->in->u.norm.epsilon = s ? strtod(s, &end) : 0;
    if (s && *end)
        want(r, "a number for epsilon");
    r->in->u.norm.feature = integer(r, "feature_index", 0);
}

static void read_linalg(reader *r)
{
    r->in->u.linalg.lower = flag(r, "lower");
    r->in->u.linalg.left = flag(r, "left_side");
    r->in->u.linalg.unit = flag(r, "unit_diagonal");
    r->in->u.linalg.trans = (hlo_transpose_kind)choice(
        r, "transpose_a", hlo_transpose_name, HLO_TRANSPOSE_NONE);
    if (!r->in->u.linalg.trans)
        want(r, "a transpose");
}

static void read_conditional(reader *r)
{
    static const char *const key[] = {"true_computation", "false_computation"};

    if (!read_comp_list(r, "branch_computations"))
        read_comps(r, 2, key);
}

static void read_scan(reader *r)
{
    hlo_dims d = dims(r, "dimensions");

    r->in->u.scan.reverse = flag(r, "reverse");
    r->in->u.scan.exclusive = flag(r, "exclusive");
    r->in->u.scan.dim = d.n == 1 ? d.at[0] : -1;
    read_comp(r, "to_apply");
}

static void read_topk(reader *r)
{
    int64_t k = integer(r, "k", -1);

    r->in->dims = hlo_dims_copy(r->x->arena, &k, 1);
    r->in->u.sort.stable = true;
    if (!flag(r, "largest"))
        want(r, "largest=true");
}

static void read_fft(reader *r)
{
    hlo_dims d;

    r->in->u.fft.type = (hlo_fft_type)choice(r, "fft_type", hlo_fft_name, 0);
    d = dims(r, "fft_length");
    r->in->u.fft.length = d.at;
    r->in->u.fft.n = d.n;
}

static void read_iota(reader *r)
{
    int64_t d = integer(r, "iota_dimension", 0);

    r->in->dims = hlo_dims_copy(r->x->arena, &d, 1);
}

static void read_op(reader *r)
{
    static const char *const loop[] = {"condition", "body"};
    static const char *const sas[] = {"select", "scatter"};
    hlo_inst *in = r->in;

    switch (in->op) {
    case HLO_COMPARE:
        read_compare(r);
        break;
    case HLO_REDUCE_PRECISION:
        in->u.precision.exponent = small(r, "exponent_bits");
        in->u.precision.mantissa = small(r, "mantissa_bits");
        break;
    case HLO_IOTA:
        read_iota(r);
        break;
    case HLO_REDUCE:
    case HLO_MAP:
        in->dims = dims(r, "dimensions");
        read_comp(r, "to_apply");
        break;
    case HLO_BROADCAST:
    case HLO_TRANSPOSE:
    case HLO_REVERSE:
    case HLO_CONCATENATE:
    case HLO_GET_DIMENSION_SIZE:
    case HLO_SET_DIMENSION_SIZE:
        in->dims = dims(r, "dimensions");
        break;
    case HLO_SLICE:
        read_slice(r);
        break;
    case HLO_PAD:
        read_pad(r);
        break;
    case HLO_DYNAMIC_SLICE:
        in->dims = dims(r, "dynamic_slice_sizes");
        break;
    case HLO_GATHER:
    case HLO_SCATTER:
        read_gather(r);
        break;
    case HLO_REDUCE_WINDOW:
        in->u.window.dim = read_window(r, &in->u.window.n);
        read_comp(r, "to_apply");
        break;
    case HLO_SELECT_AND_SCATTER:
        in->u.window.dim = read_window(r, &in->u.window.n);
        read_comps(r, 2, sas);
        break;
    case HLO_SCAN:
        read_scan(r);
        break;
    case HLO_SORT:
        in->dims = dims(r, "dimensions");
        in->u.sort.stable = flag(r, "is_stable");
        read_comp(r, "to_apply");
        break;
    case HLO_TOPK:
        read_topk(r);
        break;
    case HLO_DOT:
        read_dot(r);
        break;
    case HLO_CONVOLUTION:
        read_conv(r);
        break;
    case HLO_RNG:
        in->u.rng.distribution = choice(r, "distribution", hlo_dist_name, 0);
        break;
    case HLO_RNG_BIT_GENERATOR:
        in->u.rng.algo = (hlo_rng_algo)choice(r, "algorithm", hlo_rng_name, 0);
        break;
    case HLO_FFT:
        read_fft(r);
        break;
    case HLO_CHOLESKY:
    case HLO_TRIANGULAR_SOLVE:
        read_linalg(r);
        break;
    case HLO_BATCH_NORM_TRAINING:
    case HLO_BATCH_NORM_INFERENCE:
    case HLO_BATCH_NORM_GRAD:
        read_norm(r);
        break;
    case HLO_GET_TUPLE_ELEMENT:
        in->u.tuple.index = integer(r, "index", -1);
        break;
    case HLO_CALL:
        read_comp(r, "to_apply");
        break;
    case HLO_FUSION:
        in->u.fusion.kind =
            (hlo_fusion_kind)choice(r, "kind", hlo_fusion_name, 0);
        read_comp(r, "calls");
        break;
    case HLO_WHILE:
        read_comps(r, 2, loop);
        break;
    case HLO_CONDITIONAL:
        read_conditional(r);
        break;
    case HLO_CUSTOM_CALL:
        read_custom(r);
        break;
    default:
        if (hlo_info(in)->cls == HLO_C_COLLECTIVE ||
            hlo_info(in)->cls == HLO_C_TOKENS)
            read_collective(r);
    }
}

/* metadata={op_name="..." source_file="..." source_line=3 ...} */
static void read_metadata(reader *r)
{
    size_t len;
    hlo_lexer v;

    if (!open_attr(r, "metadata", &v))
        return;
    hlo_expect(&v, "{");
    while (!v.bad && !hlo_accept(&v, "}")) {
        hlo_word key = hlo_take_name(&v);

        hlo_expect(&v, "=");
        hlo_skip_space(&v);
        if (hlo_word_is(key, "op_name")) {
            r->in->op_name = hlo_take_string(&v, &len);
        } else if (hlo_word_is(key, "source_file")) {
            r->in->source_file = hlo_take_string(&v, &len);
        } else if (hlo_word_is(key, "source_line")) {
            r->in->source_line = (int)hlo_take_int(&v);
        } else if (v.at < v.end && *v.at == '"') {
            hlo_take_string(&v, &len);
        } else if (v.at < v.end && *v.at == '{') {
            while (v.at < v.end && *v.at != '}')
                v.at++;
            hlo_expect(&v, "}");
        } else if (hlo_take_name(&v).len == 0) {
            hlo_fail(&v, "a value");
        }
    }
    close_attr(r, &v);
}

static bool is_ours_to_skip(hlo_word key)
{
    static const char *const name[] = {"backend_config",
                                       "control-predecessors",
                                       "execution_thread",
                                       "origin",
                                       "original_value",
                                       "statistics",
                                       "outer_dimension_partitions",
                                       "type",
                                       "constrain_layout",
                                       "infeed_config",
                                       "outfeed_config",
                                       "result_accuracy",
                                       "is_scheduled"};

    for (size_t i = 0; i < SD_COUNTOF(name); i++)
        if (hlo_word_is(key, name[i]))
            return true;
    return false;
}

void hlo_parse_attrs(hlo_lexer *x, hlo_attrs *as, hlo_inst *in)
{
    reader r = {x, as, in};
    size_t len;

    if (x->bad)
        return;
    read_op(&r);
    read_metadata(&r);
    in->sharding = text(&r, "sharding", &len);
    in->frontend_attrs = text(&r, "frontend_attributes", &len);
    for (int i = 0; i < as->n && !x->bad; i++)
        if (!as->at[i].used && !is_ours_to_skip(as->at[i].key)) {
            x->at = as->at[i].key.at;
            hlo_fail(x, "an attribute of this op, once");
        }
}
