/* Attributes of an instruction: from key=value as written to the fields of
 * the op.  Each op takes what it knows; what is left over is an error, except
 * for what XLA adds for itself. */
#include "hlo_attr.h"

#include <stdlib.h>

/* ---- values ---- */

/* A lexer over one attribute's value; false when it is not given. */
bool hlo_open_attr(hlo_attr_reader *r, const char *key, hlo_lexer *v)
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

void hlo_close_attr(hlo_attr_reader *r, hlo_lexer *v)
{
    hlo_skip_space(v);
    if (!v->bad && v->at < v->end)
        hlo_fail(v, "the end of the value");
    if (!v->bad)
        return;
    r->x->at = v->bad_at;
    if (v->status)
        hlo_refuse(r->x, v->status);
    else
        hlo_fail(r->x, v->bad);
}

hlo_dims hlo_attr_dims(hlo_attr_reader *r, const char *key)
{
    hlo_dims d = {0};
    hlo_lexer v;

    if (hlo_open_attr(r, key, &v)) {
        d = hlo_take_dims(&v);
        hlo_close_attr(r, &v);
    }
    return d;
}

int64_t hlo_attr_int(hlo_attr_reader *r, const char *key, int64_t unset)
{
    hlo_lexer v;

    if (!hlo_open_attr(r, key, &v))
        return unset;
    unset = hlo_take_int(&v);
    hlo_close_attr(r, &v);
    return unset;
}

bool hlo_attr_flag(hlo_attr_reader *r, const char *key)
{
    bool on = false;
    hlo_lexer v;

    if (hlo_open_attr(r, key, &v)) {
        on = hlo_accept_word(&v, "true");
        if (!on && !hlo_accept_word(&v, "false"))
            hlo_fail(&v, "true or false");
        hlo_close_attr(r, &v);
    }
    return on;
}

int hlo_name_in(hlo_lexer *v, const char *const *names)
{
    hlo_word w = hlo_take_name(v);

    for (int i = 0; names[i]; i++)
        if (hlo_word_is(w, names[i]))
            return i;
    v->at = w.at;
    hlo_fail(v, "a name of its list");
    return 0;
}

int hlo_attr_choice(hlo_attr_reader *r, const char *key,
                    const char *const *names, int unset)
{
    hlo_lexer v;

    if (!hlo_open_attr(r, key, &v))
        return unset;
    unset = hlo_name_in(&v, names);
    hlo_close_attr(r, &v);
    return unset;
}

/* "..." unescaped, or {...} as it stands. */
const char *hlo_attr_text(hlo_attr_reader *r, const char *key, size_t *len)
{
    const char *s;
    hlo_lexer v;

    *len = 0;
    if (!hlo_open_attr(r, key, &v))
        return NULL;
    hlo_skip_space(&v);
    if (v.at < v.end && *v.at == '"') {
        s = hlo_take_string(&v, len);
        hlo_close_attr(r, &v);
        return s;
    }
    *len = (size_t)(v.end - v.at);
    return sd_arena_str(r->x->arena, v.at, *len);
}

void hlo_attr_want(hlo_attr_reader *r, const char *what)
{
    hlo_fail(r->x, what);
}

/* ---- computations ---- */

static hlo_comp *take_comp(hlo_attr_reader *r, hlo_lexer *v)
{
    hlo_comp *c;
    hlo_word w;

    hlo_skip_space(v);
    if (v->at < v->end && *v->at == '{')
        return r->as->body(r->as->ctx, v);
    w = hlo_take_name(v);
    c = v->bad ? NULL : r->as->find(r->as->ctx, w);
    if (!c) {
        if (!v->bad)
            v->at = w.at;
        hlo_fail(v, "the name of a computation defined above");
    }
    return c;
}

/* One computation under each of the keys. */
static void read_comps(hlo_attr_reader *r, int n, const char *const *key)
{
    hlo_comp *c[2] = {NULL, NULL};
    hlo_lexer v;

    for (int i = 0; i < n; i++) {
        if (!hlo_open_attr(r, key[i], &v)) {
            hlo_attr_want(r, "the computation that this op needs");
            return;
        }
        c[i] = take_comp(r, &v);
        hlo_close_attr(r, &v);
    }
    if (!r->x->bad)
        hlo_set_comps(r->in, n, c);
}

void hlo_attr_comp_if(hlo_attr_reader *r, const char *key)
{
    hlo_comp *c;
    hlo_lexer v;

    if (!hlo_open_attr(r, key, &v))
        return;
    c = take_comp(r, &v);
    hlo_close_attr(r, &v);
    if (!r->x->bad)
        hlo_set_comps(r->in, 1, &c);
}

