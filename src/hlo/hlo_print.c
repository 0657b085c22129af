/* The graph as text, in XLA's grammar, so that people and tools read it. */
#include "hlo_text.h"

#include <stdio.h>

const char *const hlo_cmp_dir_name[] = {"EQ", "NE", "GE", "GT",
                                        "LE", "LT", NULL};
const char *const hlo_cmp_type_name[] = {"FLOAT", "TOTALORDER", "SIGNED",
                                         "UNSIGNED", NULL};
const char *const hlo_fft_name[] = {"FFT", "IFFT", "RFFT", "IRFFT", NULL};
const char *const hlo_rng_name[] = {"rng_default", "rng_three_fry",
                                    "rng_philox", NULL};
const char *const hlo_dist_name[] = {"rng_invalid", "rng_uniform", "rng_normal",
                                     NULL};
const char *const hlo_transpose_name[] = {"TRANSPOSE_INVALID", "NO_TRANSPOSE",
                                          "TRANSPOSE", "ADJOINT", NULL};
const char *const hlo_fusion_name[] = {"kLoop", "kInput", "kOutput", "kCustom",
                                       NULL};
const char *const hlo_prec_name[] = {"default", "high", "highest", NULL};
const char *const hlo_api_name[] = {
    "API_VERSION_UNSPECIFIED",      "API_VERSION_ORIGINAL",
    "API_VERSION_STATUS_RETURNING", "API_VERSION_STATUS_RETURNING_UNIFIED",
    "API_VERSION_TYPED_FFI",        NULL};

/* ---- small parts ---- */

static void print_dims(sd_buf *b, const char *key, const int64_t *at, int n)
{
    sd_buf_fmt(b, ", %s={", key);
    for (int i = 0; i < n; i++)
        sd_buf_fmt(b, i ? ",%" PRId64 : "%" PRId64, at[i]);
    sd_buf_str(b, "}");
}

static void print_shape(sd_buf *b, const sd_shape *s, bool layout)
{
    if (s->dtype != SD_TUPLE) {
        sd_shape_print(b, s, layout);
        return;
    }
    sd_buf_str(b, "(");
    for (int i = 0; i < s->nelem; i++) {
        sd_buf_str(b, i ? ", " : "");
        if (i && i % 5 == 0) /* so that a person can count */
            sd_buf_fmt(b, "/*index=%d*/", i);
        print_shape(b, s->elem[i], layout);
    }
    sd_buf_str(b, ")");
}

static void print_quoted(sd_buf *b, const char *s, size_t len)
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

/* Text in braces stands as it is when the parser would take it as one value,
 * else as a string. */
static void print_text(sd_buf *b, const char *s, size_t len)
{
    int depth = 0;
    bool quoted = false, plain = len > 1 && s[0] == '{' && s[len - 1] == '}';

    for (size_t i = 0; plain && i < len; i++) {
        if (quoted) {
            if (s[i] == '\\')
                i++;
            else if (s[i] == '"')
                quoted = false;
        } else if (s[i] == '"') {
            quoted = true;
        } else if (s[i] == '{') {
            depth++;
        } else if (s[i] == '}') {
            plain = --depth > 0 || i == len - 1;
        } else if (s[i] == '/' || (unsigned char)s[i] < ' ') {
            plain = false; /* no comments, no lines inside */
        }
    }
    if (plain && depth == 0 && !quoted)
        sd_buf_add(b, s, len);
    else
        print_quoted(b, s, len);
}

/* ---- windows and convolutions ---- */

typedef enum { W_SIZE, W_STRIDE, W_PAD, W_BASE, W_WINDOW, W_REVERSE } part;

static bool is_default(const hlo_window_dim *w, part p)
{
    switch (p) {
    case W_SIZE:
        return false;
    case W_STRIDE:
        return w->stride == 1;
    case W_PAD:
        return w->pad_low == 0 && w->pad_high == 0;
    case W_BASE:
        return w->base_dilation == 1;
    case W_WINDOW:
        return w->window_dilation == 1;
    case W_REVERSE:
        return !w->reversal;
    }
    return true;
}

