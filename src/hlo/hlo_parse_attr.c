/* Attributes of an instruction: from key=value as written to the fields of
 * the op.  Each op takes what it knows; what is left over is an error, except
 * for what XLA adds for itself. */
#include "hlo_text.h"

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

static int small(hlo_attr_reader *r, const char *key)
{
    int64_t v = hlo_attr_int(r, key, 0);

    if (v < 0 || v > 1 << 20)
        hlo_fail(r->x, "a number of bits, 0 to 1048576");
    return (int)v;
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

void hlo_attr_comp(hlo_attr_reader *r, const char *key)
{
    read_comps(r, 1, &key);
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

/* ---- by op ---- */

static void read_compare(hlo_attr_reader *r)
{
    hlo_lexer v;
    sd_dtype t = r->in->narg ? r->in->arg[0]->shape->dtype : SD_F32;

    if (!hlo_open_attr(r, "direction", &v)) {
        hlo_attr_want(r, "direction=EQ, NE, GE, GT, LE or LT");
        return;
    }
    r->in->u.compare.dir = (hlo_cmp_dir)hlo_name_in(&v, hlo_cmp_dir_name);
    hlo_close_attr(r, &v);
    r->in->u.compare.type = (hlo_cmp_type)hlo_attr_choice(
        r, "type", hlo_cmp_type_name, (int)hlo_usual_compare(t));
}

static void read_norm(hlo_attr_reader *r)
{
    size_t len;
    const char *s = hlo_attr_text(r, "epsilon", &len);
    char *end;

    r->in->u.norm.epsilon = s ? (double)strtof(s, &end) : 0;
    if (s && *end)
        hlo_attr_want(r, "a number for epsilon");
    r->in->u.norm.feature = hlo_attr_int(r, "feature_index", 0);
}

static void read_linalg(hlo_attr_reader *r)
{
    r->in->u.linalg.lower = hlo_attr_flag(r, "lower");
    r->in->u.linalg.left = hlo_attr_flag(r, "left_side");
    r->in->u.linalg.unit = hlo_attr_flag(r, "unit_diagonal");
    r->in->u.linalg.trans = (hlo_transpose_kind)hlo_attr_choice(
        r, "transpose_a", hlo_transpose_name, HLO_TRANSPOSE_NONE);
    if (!r->in->u.linalg.trans)
        hlo_attr_want(r, "transpose_a=NO_TRANSPOSE, TRANSPOSE or ADJOINT");
}

static void read_conditional(hlo_attr_reader *r)
{
    static const char *const key[] = {"true_computation", "false_computation"};

    if (!hlo_attr_comp_list(r, "branch_computations"))
        read_comps(r, 2, key);
}

static void read_scan(hlo_attr_reader *r)
{
    hlo_dims d = hlo_attr_dims(r, "dimensions");

    if (hlo_attr_int(r, "num_carries", -1) >= 0)
        hlo_refuse(r->x, sd_error(SD_UNIMPLEMENTED, "scan with carries"));
    r->in->u.scan.reverse = hlo_attr_flag(r, "reverse");
    r->in->u.scan.exclusive = hlo_attr_flag(r, "exclusive");
    r->in->u.scan.dim = d.n == 1 ? d.at[0] : -1;
    hlo_attr_comp(r, "to_apply");
}

static void read_topk(hlo_attr_reader *r)
{
    int64_t k = hlo_attr_int(r, "k", -1);

    r->in->dims = hlo_dims_copy(r->x->arena, &k, 1);
    r->in->u.sort.stable = true;
    if (!hlo_attr_flag(r, "largest"))
        hlo_attr_want(r, "largest=true");
}

static void read_fft(hlo_attr_reader *r)
{
    hlo_dims d;

    r->in->u.fft.type =
        (hlo_fft_type)hlo_attr_choice(r, "fft_type", hlo_fft_name, 0);
    d = hlo_attr_dims(r, "fft_length");
    r->in->u.fft.length = d.at;
    r->in->u.fft.n = d.n;
}

static void read_iota(hlo_attr_reader *r)
{
    int64_t d = hlo_attr_int(r, "iota_dimension", 0);

    r->in->dims = hlo_dims_copy(r->x->arena, &d, 1);
}

static void read_op(hlo_attr_reader *r)
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
        in->dims = hlo_attr_dims(r, "dimensions");
        hlo_attr_comp(r, "to_apply");
        break;
    case HLO_BROADCAST:
    case HLO_TRANSPOSE:
    case HLO_REVERSE:
    case HLO_CONCATENATE:
    case HLO_GET_DIMENSION_SIZE:
    case HLO_SET_DIMENSION_SIZE:
        in->dims = hlo_attr_dims(r, "dimensions");
        break;
    case HLO_SLICE:
        hlo_read_slice(r);
        break;
    case HLO_PAD:
        hlo_read_pad(r);
        break;
    case HLO_DYNAMIC_SLICE:
        in->dims = hlo_attr_dims(r, "dynamic_slice_sizes");
        break;
    case HLO_GATHER:
    case HLO_SCATTER:
        hlo_read_gather(r);
        break;
    case HLO_REDUCE_WINDOW:
        in->u.window.dim = hlo_read_window(r, &in->u.window.n);
        hlo_attr_comp(r, "to_apply");
        break;
    case HLO_SELECT_AND_SCATTER:
        in->u.window.dim = hlo_read_window(r, &in->u.window.n);
        read_comps(r, 2, sas);
        break;
    case HLO_SCAN:
        read_scan(r);
        break;
    case HLO_SORT:
        in->dims = hlo_attr_dims(r, "dimensions");
        in->u.sort.stable = hlo_attr_flag(r, "is_stable");
        hlo_attr_comp(r, "to_apply");
        break;
    case HLO_TOPK:
        read_topk(r);
        break;
    case HLO_DOT:
        hlo_read_dot(r);
        break;
    case HLO_CONVOLUTION:
        hlo_read_conv(r);
        break;
    case HLO_RNG:
        in->u.rng.distribution = (hlo_rng_distribution)hlo_attr_choice(
            r, "distribution", hlo_dist_name, 0);
        break;
    case HLO_RNG_BIT_GENERATOR:
        in->u.rng.algo =
            (hlo_rng_algo)hlo_attr_choice(r, "algorithm", hlo_rng_name, 0);
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
        in->u.tuple.index = hlo_attr_int(r, "index", -1);
        break;
    case HLO_CALL:
        hlo_attr_comp(r, "to_apply");
        break;
    case HLO_FUSION:
        in->u.fusion.kind =
            (hlo_fusion_kind)hlo_attr_choice(r, "kind", hlo_fusion_name, 0);
        hlo_attr_comp(r, "calls");
        break;
    case HLO_WHILE:
        read_comps(r, 2, loop);
        break;
    case HLO_CONDITIONAL:
        read_conditional(r);
        break;
    case HLO_CUSTOM_CALL:
        hlo_read_custom(r);
        break;
    default:
        if (hlo_info(in)->cls == HLO_C_COLLECTIVE ||
            hlo_info(in)->cls == HLO_C_TOKENS)
            hlo_read_collective(r);
    }
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
