/* What text and protobuf share: how a module looks from outside where that
 * differs from how passes see it. */
#include "hlo_text.h"

#include <stdio.h>

void hlo_print_quoted(sd_buf *b, const char *s, size_t len)
{
    sd_buf_str(b, "\"");
    for (size_t i = 0; i < len; i++) {
        unsigned char ch = (unsigned char)s[i];

        if (ch == '"' || ch == '\\')
            sd_buf_fmt(b, "\\%c", ch);
        else if (ch == '\n')
            sd_buf_str(b, "\\n");
        else if (ch < ' ' || ch >= 127)
            sd_buf_fmt(b, "\\%03o", ch);
        else
            sd_buf_u8(b, ch);
    }
    sd_buf_str(b, "\"");
}

hlo_cmp_type hlo_usual_compare(sd_dtype t)
{
    switch (sd_dtype_kind(t)) {
    case SD_K_SINT:
        return HLO_CMP_SIGNED;
    case SD_K_UINT:
    case SD_K_PRED:
        return HLO_CMP_UNSIGNED;
    default:
        return HLO_CMP_FLOAT;
    }
}

/* XLA's ops without a row of ours: they are named as such. */
static const char *const not_done[] = {
    "add-dependency", "all-gather-done", "all-gather-start", "all-reduce-done",
    "all-reduce-start", "async-done", "async-start", "async-update",
    "collective-permute-done", "collective-permute-start", "copy-done",
    "copy-start", "domain", "dynamic-reshape", "mulhi", "ragged-all-to-all",
    "ragged-dot", "rng-get-and-update-state", "scaled-dot",
    /* async forms of any op */
    "call-start", "call-update", "call-done", "custom-call-start",
    "custom-call-update", "custom-call-done", "fusion-start", "fusion-update",
    "fusion-done", "all-to-all-start", "all-to-all-done",
    "reduce-scatter-start", "reduce-scatter-done", "collective-broadcast-start",
    "collective-broadcast-done", "dynamic-slice-start", "dynamic-slice-done",
    "dynamic-update-slice-start", "dynamic-update-slice-done", "slice-start",
    "slice-done",
    /* StableHLO has them as composites; XLA's newest text as ops */
    "acos", "acosh", "asin", "asinh", "atanh", "cosh", "sinh"};

bool hlo_op_not_done(const char *name, size_t len)
{
    for (size_t i = 0; i < SD_COUNTOF(not_done); i++)
        if (strlen(not_done[i]) == len && !memcmp(not_done[i], name, len))
            return true;
    return false;
}

/* ---- scan as a custom call ---- */

/* The keys in the order in which XLA would write them. */
#define SCAN_CONFIG \
    "{\"dimension\":%" PRId64 ",\"exclusive\":%d,\"reverse\":%d}"

const hlo_inst *hlo_masked(const hlo_inst *in, hlo_guise *g)
{
    if (in->op != HLO_SCAN)
        return in;
    snprintf(g->config, sizeof g->config, SCAN_CONFIG, in->u.scan.dim,
             in->u.scan.exclusive, in->u.scan.reverse);
    g->custom = (hlo_custom){.target = HLO_SCAN_TARGET,
                             .config = g->config,
                             .config_len = strlen(g->config),
                             .api_version = 1};
    g->in = *in;
    g->in.op = HLO_CUSTOM_CALL;
    g->in.u.custom = &g->custom;
    return &g->in;
}

bool hlo_is_guise(const hlo_custom *c)
{
    return c->target && strcmp(c->target, HLO_SCAN_TARGET) == 0;
}

bool hlo_unmask(hlo_inst *in)
{
    const char *config = in->u.custom->config;
    int64_t dim;
    int reverse, exclusive;

    if (sscanf(config, SCAN_CONFIG, &dim, &exclusive, &reverse) != 3)
        return false;
    in->op = HLO_SCAN;
    in->parent->module->made[HLO_SCAN] = true;
    in->u.scan.dim = dim;
    in->u.scan.reverse = reverse != 0;
    in->u.scan.exclusive = exclusive != 0;
    return true;
}

/* ---- layouts of custom calls ---- */

bool hlo_custom_is_laid_out(const hlo_custom *c)
{
    return c->operand_layout || c->result_layout;
}

static sd_shape laid_out(const sd_shape *s, hlo_dims layout)
{
    sd_shape to = *s;

    to.layout = hlo_is_row_major(layout) ? NULL : layout.at;
    return to;
}