static void print_window_part(sd_buf *b, const hlo_window_dim *w, int n, part p,
                              const char *key)
{
    bool any = false;

    for (int i = 0; i < n; i++)
        any |= !is_default(&w[i], p);
    if (!any)
        return;
    sd_buf_fmt(b, p == W_SIZE ? "%s=" : " %s=", key);
    for (int i = 0; i < n; i++) {
        int64_t v = p == W_SIZE     ? w[i].size
                    : p == W_STRIDE ? w[i].stride
                    : p == W_PAD    ? w[i].pad_low
                    : p == W_BASE   ? w[i].base_dilation
                    : p == W_WINDOW ? w[i].window_dilation
                                    : w[i].reversal;

        sd_buf_fmt(b, i ? "x%" PRId64 : "%" PRId64, v);
        if (p == W_PAD)
            sd_buf_fmt(b, "_%" PRId64, w[i].pad_high);
    }
}

static void print_window(sd_buf *b, const hlo_window_dim *w, int n)
{
    sd_buf_str(b, ", window={");
    print_window_part(b, w, n, W_SIZE, "size");
    print_window_part(b, w, n, W_STRIDE, "stride");
    print_window_part(b, w, n, W_PAD, "pad");
    print_window_part(b, w, n, W_BASE, "lhs_dilate");
    print_window_part(b, w, n, W_WINDOW, "rhs_dilate");
    print_window_part(b, w, n, W_REVERSE, "rhs_reversal");
    sd_buf_str(b, "}");
}

static void print_labels(sd_buf *b, const hlo_conv *c, int64_t first,
                         int64_t second, hlo_dims spatial, const char *letter)
{
    char text[SD_MAX_RANK + 3] = {0};

    text[first] = letter[0];
    text[second] = letter[1];
    for (int i = 0; i < c->nspatial; i++)
        text[spatial.at[i]] = (char)('0' + i);
    sd_buf_str(b, text);
}

static void print_precision(sd_buf *b, const hlo_prec *p)
{
    if (p[0] != HLO_PREC_DEFAULT || p[1] != HLO_PREC_DEFAULT)
        sd_buf_fmt(b, ", operand_precision={%s,%s}", hlo_prec_name[p[0]],
                   hlo_prec_name[p[1]]);
}

static void print_conv(sd_buf *b, const hlo_conv *c)
{
    if (c->nspatial)
        print_window(b, c->win, c->nspatial);
    sd_buf_str(b, ", dim_labels=");
    print_labels(b, c, c->in_batch, c->in_feature, c->in_spatial, "bf");
    sd_buf_str(b, "_");
    print_labels(b, c, c->k_in, c->k_out, c->k_spatial, "io");
    sd_buf_str(b, "->");
    print_labels(b, c, c->out_batch, c->out_feature, c->out_spatial, "bf");
    if (c->feature_groups != 1)
        sd_buf_fmt(b, ", feature_group_count=%" PRId64, c->feature_groups);
    if (c->batch_groups != 1)
        sd_buf_fmt(b, ", batch_group_count=%" PRId64, c->batch_groups);
    print_precision(b, c->prec);
}

static void print_dot(sd_buf *b, const hlo_dot *d)
{
    if (d->lhs_batch.n)
        print_dims(b, "lhs_batch_dims", d->lhs_batch.at, d->lhs_batch.n);
    print_dims(b, "lhs_contracting_dims", d->lhs_contract.at,
               d->lhs_contract.n);
    if (d->rhs_batch.n)
        print_dims(b, "rhs_batch_dims", d->rhs_batch.at, d->rhs_batch.n);
    print_dims(b, "rhs_contracting_dims", d->rhs_contract.at,
               d->rhs_contract.n);
    print_precision(b, d->prec);
    if (d->algorithm)
        sd_buf_fmt(b, ", algorithm=%s", d->algorithm);
}

/* ---- gather and scatter ---- */

static void print_gather(sd_buf *b, const hlo_inst *in)
{
    const hlo_gather *g = in->u.gather;
    bool s = in->op == HLO_SCATTER;

    print_dims(b, s ? "update_window_dims" : "offset_dims", g->offset_dims.at,
               g->offset_dims.n);
    print_dims(b, s ? "inserted_window_dims" : "collapsed_slice_dims",
               g->collapsed.at, g->collapsed.n);
    print_dims(b, s ? "scatter_dims_to_operand_dims" : "start_index_map",
               g->index_map.at, g->index_map.n);
    if (g->operand_batch.n) {
        print_dims(b, s ? "input_batching_dims" : "operand_batching_dims",
                   g->operand_batch.at, g->operand_batch.n);
        print_dims(b,
                   s ? "scatter_indices_batching_dims"
                     : "start_indices_batching_dims",
                   g->indices_batch.at, g->indices_batch.n);
    }
    sd_buf_fmt(b, ", index_vector_dim=%" PRId64, g->index_vector_dim);
    if (!s)
        print_dims(b, "slice_sizes", g->slice_sizes.at, g->slice_sizes.n);
    if (g->sorted)
        sd_buf_str(b, ", indices_are_sorted=true");
    if (g->unique)
        sd_buf_str(b, ", unique_indices=true");
}