bool hlo_attr_comp_list(hlo_attr_reader *r, const char *key)
{
    sd_vec(hlo_comp *) c = {0};
    hlo_lexer v;

    if (!hlo_open_attr(r, key, &v))
        return false;
    hlo_expect(&v, "{");
    if (!hlo_accept(&v, "}")) {
        do
            *sd_push(r->x->arena, &c) = take_comp(r, &v);
        while (hlo_accept(&v, ","));
        hlo_expect(&v, "}");
    }
    hlo_close_attr(r, &v);
    if (!r->x->bad)
        hlo_set_comps(r->in, c.n, c.at);
    return true;
}

/* ---- by kind ---- */

static void read_dims(hlo_attr_reader *r, const hlo_attr_row *row)
{
    *(hlo_dims *)hlo_attr_field(row, r->in) = hlo_attr_dims(r, row->key);
}

static void read_dim(hlo_attr_reader *r, const hlo_attr_row *row)
{
    int64_t v = hlo_attr_int(r, row->key, row->unset);

    *(hlo_dims *)hlo_attr_field(row, r->in) = hlo_dims_copy(r->x->arena, &v, 1);
}

static void read_int(hlo_attr_reader *r, const hlo_attr_row *row)
{
    *(int64_t *)hlo_attr_field(row, r->in) =
        hlo_attr_int(r, row->key, row->unset);
}

static void read_bits(hlo_attr_reader *r, const hlo_attr_row *row)
{
    int64_t v = hlo_attr_int(r, row->key, row->unset);

    if (v < 0 || v > 1 << 20)
        hlo_fail(r->x, "a number of bits, 0 to 1048576");
    *(int *)hlo_attr_field(row, r->in) = (int)v;
}

static void read_flag(hlo_attr_reader *r, const hlo_attr_row *row)
{
    *(bool *)hlo_attr_field(row, r->in) = hlo_attr_flag(r, row->key);
}

static void read_choice(hlo_attr_reader *r, const hlo_attr_row *row)
{
    int v = hlo_attr_choice(r, row->key, row->names, (int)row->unset);

    if (v < row->least)
        hlo_attr_want(r, row->want);
    *(int *)hlo_attr_field(row, r->in) = v;
}

static void read_real(hlo_attr_reader *r, const hlo_attr_row *row)
{
    size_t len;
    const char *s = hlo_attr_text(r, row->key, &len);
    char *end;

    *(double *)hlo_attr_field(row, r->in) = s ? (double)strtof(s, &end) : 0;
    if (s && *end)
        hlo_attr_want(r, "a number for epsilon");
}

static void read_compare(hlo_attr_reader *r, const hlo_attr_row *row)
{
    sd_dtype t = r->in->narg ? r->in->arg[0]->shape->dtype : SD_F32;

    r->in->u.compare.type = (hlo_cmp_type)hlo_attr_choice(
        r, row->key, hlo_cmp_type_name, (int)hlo_usual_compare(t));
}

static void read_scan(hlo_attr_reader *r, const hlo_attr_row *row)
{
    hlo_dims d = hlo_attr_dims(r, row->key);

    if (hlo_attr_int(r, "num_carries", -1) >= 0)
        hlo_refuse(r->x, sd_error(SD_UNIMPLEMENTED, "scan with carries"));
    r->in->u.scan.reverse = hlo_attr_flag(r, "reverse");
    r->in->u.scan.exclusive = hlo_attr_flag(r, "exclusive");
    r->in->u.scan.dim = d.n == 1 ? d.at[0] : -1;
}

static void read_topk(hlo_attr_reader *r, const hlo_attr_row *row)
{
    int64_t k = hlo_attr_int(r, row->key, -1);

    r->in->dims = hlo_dims_copy(r->x->arena, &k, 1);
    r->in->u.sort.stable = true;
    if (!hlo_attr_flag(r, "largest"))
        hlo_attr_want(r, "largest=true");
}