sd_shape hlo_custom_operand(const hlo_inst *in, int i)
{
    const hlo_custom *c = in->u.custom;

    return laid_out(in->arg[i]->shape,
                    c->operand_layout ? c->operand_layout[i] : (hlo_dims){0});
}

const sd_shape *hlo_custom_result(sd_arena *a, const hlo_inst *in)
{
    const hlo_dims *layout = in->u.custom->result_layout;
    const sd_shape *s = in->shape, **elem;
    sd_shape one;

    if (!layout)
        return s;
    if (s->dtype != SD_TUPLE) {
        one = laid_out(s, layout[0]);
        return sd_arena_copy(a, &one, sizeof one);
    }
    elem = sd_arena_array(a, const sd_shape *, s->nelem + 1);
    for (int i = 0; i < s->nelem; i++) {
        one = laid_out(s->elem[i], layout[i]);
        elem[i] = sd_arena_copy(a, &one, sizeof one);
    }
    return sd_shape_tuple(a, s->nelem, elem);
}

static bool all_row_major(const hlo_dims *d, int n)
{
    for (int i = 0; i < n; i++)
        if (d[i].n)
            return false;
    return true;
}

void hlo_custom_take_layouts(sd_arena *a, hlo_inst *in, hlo_custom *c)
{
    bool tuple = in->shape->dtype == SD_TUPLE;
    int n = tuple ? in->shape->nelem : 1;
    const sd_shape **plain = sd_arena_array(a, const sd_shape *, n + 1);

    c->result_layout = sd_arena_array(a, hlo_dims, n + 1);
    for (int i = 0; i < n; i++) {
        const sd_shape *s = tuple ? in->shape->elem[i] : in->shape;
        sd_shape *to = sd_arena_copy(a, s, sizeof *s);

        if (s->layout)
            c->result_layout[i] = (hlo_dims){s->layout, s->rank};
        to->layout = NULL;
        plain[i] = to;
    }
    if (all_row_major(c->result_layout, n))
        c->result_layout = NULL;
    else
        in->shape = tuple ? sd_shape_tuple(a, n, plain) : plain[0];
    if (c->operand_layout && all_row_major(c->operand_layout, in->narg))
        c->operand_layout = NULL;
}

/* ---- replica groups ---- */

const int64_t *hlo_iota_groups(sd_arena *a, int64_t n, int64_t size,
                               hlo_dims dims, hlo_dims perm)
{
    int64_t total = 1, stride[SD_MAX_RANK], *to;

    if (dims.n < 1 || dims.n > SD_MAX_RANK || (perm.n && perm.n != dims.n) ||
        !hlo_dims_fit(perm, dims.n))
        return NULL;
    for (int i = dims.n - 1; i >= 0; i--) {
        stride[i] = total;
        if (dims.at[i] < 1 || !sd_mul_i64(total, dims.at[i], &total))
            return NULL;
    }
    if (total > 1 << 20 || n < 1 || size < 1 || n > total ||
        size != total / n || total % n)
        return NULL;
    to = sd_arena_array(a, int64_t, total);
    for (int64_t i = 0; i < total; i++) {
        int64_t rest = i;

        for (int k = dims.n - 1; k >= 0; k--) {
            int d = perm.n ? (int)perm.at[k] : k;

            to[i] += rest % dims.at[d] * stride[d];
            rest /= dims.at[d];
        }
    }
    return to;
}

int hlo_group_members(const hlo_collective *c, int64_t group)
{
    int n = (int)c->group_size;

    while (n > 0 && c->groups[group * c->group_size + n - 1] < 0)
        n--;
    return n;
}

void hlo_set_groups(sd_arena *a, const hlo_dims *group, int n,
                    hlo_collective *to)
{
    int size = 0;
    int64_t *at;

    for (int i = 0; i < n; i++)
        size = SD_MAX(size, group[i].n);
    at = sd_arena_array(a, int64_t, sd_mul_or_die((size_t)n, (size_t)size) + 1);
    for (int i = 0; i < n; i++)
        for (int k = 0; k < size; k++)
            at[(size_t)i * (size_t)size + (size_t)k] =
                k < group[i].n ? group[i].at[k] : -1;
    to->groups = at;
    to->ngroup = n;
    to->group_size = size;
}

/* ---- order, entry ---- */