/* ---- slices and pads ---- */

static void print_slice(sd_buf *b, const hlo_inst *in)
{
    sd_buf_str(b, ", slice={");
    for (int i = 0; i < in->shape->rank; i++) {
        sd_buf_fmt(b, "%s[%" PRId64 ":%" PRId64, i ? ", " : "",
                   in->u.slice.start[i], in->u.slice.limit[i]);
        if (in->u.slice.stride[i] != 1)
            sd_buf_fmt(b, ":%" PRId64, in->u.slice.stride[i]);
        sd_buf_str(b, "]");
    }
    sd_buf_str(b, "}");
}

static void print_pad(sd_buf *b, const hlo_inst *in)
{
    bool inner = false;

    for (int i = 0; i < in->shape->rank; i++)
        inner |= in->u.pad.interior[i] != 0;
    sd_buf_str(b, ", padding=");
    for (int i = 0; i < in->shape->rank; i++) {
        sd_buf_fmt(b, "%s%" PRId64 "_%" PRId64, i ? "x" : "", in->u.pad.low[i],
                   in->u.pad.high[i]);
        if (inner)
            sd_buf_fmt(b, "_%" PRId64, in->u.pad.interior[i]);
    }
}

/* ---- calls and collectives ---- */

static void print_layouts(sd_buf *b, const hlo_inst *in)
{
    sd_buf_str(b, ", operand_layout_constraints={");
    for (int i = 0; i < in->narg; i++) {
        const sd_shape *s = in->arg[i]->shape;
        sd_shape as = *s;

        as.layout = in->u.custom->operand_layout[i].n
                        ? in->u.custom->operand_layout[i].at
                        : NULL;
        sd_buf_str(b, i ? ", " : "");
        print_shape(b, &as, true);
    }
    sd_buf_str(b, "}");
    if (!in->u.custom->result_layout)
        return;
    int n = in->shape->dtype == SD_TUPLE ? in->shape->nelem : 1;

    sd_buf_str(b, ", result_layouts={");
    for (int i = 0; i < n; i++) {
        hlo_dims d = in->u.custom->result_layout[i];

        sd_buf_str(b, i ? ",{" : "{");
        for (int k = 0; k < d.n; k++)
            sd_buf_fmt(b, k ? ",%" PRId64 : "%" PRId64, d.at[k]);
        sd_buf_str(b, "}");
    }
    sd_buf_str(b, "}");
}

static void print_index(sd_buf *b, hlo_dims d)
{
    sd_buf_str(b, "{");
    for (int i = 0; i < d.n; i++)
        sd_buf_fmt(b, i ? ",%" PRId64 : "%" PRId64, d.at[i]);
    sd_buf_str(b, "}");
}

static void print_custom(sd_buf *b, const hlo_inst *in)
{
    const hlo_custom *c = in->u.custom;

    sd_buf_str(b, ", custom_call_target=");
    print_quoted(b, c->target, strlen(c->target));
    if (c->operand_layout)
        print_layouts(b, in);
    if (c->has_side_effect)
        sd_buf_str(b, ", custom_call_has_side_effect=true");
    if (c->nalias) {
        sd_buf_str(b, ", output_to_operand_aliasing={");
        for (int i = 0; i < c->nalias; i++) {
            sd_buf_str(b, i ? ", " : "");
            print_index(b, c->alias[i].out_index);
            sd_buf_fmt(b, ": (%" PRId64 ", ", c->alias[i].operand);
            print_index(b, c->alias[i].operand_index);
            sd_buf_str(b, ")");
        }
        sd_buf_str(b, "}");
    }
    if (c->api_version > 1 && c->api_version <= 4)
        sd_buf_fmt(b, ", api_version=%s", hlo_api_name[c->api_version]);
}