static void (*const read_kind[HLO_A_KIND_COUNT])(hlo_attr_reader *r,
                                                 const hlo_attr_row *row) = {
    [HLO_A_DIMS] = read_dims,
    [HLO_A_DIM] = read_dim,
    [HLO_A_INT] = read_int,
    [HLO_A_BITS] = read_bits,
    [HLO_A_FLAG] = read_flag,
    [HLO_A_CHOICE] = read_choice,
    [HLO_A_REAL] = read_real,
    [HLO_A_COMPARE] = read_compare,
    [HLO_A_SLICE] = hlo_read_slice,
    [HLO_A_PAD] = hlo_read_pad,
    [HLO_A_WINDOW] = hlo_read_window,
    [HLO_A_LABELS] = hlo_read_labels,
    [HLO_A_PRECISION] = hlo_read_precision,
    [HLO_A_ALGORITHM] = hlo_read_algorithm,
    [HLO_A_SCAN] = read_scan,
    [HLO_A_TOPK] = read_topk,
    [HLO_A_CUSTOM] = hlo_read_custom,
    [HLO_A_COLLECTIVE] = hlo_read_collective,
};

/* ---- of an op ---- */

static void read_op_comps(hlo_attr_reader *r, hlo_op op)
{
    static const char *const branch[] = {"true_computation",
                                         "false_computation"};
    const char *const *key = branch;
    int n = 2;

    if (!(hlo_op_table[op].props & HLO_P_REGION))
        return;
    if (op != HLO_CONDITIONAL)
        key = hlo_comp_keys(op, &n);
    else if (hlo_attr_comp_list(r, "branch_computations"))
        return;
    read_comps(r, n, key);
}

static void read_op(hlo_attr_reader *r)
{
    hlo_op op = r->in->op; /* a custom-call may turn out to be a scan */

    hlo_attr_begin(r->x->arena, r->in);
    hlo_for_each_attr(row, op)
        if (row->key)
            read_kind[row->kind](r, row);
    read_op_comps(r, op);
}

/* metadata={op_name="..." source_file="..." source_line=3 ...} */
static void read_metadata(hlo_attr_reader *r)
{
    int64_t frame = 0;
    size_t len;
    hlo_lexer v;

    if (!hlo_open_attr(r, "metadata", &v))
        return;
    hlo_expect(&v, "{");
    while (!v.bad && !hlo_accept(&v, "}")) {
        hlo_word key = hlo_take_name(&v);

        hlo_expect(&v, "=");
        hlo_skip_space(&v);
        if (hlo_word_is(key, "stack_frame_id")) {
            frame = hlo_take_int(&v);
        } else if (hlo_word_is(key, "op_name")) {
            r->in->op_name = hlo_take_string(&v, &len);
        } else if (hlo_word_is(key, "source_file")) {
            r->in->source_file = hlo_take_string(&v, &len);
        } else if (hlo_word_is(key, "source_line")) {
            r->in->source_line = (int)hlo_take_int(&v);
        } else if (v.at < v.end && *v.at == '"') {
            hlo_take_string(&v, &len);
        } else if (v.at < v.end && *v.at == '{') {
            hlo_skip_braces(&v);
        } else if (hlo_take_name(&v).len == 0) {
            hlo_fail(&v, "a value");
        }
    }
    hlo_close_attr(r, &v);
    if (frame && !r->in->source_file)
        r->as->frame(r->as->ctx, frame, r->in);
}

/* What says nothing of the result: hints for XLA's own passes and devices. */
static bool is_ours_to_skip(hlo_word key)
{
    static const char *const name[] = {"backend_config",
                                       "control-predecessors",
                                       "execution_thread",
                                       "origin",
                                       "original_value",
                                       "statistics",
                                       "is_scheduled",
                                       "outer_dimension_partitions",
                                       "type",
                                       "infeed_config",
                                       "outfeed_config",
                                       "constrain_layout",
                                       "result_accuracy",
                                       "parameter_replication",
                                       "schedule",
                                       "is_composite",
                                       "async_execution_thread",
                                       "padding_type",
                                       "outfeed_shape",
                                       "is_associative"};

    for (size_t i = 0; i < SD_COUNTOF(name); i++)
        if (hlo_word_is(key, name[i]))
            return true;
    return false;
}

void hlo_parse_attrs(hlo_lexer *x, hlo_attrs *as, hlo_inst *in)
{
    hlo_attr_reader r = {x, as, in};
    size_t len;

    if (x->bad)
        return;
    read_op(&r);
    read_metadata(&r);
    in->sharding = hlo_attr_text(&r, "sharding", &len);
    in->frontend_attrs = hlo_attr_text(&r, "frontend_attributes", &len);
    for (int i = 0; i < as->n && !x->bad; i++)
        if (!as->at[i].used && !is_ours_to_skip(as->at[i].key) &&
            !(in->op == HLO_CUSTOM_CALL && hlo_is_custom_hint(as->at[i].key))) {
            x->at = as->at[i].key.at;
            hlo_fail(x, "an attribute of this op, once");
        }
}
