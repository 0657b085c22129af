/* Attributes of the ops that have many: windows, contractions, gather, slices,
 * custom calls, collectives. */
#include "hlo_attr.h"

static int arg_rank(hlo_attr_reader *r)
{
    if (r->in->narg < 1) {
        hlo_attr_want(r, "an operand");
        return 0;
    }
    return r->in->arg[0]->shape->rank;
}

/* ---- windows ---- */

/* 3x3, or 1_1x0_2: n numbers, or pairs of them; of how many dimensions. */
static int take_by_x(hlo_lexer *v, int n, hlo_window_dim *w, hlo_word key)
{
    const hlo_window_part *p = hlo_window_parts;
    int k = 0;

    while (p < hlo_window_parts + HLO_WINDOW_PARTS && !hlo_word_is(key, p->key))
        p++;
    if (p == hlo_window_parts + HLO_WINDOW_PARTS) {
        hlo_fail(v, "a part of a window");
        return 0;
    }
    do {
        int64_t *to = hlo_window_number(&w[SD_MIN(k, n - 1)], p);

        to[0] = hlo_take_int(v);
        if (p->pair) {
            hlo_expect(v, "_");
            to[1] = hlo_take_int(v);
        }
        if (k++ == n)
            hlo_fail(v, "as many entries as the window has dimensions");
    } while (hlo_accept(v, "x") && !v->bad);
    return k;
}

static hlo_window_dim *take_window(hlo_attr_reader *r, const char *as, int *n)
{
    hlo_window_dim w[SD_MAX_RANK];
    hlo_lexer v;
    int got;

    *n = 0;
    for (int i = 0; i < SD_MAX_RANK; i++)
        w[i] = (hlo_window_dim){1, 1, 0, 0, 1, 1, false};
    if (!hlo_open_attr(r, as, &v))
        return NULL;
    hlo_expect(&v, "{");
    while (!v.bad && !hlo_accept(&v, "}")) {
        hlo_word key = hlo_take_name(&v);

        hlo_expect(&v, "=");
        got = take_by_x(&v, *n ? *n : SD_MAX_RANK, w, key);
        if (*n && got != *n)
            hlo_fail(&v, "as many entries as the window has dimensions");
        *n = got;
    }
    hlo_close_attr(r, &v);
    for (int i = 0; i < *n; i++)
        w[i].reversal = w[i].reversal != 0;
    return *n ? sd_arena_copy(r->x->arena, w, sizeof *w * (size_t)*n) : NULL;
}

void hlo_read_window(hlo_attr_reader *r, const hlo_attr_row *row)
{
    hlo_inst *in = r->in;
    hlo_conv *c = (hlo_conv *)(uintptr_t)in->u.block;

    if (in->op == HLO_CONVOLUTION)
        c->win = take_window(r, row->key, &c->nspatial);
    else
        in->u.window.dim = take_window(r, row->key, &in->u.window.n);
}

/* ---- contractions ---- */

void hlo_read_precision(hlo_attr_reader *r, const hlo_attr_row *row)
{
    hlo_prec *p = hlo_attr_field(row, r->in);
    hlo_lexer v;

    if (!hlo_open_attr(r, row->key, &v))
        return;
    hlo_expect(&v, "{");
    p[0] = (hlo_prec)hlo_name_in(&v, hlo_prec_name);
    hlo_expect(&v, ",");
    p[1] = (hlo_prec)hlo_name_in(&v, hlo_prec_name);
    hlo_expect(&v, "}");
    hlo_close_attr(r, &v);
}