static void print_collective(sd_buf *b, const hlo_inst *in)
{
    const hlo_collective *c = in->u.coll;

    if (!c)
        return;
    if (c->channel)
        sd_buf_fmt(b, ", channel_id=%" PRId64, c->channel);
    if (hlo_info(in)->cls == HLO_C_COLLECTIVE && in->narg) {
        sd_buf_fmt(b, ", %s={",
                   in->op == HLO_COLLECTIVE_PERMUTE ? "source_target_pairs"
                                                    : "replica_groups");
        for (int64_t i = 0; i < c->ngroup; i++) {
            sd_buf_str(b, i ? ",{" : "{");
            for (int64_t k = 0; k < c->group_size; k++)
                sd_buf_fmt(b, k ? ",%" PRId64 : "%" PRId64,
                           c->groups[i * c->group_size + k]);
            sd_buf_str(b, "}");
        }
        sd_buf_str(b, "}");
    }
    if (c->use_global_ids)
        sd_buf_str(b, ", use_global_device_ids=true");
    if (c->host_transfer)
        sd_buf_str(b, ", is_host_transfer=true");
    if (in->op == HLO_ALL_GATHER || in->op == HLO_REDUCE_SCATTER ||
        in->op == HLO_ALL_TO_ALL) {
        int64_t d = in->dims.n ? in->dims.at[0] : c->dim;

        print_dims(b, "dimensions", &d, 1);
    }
}

/* ---- one instruction ---- */

static hlo_cmp_type usual_compare(sd_dtype t)
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

static void print_flag(sd_buf *b, const char *key, bool on)
{
    if (on)
        sd_buf_fmt(b, ", %s=true", key);
}

static void print_attrs(sd_buf *b, const hlo_inst *in)
{
    char text[32];

    switch (in->op) {
    case HLO_COMPARE:
        sd_buf_fmt(b, ", direction=%s", hlo_cmp_dir_name[in->u.compare.dir]);
        if (in->u.compare.type != usual_compare(in->arg[0]->shape->dtype))
            sd_buf_fmt(b, ", type=%s", hlo_cmp_type_name[in->u.compare.type]);
        break;
    case HLO_REDUCE_PRECISION:
        sd_buf_fmt(b, ", exponent_bits=%d, mantissa_bits=%d",
                   in->u.precision.exponent, in->u.precision.mantissa);
        break;
    case HLO_IOTA:
        sd_buf_fmt(b, ", iota_dimension=%" PRId64, in->dims.at[0]);
        break;
    case HLO_BROADCAST:
    case HLO_TRANSPOSE:
    case HLO_REVERSE:
    case HLO_CONCATENATE:
    case HLO_REDUCE:
    case HLO_MAP:
    case HLO_GET_DIMENSION_SIZE:
    case HLO_SET_DIMENSION_SIZE:
        print_dims(b, "dimensions", in->dims.at, in->dims.n);
        break;
    case HLO_SLICE:
        print_slice(b, in);
        break;
    case HLO_PAD:
        print_pad(b, in);
        break;
    case HLO_DYNAMIC_SLICE:
        print_dims(b, "dynamic_slice_sizes", in->dims.at, in->dims.n);
        break;
    case HLO_GATHER:
    case HLO_SCATTER:
        print_gather(b, in);
        break;
    case HLO_REDUCE_WINDOW:
    case HLO_SELECT_AND_SCATTER:
        print_window(b, in->u.window.dim, in->u.window.n);
        break;
    case HLO_SCAN:
        print_dims(b, "dimensions", &in->u.scan.dim, 1);
        print_flag(b, "reverse", in->u.scan.reverse);
        print_flag(b, "exclusive", in->u.scan.exclusive);
        break;
    case HLO_SORT:
        print_dims(b, "dimensions", in->dims.at, in->dims.n);
        print_flag(b, "is_stable", in->u.sort.stable);
        break;
    case HLO_TOPK:
        sd_buf_fmt(b, ", k=%" PRId64 ", largest=true", in->dims.at[0]);
        break;
    case HLO_DOT:
        print_dot(b, in->u.dot);
        break;
    case HLO_CONVOLUTION:
        print_conv(b, in->u.conv);
        break;
    case HLO_RNG:
        sd_buf_fmt(b, ", distribution=%s",
                   hlo_dist_name[in->u.rng.distribution]);
        break;
    case HLO_RNG_BIT_GENERATOR:
        sd_buf_fmt(b, ", algorithm=%s", hlo_rng_name[in->u.rng.algo]);
        break;
    case HLO_FFT:
        sd_buf_fmt(b, ", fft_type=%s", hlo_fft_name[in->u.fft.type]);
        print_dims(b, "fft_length", in->u.fft.length, in->u.fft.n);
        break;
    case HLO_CHOLESKY:
        print_flag(b, "lower", in->u.linalg.lower);
        break;
    case HLO_TRIANGULAR_SOLVE:
        print_flag(b, "left_side", in->u.linalg.left);
        print_flag(b, "lower", in->u.linalg.lower);
        print_flag(b, "unit_diagonal", in->u.linalg.unit);
        sd_buf_fmt(b, ", transpose_a=%s",
                   hlo_transpose_name[in->u.linalg.trans]);
        break;
    case HLO_BATCH_NORM_TRAINING:
    case HLO_BATCH_NORM_INFERENCE:
    case HLO_BATCH_NORM_GRAD:
        snprintf(text, sizeof text, "%.17g", in->u.norm.epsilon);
        sd_buf_fmt(b, ", epsilon=%s, feature_index=%" PRId64, text,
                   in->u.norm.feature);
        break;
    case HLO_GET_TUPLE_ELEMENT:
        sd_buf_fmt(b, ", index=%" PRId64, in->u.tuple.index);
        break;
    case HLO_FUSION:
        sd_buf_fmt(b, ", kind=%s", hlo_fusion_name[in->u.fusion.kind]);
        break;
    case HLO_CUSTOM_CALL:
        print_custom(b, in);
        break;
    default:
        if (hlo_info(in)->cls == HLO_C_COLLECTIVE ||
            hlo_info(in)->cls == HLO_C_TOKENS)
            print_collective(b, in);
    }
}

