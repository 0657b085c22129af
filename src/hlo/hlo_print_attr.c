/* Attributes of an instruction as text. */
#include "hlo_text.h"

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

static void print_dims(sd_buf *b, const char *key, const int64_t *at, int n)
{
    sd_buf_fmt(b, ", %s={", key);
    for (int i = 0; i < n; i++)
        sd_buf_fmt(b, i ? ",%" PRId64 : "%" PRId64, at[i]);
    sd_buf_str(b, "}");
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
        sd_shape s = hlo_custom_operand(in, i);

        sd_buf_str(b, i ? ", " : "");
        hlo_print_shape(b, &s, true);
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
    hlo_print_quoted(b, c->target, strlen(c->target));
    if (hlo_custom_is_laid_out(c))
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
            for (int k = 0; k < hlo_group_members(c, i); k++)
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

/* ---- by op ---- */

/* A float in StableHLO and XLA: its shortest form. */
static void print_epsilon(sd_buf *b, double v)
{
    const sd_shape s = {.dtype = SD_F32};
    float f = (float)v;

    hlo_print_literal(b, &s, &f);
}

static void print_flag(sd_buf *b, const char *key, bool on)
{
    if (on)
        sd_buf_fmt(b, ", %s=true", key);
}

void hlo_print_attrs(sd_buf *b, const hlo_inst *in)
{
    switch (in->op) {
    case HLO_COMPARE:
        sd_buf_fmt(b, ", direction=%s", hlo_cmp_dir_name[in->u.compare.dir]);
        if (in->u.compare.type != hlo_usual_compare(in->arg[0]->shape->dtype))
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
        sd_buf_str(b, ", epsilon=");
        print_epsilon(b, in->u.norm.epsilon);
        sd_buf_fmt(b, ", feature_index=%" PRId64, in->u.norm.feature);
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