void hlo_read_algorithm(hlo_attr_reader *r, const hlo_attr_row *row)
{
    size_t len;

    *(const char **)hlo_attr_field(row, r->in) =
        hlo_attr_text(r, row->key, &len);
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

void hlo_read_labels(hlo_attr_reader *r, const hlo_attr_row *row)
{
    hlo_conv *c = (hlo_conv *)(uintptr_t)r->in->u.block;
    int n = c->nspatial; /* by the window */
    hlo_lexer v;

    if (!hlo_open_attr(r, row->key, &v)) {
        hlo_attr_want(r, "dim_labels");
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
    hlo_close_attr(r, &v);
}

/* ---- slices and pads ---- */

void hlo_read_slice(hlo_attr_reader *r, const hlo_attr_row *row)
{
    int n = arg_rank(r), i = 0;
    hlo_inst *in = r->in;
    hlo_lexer v;

    hlo_attr_by_dim(r->x->arena, in, n);
    if (!hlo_open_attr(r, row->key, &v)) {
        hlo_attr_want(r, "slice={...}");
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
    hlo_close_attr(r, &v);
}

void hlo_read_pad(hlo_attr_reader *r, const hlo_attr_row *row)
{
    int n = arg_rank(r);
    hlo_inst *in = r->in;
    hlo_lexer v;

    hlo_attr_by_dim(r->x->arena, in, n);
    if (!n) { /* "padding=" of a scalar pads nothing */
        if (hlo_open_attr(r, row->key, &v))
            v.at = v.end;
        return;
    }
    if (!hlo_open_attr(r, row->key, &v)) {
        hlo_attr_want(r, "padding=...");
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
    hlo_close_attr(r, &v);
}

/* ---- custom calls and collectives ---- */

static void read_aliases(hlo_attr_reader *r, hlo_custom *c)
{
    sd_vec(typeof(*c->alias)) list = {0};
    hlo_lexer v;

    if (!hlo_open_attr(r, "output_to_operand_aliasing", &v))
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
        *sd_push(r->x->arena, &list) = a;
    }
    hlo_close_attr(r, &v);
    c->alias = (void *)list.at;
    c->nalias = list.n;
}

/* The operands' layouts are given, the results' stand in the shape. */
static void read_layouts(hlo_attr_reader *r, hlo_custom *c)
{
    hlo_lexer v;

    if (!hlo_open_attr(r, "operand_layout_constraints", &v))
        return;
    c->operand_layout = sd_arena_array(r->x->arena, hlo_dims, r->in->narg + 1);
    hlo_expect(&v, "{");
    for (int i = 0; i < r->in->narg && !v.bad; i++) {
        const sd_shape *s;

        if (i)
            hlo_expect(&v, ",");
        if ((s = hlo_take_shape(&v)) && s->layout &&
            s->rank == r->in->arg[i]->shape->rank)
            c->operand_layout[i] = (hlo_dims){s->layout, s->rank};
    }
    hlo_expect(&v, "}");
    hlo_close_attr(r, &v);
    if (!r->x->bad)
        hlo_custom_take_layouts(r->x->arena, r->in, c);
}

/* How XLA's library calls compute; the target knows it from its config. */
bool hlo_is_custom_hint(hlo_word key)
{
    static const char *const name[] = {"window",
                                       "dim_labels",
                                       "feature_group_count",
                                       "batch_group_count",
                                       "operand_precision",
                                       "literal"};

    for (size_t i = 0; i < SD_COUNTOF(name); i++)
        if (hlo_word_is(key, name[i]))
            return true;
    return false;
}

void hlo_read_custom(hlo_attr_reader *r, const hlo_attr_row *row)
{
    hlo_custom *c = sd_arena_new(r->x->arena, hlo_custom);
    size_t len;

    c->target = hlo_attr_text(r, row->key, &len);
    if (!c->target) {
        hlo_attr_want(r, "custom_call_target");
        return;
    }
    c->config = hlo_attr_text(r, "backend_config", &c->config_len);
    if (!c->config)
        c->config = "";
    c->has_side_effect = hlo_attr_flag(r, "custom_call_has_side_effect");
    c->api_version = hlo_attr_choice(r, "api_version", hlo_api_name, 1);
    read_aliases(r, c);
    read_layouts(r, c);
    r->in->u.custom = c;
    if (!hlo_attr_comp_list(r, "called_computations"))
        hlo_attr_comp_if(r, "to_apply");
    if (hlo_is_guise(c) && !hlo_unmask(r->in))
        hlo_attr_want(r, "a backend_config as hlo_print writes it");
}

static hlo_dims take_bracket(hlo_lexer *v, const char *open, const char *close)
{
    sd_vec(int64_t) d = {0};

    hlo_expect(v, open);
    do
        *sd_push(v->arena, &d) = hlo_take_int(v);
    while (hlo_accept(v, ",") && !v->bad);
    hlo_expect(v, close);
    return (hlo_dims){d.at, d.n};
}

/* [4,2]<=[8], [4,2]<=[2,4]T(1,0): groups that share out 0, 1, 2, ... */
static void take_iota_groups(hlo_lexer *v, hlo_collective *c)
{
    hlo_dims shape = take_bracket(v, "[", "]"), dims, perm = {0};

    hlo_expect(v, "<=");
    dims = take_bracket(v, "[", "]");
    if (hlo_accept(v, "T("))
        perm = take_bracket(v, "", ")");
    if (v->bad)
        return;
    if (shape.n == 2) {
        c->ngroup = shape.at[0];
        c->group_size = shape.at[1];
        c->groups =
            hlo_iota_groups(v->arena, c->ngroup, c->group_size, dims, perm);
    }
    if (!c->groups)
        hlo_fail(v, "groups that share out the devices");
}

static void take_groups(hlo_lexer *v, hlo_collective *c)
{
    sd_vec(hlo_dims) all = {0};
    int most = 0;

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

        most = SD_MAX(most, d.n);
        *sd_push(v->arena, &all) = d;
    } while (hlo_accept(v, ",") && !v->bad);
    hlo_expect(v, "}");
    if ((int64_t)most * all.n > 1 << 20)
        hlo_fail(v, "smaller groups");
    else
        hlo_set_groups(v->arena, all.at, all.n, c);
}

void hlo_read_collective(hlo_attr_reader *r, const hlo_attr_row *row)
{
    hlo_collective *c = sd_arena_new(r->x->arena, hlo_collective);
    hlo_dims d = hlo_attr_dims(r, "dimensions");
    hlo_lexer v;

    c->channel = hlo_attr_int(r, "channel_id", 0);
    c->use_global_ids = hlo_attr_flag(r, "use_global_device_ids");
    c->host_transfer = hlo_attr_flag(r, "is_host_transfer");
    if (hlo_open_attr(r, row->key, &v) ||
        hlo_open_attr(r, "source_target_pairs", &v)) {
        take_groups(&v, c);
        hlo_close_attr(r, &v);
    }
    c->dim = d.n ? d.at[0] : 0;
    c->split_count = c->group_size;
    if (r->in->op == HLO_ALL_GATHER)
        r->in->dims = d;
    r->in->u.coll = c;
}