static void print_comps(sd_buf *b, const hlo_inst *in)
{
    switch (in->op) {
    case HLO_WHILE:
        sd_buf_fmt(b, ", condition=%%%s, body=%%%s", in->comp[0]->name,
                   in->comp[1]->name);
        return;
    case HLO_SELECT_AND_SCATTER:
        sd_buf_fmt(b, ", select=%%%s, scatter=%%%s", in->comp[0]->name,
                   in->comp[1]->name);
        return;
    case HLO_FUSION:
        sd_buf_fmt(b, ", calls=%%%s", in->comp[0]->name);
        return;
    case HLO_CONDITIONAL:
        if (in->arg[0]->shape->dtype == SD_PRED) {
            sd_buf_fmt(b, ", true_computation=%%%s, false_computation=%%%s",
                       in->comp[0]->name, in->comp[1]->name);
            return;
        }
        break;
    case HLO_CUSTOM_CALL:
        break;
    default:
        sd_buf_fmt(b, ", to_apply=%%%s", in->comp[0]->name);
        return;
    }
    sd_buf_str(b, in->op == HLO_CUSTOM_CALL ? ", called_computations={"
                                            : ", branch_computations={");
    for (int i = 0; i < in->ncomp; i++)
        sd_buf_fmt(b, i ? ", %%%s" : "%%%s", in->comp[i]->name);
    sd_buf_str(b, "}");
}

static void print_notes(sd_buf *b, const hlo_inst *in)
{
    if (in->sharding) {
        sd_buf_str(b, ", sharding=");
        print_text(b, in->sharding, strlen(in->sharding));
    }
    if (in->frontend_attrs) {
        sd_buf_str(b, ", frontend_attributes=");
        print_text(b, in->frontend_attrs, strlen(in->frontend_attrs));
    }
    if (in->op_name || in->source_file) {
        sd_buf_str(b, ", metadata={");
        if (in->op_name) {
            sd_buf_str(b, "op_name=");
            print_quoted(b, in->op_name, strlen(in->op_name));
        }
        if (in->source_file) {
            sd_buf_str(b, in->op_name ? " source_file=" : "source_file=");
            print_quoted(b, in->source_file, strlen(in->source_file));
            sd_buf_fmt(b, " source_line=%d", in->source_line);
        }
        sd_buf_str(b, "}");
    }
    if (in->op == HLO_CUSTOM_CALL && in->u.custom->config_len) {
        sd_buf_str(b, ", backend_config=");
        print_quoted(b, in->u.custom->config, in->u.custom->config_len);
    }
}

static void print_inst(sd_buf *b, const hlo_inst *in, int64_t most)
{
    sd_buf_fmt(b, "%%%s = ", in->name);
    print_shape(b, in->shape, true);
    sd_buf_fmt(b, " %s(", hlo_info(in)->name);
    if (in->op == HLO_PARAMETER)
        sd_buf_fmt(b, "%" PRId64, in->u.param.index);
    else if (in->op == HLO_CONSTANT && sd_shape_count(in->shape) > most)
        sd_buf_str(b, "{...}");
    else if (in->op == HLO_CONSTANT)
        hlo_print_literal(b, in->shape, in->u.literal.data);
    for (int i = 0; i < in->narg; i++) {
        sd_buf_str(b, i ? ", " : "");
        if (i && i % 5 == 0)
            sd_buf_fmt(b, "/*index=%d*/", i);
        sd_buf_fmt(b, "%%%s", in->arg[i]->name);
    }
    sd_buf_str(b, ")");
    print_attrs(b, in);
    if (in->ncomp)
        print_comps(b, in);
    print_notes(b, in);
}