static void add_after_callees(sd_arena *a, const hlo_comp *c, sd_map *done,
                              hlo_comp_list *to)
{
    if (sd_map_has(done, sd_key(c)))
        return;
    sd_map_set(done, sd_key(c), (void *)(uintptr_t)1);
    hlo_for_each_inst(in, c)
        for (int i = 0; i < in->ncomp; i++)
            add_after_callees(a, in->comp[i], done, to);
    *sd_push(a, to) = c;
}

hlo_comp_list hlo_callees_first(sd_arena *a, const hlo_module *m)
{
    hlo_comp_list to = {0};
    sd_map *done = sd_map_create(a);

    hlo_for_each_comp(c, m)
        add_after_callees(a, c, done, &to);
    return to;
}

sd_status hlo_check_entry(const hlo_module *m, hlo_dims donors)
{
    const sd_shape *root = m->entry->root->shape;
    int nout = sd_shape_nresult(root);

    for (int i = 0; i < m->nalias; i++)
        if (m->alias[i].param < 0 || m->alias[i].param >= m->entry->nparam ||
            m->alias[i].output_index < 0 || m->alias[i].output_index >= nout)
            return sd_error(SD_INVALID,
                            "alias of output %" PRId64 " and parameter %" PRId64
                            ": the entry has %d and %d",
                            m->alias[i].output_index, m->alias[i].param, nout,
                            m->entry->nparam);
    for (int i = 0; i < donors.n; i++)
        if (donors.at[i] < 0 || donors.at[i] >= m->entry->nparam)
            return sd_error(SD_INVALID,
                            "donor %" PRId64 ": the entry has %d parameters",
                            donors.at[i], m->entry->nparam);
    return NULL;
}

int64_t hlo_memory_space(const char *const *kind, int i)
{
    return kind && kind[i] && strcmp(kind[i], "device") != 0 ? HLO_HOST_SPACE
                                                             : 0;
}

bool hlo_set_memory(sd_arena *a, const char ***kind, int n, int i,
                    int64_t space)
{
    if (space != HLO_HOST_SPACE)
        return space == 0;
    if (!*kind)
        *kind = sd_arena_array(a, const char *, n + 1);
    (*kind)[i] = "pinned_host";
    return true;
}

sd_status hlo_bad_memory(void)
{
    return sd_error(SD_UNIMPLEMENTED,
                    "an argument or result in another memory space than 0 "
                    "(device) and %d (pinned_host)",
                    HLO_HOST_SPACE);
}

/* ---- older forms ---- */

static hlo_inst *start_at(hlo_comp *c, const char *name, hlo_inst *starts,
                          int64_t i)
{
    sd_arena *a = c->module->arena;
    const sd_shape *s = starts->shape;
    int64_t one = 1, *at = sd_arena_array(a, int64_t, 3);
    hlo_inst *x;

    at[0] = i;
    at[1] = i + 1;
    at[2] = 1;
    x = hlo_inst_create_named(c, NULL, HLO_SLICE,
                              sd_arena_fmt(a, "%s.starts", name),
                              sd_shape_make(a, s->dtype, 1, &one), 1, &starts);
    x->u.slice.start = at;
    x->u.slice.limit = at + 1;
    x->u.slice.stride = at + 2;
    return hlo_inst_create_named(c, NULL, HLO_RESHAPE,
                                 sd_arena_fmt(a, "%s.start", name),
                                 sd_shape_make(a, s->dtype, 0, NULL), 1, &x);
}

int hlo_new_operands(hlo_comp *c, hlo_op op, const char *name, int n,
                     hlo_inst ***arg)
{
    int from = op == HLO_DYNAMIC_SLICE ? 1 : 2, rank;
    const sd_shape *x, *s;
    hlo_inst **all;

    if ((op != HLO_DYNAMIC_SLICE && op != HLO_DYNAMIC_UPDATE_SLICE) ||
        n != from + 1)
        return n;
    x = (*arg)[0]->shape;
    s = (*arg)[from]->shape;
    if (!sd_shape_is_array(x) || !sd_shape_is_array(s) || s->rank != 1 ||
        s->dim[0] != x->rank)
        return n;
    rank = x->rank;
    all = sd_arena_array(c->module->arena, hlo_inst *, from + rank + 1);
    memcpy(all, *arg, sizeof *all * (size_t)from);
    for (int i = 0; i < rank; i++)
        all[from + i] = start_at(c, name, (*arg)[from], i);
    *arg = all;
    return from + rank;
}
