/* Attributes of an instruction as text. */
#include "hlo_attr.h"

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
const char *const hlo_prec_name[] = {"default", "high", "highest", "tf32",
                                     NULL};
const char *const hlo_api_name[] = {
    "API_VERSION_UNSPECIFIED",      "API_VERSION_ORIGINAL",
    "API_VERSION_STATUS_RETURNING", "API_VERSION_STATUS_RETURNING_UNIFIED",
    "API_VERSION_TYPED_FFI",        NULL};

static void print_dims(sd_buf *b, const char *key, const int64_t *at, int n)
{
    sd_buf_fmt(b, ", %s={", key);
    sd_buf_ints(b, at, n, ",");
    sd_buf_str(b, "}");
}

/* ---- windows and convolutions ---- */

static void print_window_part(sd_buf *b, const hlo_window_dim *w, int n,
                              const hlo_window_part *p)
{
    bool any = false;

    for (int i = 0; i < n; i++) {
        const int64_t *v = hlo_window_number(&w[i], p);

        any |= v[0] != p->unset || (p->pair && v[1] != p->unset);
    }
    if (!any)
        return;
    sd_buf_fmt(b, p == hlo_window_parts ? "%s=" : " %s=", p->key);
    for (int i = 0; i < n; i++) {
        const int64_t *v = hlo_window_number(&w[i], p);

        sd_buf_fmt(b, i ? "x%" PRId64 : "%" PRId64, v[0]);
        if (p->pair)
            sd_buf_fmt(b, "_%" PRId64, v[1]);
    }
}