void hlo_print_inst(sd_buf *b, const hlo_inst *in)
{
    print_inst(b, in, INT64_MAX);
}

/* ---- computations and modules ---- */

static void print_comp(sd_buf *b, const hlo_comp *c, int64_t most)
{
    sd_buf_fmt(b, "%s%%%s (", c == c->module->entry ? "ENTRY " : "", c->name);
    for (int i = 0; i < c->nparam; i++) {
        sd_buf_fmt(
            b, i ? ", %s: " : "%s: ", c->param[i] ? c->param[i]->name : "?");
        if (c->param[i])
            print_shape(b, c->param[i]->shape, false);
    }
    sd_buf_str(b, ") -> ");
    if (c->root)
        print_shape(b, c->root->shape, false);
    sd_buf_str(b, " {\n");
    hlo_for_each_inst(in, c) {
        sd_buf_str(b, in == c->root ? "  ROOT " : "  ");
        print_inst(b, in, most);
        sd_buf_str(b, "\n");
    }
    sd_buf_str(b, "}\n");
}

static void print_entry_layout(sd_buf *b, const hlo_comp *c)
{
    sd_buf_str(b, ", entry_computation_layout={(");
    for (int i = 0; i < c->nparam; i++) {
        sd_buf_str(b, i ? ", " : "");
        if (i && i % 5 == 0)
            sd_buf_fmt(b, "/*index=%d*/", i);
        print_shape(b, c->param[i]->shape, true);
    }
    sd_buf_str(b, ")->");
    print_shape(b, c->root->shape, true);
    sd_buf_str(b, "}");
}

static void print_header(sd_buf *b, const hlo_module *m)
{
    bool tuple =
        m->entry && m->entry->root && m->entry->root->shape->dtype == SD_TUPLE;
    bool first = true;

    sd_buf_fmt(b, "HloModule %s", m->name);
    for (int i = 0; i < m->nalias; i++) {
        sd_buf_str(b, i ? ", " : ", input_output_alias={ ");
        if (tuple)
            sd_buf_fmt(b, "{%" PRId64 "}", m->alias[i].output_index);
        else
            sd_buf_str(b, "{}");
        sd_buf_fmt(b, ": (%" PRId64 ", {}, %s)%s", m->alias[i].param,
                   m->alias[i].must ? "must-alias" : "may-alias",
                   i == m->nalias - 1 ? " }" : "");
    }
    for (int i = 0; m->donor && m->entry && i < m->entry->nparam; i++)
        if (m->donor[i]) {
            sd_buf_fmt(b, "%s(%d, {})", first ? ", buffer_donor={ " : ", ", i);
            first = false;
        }
    if (!first)
        sd_buf_str(b, " }");
    if (m->entry && m->entry->root)
        print_entry_layout(b, m->entry);
    if (m->nreplica != 1)
        sd_buf_fmt(b, ", replica_count=%d", m->nreplica);
    if (m->npartition != 1)
        sd_buf_fmt(b, ", num_partitions=%d", m->npartition);
    sd_buf_str(b, "\n");
}

/* Callees first, so that one pass reads it back. */
static void print_after_callees(sd_buf *b, const hlo_comp *c, sd_map *done,
                                int64_t most)
{
    if (sd_map_has(done, sd_key(c)))
        return;
    sd_map_set(done, sd_key(c), (void *)(uintptr_t)1);
    hlo_for_each_inst(in, c)
        for (int i = 0; i < in->ncomp; i++)
            print_after_callees(b, in->comp[i], done, most);
    sd_buf_str(b, "\n");
    print_comp(b, c, most);
}

static void print_module(sd_buf *b, const hlo_module *m, int64_t most)
{
    sd_arena *a = sd_arena_create();
    sd_map *done = sd_map_create(a);

    print_header(b, m);
    hlo_for_each_comp(c, m)
        print_after_callees(b, c, done, most);
    sd_arena_destroy(a);
}

void hlo_print(sd_buf *b, const hlo_module *m)
{
    print_module(b, m, INT64_MAX);
}

void hlo_print_brief(sd_buf *b, const hlo_module *m)
{
    print_module(b, m, 64);
}