static void print_window_dims(sd_buf *b, const hlo_window_dim *w, int n)
{
    sd_buf_str(b, ", window={");
    for (int i = 0; i < HLO_WINDOW_PARTS; i++)
        print_window_part(b, w, n, &hlo_window_parts[i]);
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

static void print_window(sd_buf *b, const hlo_attr_row *r, const hlo_inst *in)
{
    (void)r;
    if (in->op != HLO_CONVOLUTION)
        print_window_dims(b, in->u.window.dim, in->u.window.n);
    else if (in->u.conv->nspatial)
        print_window_dims(b, in->u.conv->win, in->u.conv->nspatial);
}

static void print_conv_labels(sd_buf *b, const hlo_attr_row *r,
                              const hlo_inst *in)
{
    const hlo_conv *c = in->u.conv;

    sd_buf_fmt(b, ", %s=", r->key);
    print_labels(b, c, c->in_batch, c->in_feature, c->in_spatial, "bf");
    sd_buf_str(b, "_");
    print_labels(b, c, c->k_in, c->k_out, c->k_spatial, "io");
    sd_buf_str(b, "->");
    print_labels(b, c, c->out_batch, c->out_feature, c->out_spatial, "bf");
}

static void print_precision(sd_buf *b, const hlo_attr_row *r,
                            const hlo_inst *in)
{
    const hlo_prec *p = hlo_attr_field(r, in);

    if (p[0] != HLO_PREC_DEFAULT || p[1] != HLO_PREC_DEFAULT)
        sd_buf_fmt(b, ", %s={%s,%s}", r->key, hlo_prec_name[p[0]],
                   hlo_prec_name[p[1]]);
}

static void print_algorithm(sd_buf *b, const hlo_attr_row *r,
                            const hlo_inst *in)
{
    if (in->u.dot->algorithm)
        sd_buf_fmt(b, ", %s=%s", r->key, in->u.dot->algorithm);
}

/* ---- slices and pads ---- */

static void print_slice(sd_buf *b, const hlo_attr_row *r, const hlo_inst *in)
{
    sd_buf_fmt(b, ", %s={", r->key);
    for (int i = 0; i < in->shape->rank; i++) {
        sd_buf_fmt(b, "%s[%" PRId64 ":%" PRId64, i ? ", " : "",
                   in->u.slice.start[i], in->u.slice.limit[i]);
        if (in->u.slice.stride[i] != 1)
            sd_buf_fmt(b, ":%" PRId64, in->u.slice.stride[i]);
        sd_buf_str(b, "]");
    }
    sd_buf_str(b, "}");
}

static void print_pad(sd_buf *b, const hlo_attr_row *r, const hlo_inst *in)
{
    bool inner = false;

    for (int i = 0; i < in->shape->rank; i++)
        inner |= in->u.pad.interior[i] != 0;
    sd_buf_fmt(b, ", %s=", r->key);
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
    sd_buf_ints(b, d.at, d.n, ",");
    sd_buf_str(b, "}");
}

static void print_custom(sd_buf *b, const hlo_attr_row *r, const hlo_inst *in)
{
    const hlo_custom *c = in->u.custom;

    sd_buf_fmt(b, ", %s=", r->key);
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

static void print_collective(sd_buf *b, const hlo_attr_row *r,
                             const hlo_inst *in)
{
    const hlo_collective *c = in->u.coll;

    if (!c)
        return;
    if (c->channel)
        sd_buf_fmt(b, ", channel_id=%" PRId64, c->channel);
    if (hlo_info(in)->cls == HLO_C_COLLECTIVE && in->narg) {
        sd_buf_fmt(b, ", %s={",
                   in->op == HLO_COLLECTIVE_PERMUTE ? "source_target_pairs"
                                                    : r->key);
        for (int64_t i = 0; i < c->ngroup; i++) {
            sd_buf_str(b, i ? ",{" : "{");
            sd_buf_ints(b, c->groups + i * c->group_size,
                        hlo_group_members(c, i), ",");
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
        int64_t d = hlo_collective_dim(in);

        print_dims(b, "dimensions", &d, 1);
    }
}

/* ---- attributes of any op ---- */

static void print_dims_row(sd_buf *b, const hlo_attr_row *r, const hlo_inst *in)
{
    const hlo_dims *d = hlo_attr_field(r, in);

    if (d->n || !(r->flags & HLO_A_QUIET))
        print_dims(b, r->key, d->at, d->n);
}

static void print_dim(sd_buf *b, const hlo_attr_row *r, const hlo_inst *in)
{
    const hlo_dims *d = hlo_attr_field(r, in);

    sd_buf_fmt(b, ", %s=%" PRId64, r->key, d->at[0]);
}

static void print_int(sd_buf *b, const hlo_attr_row *r, const hlo_inst *in)
{
    int64_t v = *(const int64_t *)hlo_attr_field(r, in);

    if (v != r->unset || !(r->flags & HLO_A_QUIET))
        sd_buf_fmt(b, ", %s=%" PRId64, r->key, v);
}

static void print_bits(sd_buf *b, const hlo_attr_row *r, const hlo_inst *in)
{
    sd_buf_fmt(b, ", %s=%d", r->key, *(const int *)hlo_attr_field(r, in));
}

static void print_flag(sd_buf *b, const hlo_attr_row *r, const hlo_inst *in)
{
    if (*(const bool *)hlo_attr_field(r, in))
        sd_buf_fmt(b, ", %s=true", r->key);
}

static void print_choice(sd_buf *b, const hlo_attr_row *r, const hlo_inst *in)
{
    sd_buf_fmt(b, ", %s=%s", r->key,
               r->names[*(const int *)hlo_attr_field(r, in)]);
}

/* A float in StableHLO and XLA: its shortest form. */
static void print_real(sd_buf *b, const hlo_attr_row *r, const hlo_inst *in)
{
    const sd_shape s = {.dtype = SD_F32};
    float f = (float)*(const double *)hlo_attr_field(r, in);

    sd_buf_fmt(b, ", %s=", r->key);
    hlo_print_literal(b, &s, &f);
}

static void print_compare(sd_buf *b, const hlo_attr_row *r, const hlo_inst *in)
{
    hlo_cmp_type t = in->u.compare.type;

    if (t != hlo_usual_compare(in->arg[0]->shape->dtype))
        sd_buf_fmt(b, ", %s=%s", r->key, hlo_cmp_type_name[t]);
}

static void print_topk(sd_buf *b, const hlo_attr_row *r, const hlo_inst *in)
{
    sd_buf_fmt(b, ", %s=%" PRId64 ", largest=true", r->key, in->dims.at[0]);
}

/* A scan is printed as the custom-call that stands for it. */
static void (*const print_kind[HLO_A_KIND_COUNT])(sd_buf *b,
                                                  const hlo_attr_row *r,
                                                  const hlo_inst *in) = {
    [HLO_A_DIMS] = print_dims_row,
    [HLO_A_DIM] = print_dim,
    [HLO_A_INT] = print_int,
    [HLO_A_BITS] = print_bits,
    [HLO_A_FLAG] = print_flag,
    [HLO_A_CHOICE] = print_choice,
    [HLO_A_REAL] = print_real,
    [HLO_A_COMPARE] = print_compare,
    [HLO_A_SLICE] = print_slice,
    [HLO_A_PAD] = print_pad,
    [HLO_A_WINDOW] = print_window,
    [HLO_A_LABELS] = print_conv_labels,
    [HLO_A_PRECISION] = print_precision,
    [HLO_A_ALGORITHM] = print_algorithm,
    [HLO_A_TOPK] = print_topk,
    [HLO_A_CUSTOM] = print_custom,
    [HLO_A_COLLECTIVE] = print_collective,
};

void hlo_print_attrs(sd_buf *b, const hlo_inst *in)
{
    hlo_for_each_attr(r, in->op)
        if (r->key && print_kind[r->kind])
            print_kind[r->kind](b, r, in);
}
