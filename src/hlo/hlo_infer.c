/* Shape inference: the dispatch by class, the checks that all classes use,
 * and the elementwise classes themselves. */
#include "hlo_infer.h"

static hlo_infer_fn infer_elementwise, infer_bitcast;

static hlo_infer_fn *const infer_class[HLO_CLASS_COUNT] = {
    [HLO_C_UNARY] = infer_elementwise,
    [HLO_C_BINARY] = infer_elementwise,
    [HLO_C_TERNARY] = infer_elementwise,
    [HLO_C_COMPARE] = infer_elementwise,
    [HLO_C_CONVERT] = infer_elementwise,
    [HLO_C_BITCAST] = infer_bitcast,
    [HLO_C_LEAF] = hlo_infer_leaf,
    [HLO_C_SHAPE] = hlo_infer_shape,
    [HLO_C_INDEXED] = hlo_infer_indexed,
    [HLO_C_SCATTER] = hlo_infer_scatter,
    [HLO_C_REDUCE] = hlo_infer_reduce,
    [HLO_C_WINDOW] = hlo_infer_window,
    [HLO_C_SCAN] = hlo_infer_scan,
    [HLO_C_MAP] = hlo_infer_map,
    [HLO_C_SORT] = hlo_infer_sort,
    [HLO_C_DOT] = hlo_infer_dot,
    [HLO_C_CONV] = hlo_infer_conv,
    [HLO_C_RNG] = hlo_infer_rng,
    [HLO_C_FFT] = hlo_infer_fft,
    [HLO_C_LINALG] = hlo_infer_linalg,
    [HLO_C_NORM] = hlo_infer_norm,
    [HLO_C_TUPLE] = hlo_infer_tuple,
    [HLO_C_CONTROL] = hlo_infer_control,
    [HLO_C_CUSTOM] = hlo_infer_custom,
    [HLO_C_TOKENS] = hlo_infer_tokens,
    [HLO_C_DYNAMIC] = hlo_infer_dynamic,
    [HLO_C_COLLECTIVE] = hlo_infer_collective,
};

/* ---- messages ---- */

/* A loop may carry hundreds of values: a message names the first. */
static void print_shape(sd_buf *b, const sd_shape *s)
{
    enum { MOST = 8 };

    if (s->dtype != SD_TUPLE || s->nelem <= MOST) {
        sd_shape_print(b, s, false);
        return;
    }
    for (int i = 0; i < MOST; i++) {
        sd_buf_str(b, i ? ", " : "(");
        print_shape(b, s->elem[i]);
    }
    sd_buf_fmt(b, " and %d more)", s->nelem - MOST);
}

const char *hlo_shape_str(hlo_module *m, const sd_shape *s)
{
    sd_buf b = {.arena = m->arena};

    print_shape(&b, s);
    return sd_buf_take(&b);
}

const char *hlo_describe(hlo_module *m, const hlo_inst *in)
{
    sd_buf b = {.arena = m->arena};

    sd_buf_str(&b, hlo_info(in)->name);
    for (int i = 0; i < in->narg && i < 8; i++) {
        sd_buf_str(&b, i ? ", " : " of ");
        print_shape(&b, in->arg[i]->shape);
    }
    if (in->narg > 8)
        sd_buf_fmt(&b, " and %d more", in->narg - 8);
    if (!in->narg && in->shape) {
        sd_buf_str(&b, " ");
        print_shape(&b, in->shape);
    }
    if (in->op_name || in->source_file) {
        sd_buf_fmt(&b, " (%s%s", in->op_name ? in->op_name : "",
                   in->op_name && in->source_file ? ", " : "");
        if (in->source_file)
            sd_buf_fmt(&b, "%s:%d", in->source_file, in->source_line);
        sd_buf_str(&b, ")");
    }
    return sd_buf_take(&b);
}

sd_status hlo_bad(hlo_module *m, const hlo_inst *in, const char *fmt, ...)
{
    const char *what;
    va_list ap;

    va_start(ap, fmt);
    what = sd_arena_vfmt(m->arena, fmt, ap);
    va_end(ap);
    return sd_error(SD_INVALID, "%s: %s", hlo_describe(m, in), what);
}

/* ---- checks that many rules use ---- */

sd_status hlo_want_args(hlo_module *m, const hlo_inst *in, int n)
{
    if (in->narg != n)
        return hlo_bad(m, in, "takes %d operands, has %d", n, in->narg);
    return NULL;
}

sd_status hlo_want_array(hlo_module *m, const hlo_inst *in, int arg)
{
    if (arg >= in->narg)
        return hlo_bad(m, in, "operand %d is missing", arg);
    if (!sd_shape_is_array(in->arg[arg]->shape))
        return hlo_bad(m, in, "operand %d must be an array", arg);
    return NULL;
}

sd_status hlo_want_scalar(hlo_module *m, const hlo_inst *in, int arg,
                          sd_dtype t)
{
    sd_status st = hlo_want_array(m, in, arg);

    if (st)
        return st;
    const sd_shape *s = in->arg[arg]->shape;

    if (s->rank != 0 || s->dtype != t)
        return hlo_bad(m, in, "operand %d must be %s[]", arg, sd_dtype_name(t));
    return NULL;
}

sd_status hlo_want_declared(hlo_module *m, const hlo_inst *in)
{
    if (!in->shape)
        return hlo_bad(m, in, "needs its result's shape");
    return NULL;
}

sd_status hlo_want_declared_array(hlo_module *m, const hlo_inst *in)
{
    sd_status st = hlo_want_declared(m, in);

    if (!st && !sd_shape_is_array(in->shape))
        st = hlo_bad(m, in, "gives an array");
    return st;
}

bool hlo_reads(const hlo_inst *in, const hlo_inst *value)
{
    for (int i = 0; i < in->narg; i++)
        if (in->arg[i] == value)
            return true;
    return false;
}

int hlo_dims_find(hlo_dims d, int64_t x)
{
    for (int i = 0; i < d.n; i++)
        if (d.at[i] == x)
            return i;
    return -1;
}

bool hlo_dims_hold(hlo_dims d, int64_t x)
{
    return hlo_dims_find(d, x) >= 0;
}

bool hlo_dims_equal(hlo_dims x, hlo_dims y)
{
    return x.n == y.n && (x.at == y.at || x.n == 0 ||
                          memcmp(x.at, y.at, sizeof *x.at * (size_t)x.n) == 0);
}

const hlo_prec *hlo_prec_of(const hlo_inst *in)
{
    return in->op == HLO_DOT ? in->u.dot->prec : in->u.conv->prec;
}

bool hlo_may_round(const hlo_inst *in)
{
    const hlo_prec *prec = hlo_prec_of(in);

    return prec[0] != HLO_PREC_HIGHEST && prec[1] != HLO_PREC_HIGHEST &&
           in->shape->dtype != SD_F64;
}

bool hlo_dims_rise(hlo_dims d)
{
    for (int i = 1; i < d.n; i++)
        if (d.at[i] <= d.at[i - 1])
            return false;
    return true;
}

bool hlo_dims_fit(hlo_dims d, int rank)
{
    for (int i = 0; i < d.n; i++)
        if (d.at[i] < 0 || d.at[i] >= rank ||
            hlo_dims_hold((hlo_dims){d.at, i}, d.at[i]))
            return false;
    return true;
}

sd_status hlo_want_dims(hlo_module *m, const hlo_inst *in, const char *what,
                        hlo_dims d, int rank)
{
    if (d.n > rank)
        return hlo_bad(m, in, "%s: %d entries for rank %d", what, d.n, rank);
    for (int i = 0; i < d.n; i++) {
        if (d.at[i] < 0 || d.at[i] >= rank)
            return hlo_bad(m, in, "%s: %" PRId64 " is not in [0, %d)", what,
                           d.at[i], rank);
        if (hlo_dims_hold((hlo_dims){d.at, i}, d.at[i]))
            return hlo_bad(m, in, "%s: %" PRId64 " stands twice", what,
                           d.at[i]);
    }
    return NULL;
}

sd_status hlo_want_pair(hlo_module *m, const hlo_inst *in, const char *what,
                        const sd_shape *x, int64_t i, const sd_shape *y,
                        int64_t k)
{
    if (x->dim[i] == y->dim[k])
        return NULL;
    return hlo_bad(m, in,
                   "%s dimensions %" PRId64 " and %" PRId64 " are %" PRId64
                   " and %" PRId64,
                   what, i, k, x->dim[i], y->dim[k]);
}

sd_status hlo_want_comps(hlo_module *m, const hlo_inst *in, int n)
{
    if (in->ncomp != n)
        return hlo_bad(m, in, "takes %d computations, has %d", n, in->ncomp);
    for (int i = 0; i < n; i++)
        if (!in->comp[i]->root)
            return hlo_bad(m, in, "%s has no root", in->comp[i]->name);
    return NULL;
}

static bool is_scalar_of(const sd_shape *s, sd_dtype t)
{
    return s && sd_shape_is_array(s) && s->rank == 0 && s->dtype == t;
}

sd_status hlo_want_region(hlo_module *m, const hlo_inst *in, int k, int nparam,
                          const sd_dtype *param, int nresult,
                          const sd_dtype *result)
{
    const hlo_comp *c = in->comp[k];
    const sd_shape *r = c->root->shape;

    if (c->nparam != nparam)
        return hlo_bad(m, in, "%s must have %d parameters, has %d", c->name,
                       nparam, c->nparam);
    for (int i = 0; i < nparam; i++)
        if (!c->param[i] || !is_scalar_of(c->param[i]->shape, param[i]))
            return hlo_bad(m, in, "parameter %d of %s must be %s[]", i, c->name,
                           sd_dtype_name(param[i]));
    if (nresult == 1 && is_scalar_of(r, result[0]))
        return NULL;
    if (r->dtype != SD_TUPLE || r->nelem != nresult || nresult == 1)
        return hlo_bad(
            m, in, "%s must give %d scalars (of %s[] first), gives %s", c->name,
            nresult, sd_dtype_name(result[0]), hlo_shape_str(m, r));
    for (int i = 0; i < nresult; i++)
        if (!is_scalar_of(r->elem[i], result[i]))
            return hlo_bad(m, in, "result %d of %s must be %s[]", i, c->name,
                           sd_dtype_name(result[i]));
    return NULL;
}

sd_status hlo_result(hlo_module *m, const hlo_inst *in, sd_dtype t, int rank,
                     const int64_t *dim, const sd_shape **out)
{
    sd_status st = sd_shape_check_wider(t, rank, dim);

    if (st)
        return sd_note(st, "%s", hlo_describe(m, in));
    *out = sd_shape_make(m->arena, t, rank, dim);
    return NULL;
}

const sd_shape *hlo_one_or_tuple(hlo_module *m, int n, const sd_shape *const *s)
{
    return n == 1 ? s[0] : sd_shape_tuple(m->arena, n, s);
}

/* ---- the elementwise classes ---- */

int hlo_type_bit(sd_dtype t)
{
    switch (sd_dtype_kind(t)) {
    case SD_K_PRED:
        return HLO_T_PRED;
    case SD_K_SINT:
        return HLO_T_SINT;
    case SD_K_UINT:
        return HLO_T_UINT;
    case SD_K_FLOAT:
        return HLO_T_FLOAT;
    case SD_K_COMPLEX:
        return HLO_T_CPLX;
    case SD_K_NONE:
        break;
    }
    return 0;
}

static sd_status same_operands(hlo_module *m, const hlo_inst *in, int from)
{
    for (int i = from + 1; i < in->narg; i++) {
        const sd_shape *x = in->arg[from]->shape, *y = in->arg[i]->shape;

        if (!sd_shape_same_dims(x, y))
            return hlo_bad(m, in, "operands differ in dimensions");
        if (x->dtype != y->dtype)
            return hlo_bad(m, in, "operands differ in element type");
    }
    return NULL;
}

/* select's predicate, clamp's bounds: a scalar or of the same dimensions */
static sd_status scalar_or_same(hlo_module *m, const hlo_inst *in, int arg,
                                const sd_shape *to, sd_dtype t)
{
    const sd_shape *s = in->arg[arg]->shape;

    if (s->dtype != t)
        return hlo_bad(m, in, "operand %d must be of %s", arg,
                       sd_dtype_name(t));
    if (s->rank != 0 && !sd_shape_same_dims(s, to))
        return hlo_bad(m, in,
                       "operand %d must be a scalar or have the dimensions "
                       "of the result",
                       arg);
    return NULL;
}

static sd_status infer_ternary(hlo_module *m, const hlo_inst *in,
                               const sd_shape **out)
{
    sd_status st;

    if (in->op == HLO_SELECT) {
        const sd_shape *to = in->arg[1]->shape;

        if ((st = same_operands(m, in, 1)) ||
            (st = scalar_or_same(m, in, 0, to, SD_PRED)))
            return st;
        return hlo_result(m, in, to->dtype, to->rank, to->dim, out);
    }
    const sd_shape *to = in->arg[1]->shape; /* clamp(min, x, max) */

    if ((st = scalar_or_same(m, in, 0, to, to->dtype)) ||
        (st = scalar_or_same(m, in, 2, to, to->dtype)))
        return st;
    return hlo_result(m, in, to->dtype, to->rank, to->dim, out);
}

static sd_status result_type(hlo_module *m, const hlo_inst *in, sd_dtype *t)
{
    sd_status st;
    const sd_shape *y;

    switch (in->op) {
    case HLO_IS_FINITE:
    case HLO_COMPARE:
        *t = SD_PRED;
        return NULL;
    case HLO_ABS:
    case HLO_REAL:
    case HLO_IMAG:
        *t = sd_dtype_part(*t);
        return NULL;
    case HLO_COMPLEX:
        if (*t != SD_F32 && *t != SD_F64)
            return hlo_bad(m, in, "parts must be f32 or f64");
        *t = sd_dtype_complex(*t);
        return NULL;
    case HLO_CONVERT:
    case HLO_STOCHASTIC_CONVERT:
        if ((st = hlo_want_declared_array(m, in)))
            return st;
        if (in->op == HLO_STOCHASTIC_CONVERT) {
            y = in->arg[1]->shape;
            if (sd_dtype_kind(y->dtype) != SD_K_UINT ||
                sd_dtype_bytes(y->dtype) != sd_dtype_bytes(*t))
                return hlo_bad(m, in,
                               "random bits must be unsigned and as wide as "
                               "the value");
        }
        *t = in->shape->dtype;
        return NULL;
    case HLO_REDUCE_PRECISION:
        if (in->u.precision.exponent < 1 || in->u.precision.mantissa < 0)
            return hlo_bad(m, in,
                           "no format has %d exponent and %d mantissa bits",
                           in->u.precision.exponent, in->u.precision.mantissa);
        return NULL;
    default:
        return NULL;
    }
}

static sd_status infer_elementwise(hlo_module *m, const hlo_inst *in,
                                   const sd_shape **out)
{
    static const int narg[] = {[HLO_C_UNARY] = 1,
                               [HLO_C_BINARY] = 2,
                               [HLO_C_TERNARY] = 3,
                               [HLO_C_COMPARE] = 2,
                               [HLO_C_CONVERT] = 1};
    const sd_shape *x;
    sd_status st;
    sd_dtype t;

    if ((st = hlo_want_args(m, in, narg[hlo_info(in)->cls])))
        return st;
    for (int i = 0; i < in->narg; i++)
        if ((st = hlo_want_array(m, in, i)))
            return st;
    if (hlo_info(in)->cls == HLO_C_TERNARY)
        return infer_ternary(m, in, out);
    x = in->arg[0]->shape;
    t = x->dtype;
    if (in->op == HLO_STOCHASTIC_CONVERT) {
        if (!sd_shape_same_dims(x, in->arg[1]->shape))
            return hlo_bad(m, in, "operands differ in dimensions");
    } else if ((st = same_operands(m, in, 0))) {
        return st;
    }
    if ((st = result_type(m, in, &t)))
        return st;
    return hlo_result(m, in, t, x->rank, x->dim, out);
}

/* Logical widths; pred counts as a byte against a type of a byte, which is
 * how frameworks look at a mask. */
static sd_status infer_bitcast(hlo_module *m, const hlo_inst *in,
                               const sd_shape **out)
{
    int64_t dim[SD_MAX_RANK + 1];
    sd_status st;

    if ((st = hlo_want_args(m, in, 1)) || (st = hlo_want_array(m, in, 0)) ||
        (st = hlo_want_declared_array(m, in)))
        return st;
    const sd_shape *x = in->arg[0]->shape;
    sd_dtype t = in->shape->dtype;
    int from = sd_dtype_table[x->dtype].bits, to = sd_dtype_table[t].bits;
    int rank = x->rank;

    if ((from == 1 && to == 8) || (from == 8 && to == 1))
        if (sd_shape_same_dims(x, in->shape))
            from = to;
    if (SD_MAX(from, to) % SD_MIN(from, to) != 0) /* f6 */
        return hlo_bad(m, in,
                       "%s has %d bits and %s %d: neither divides the "
                       "other",
                       sd_dtype_name(x->dtype), from, sd_dtype_name(t), to);
    if (rank)
        memcpy(dim, x->dim, sizeof *dim * (size_t)rank);
    if (from > to) {
        dim[rank++] = from / to;
    } else if (from < to) {
        if (rank == 0 || dim[rank - 1] != to / from)
            return hlo_bad(m, in, "to %s the last dimension must be %d",
                           sd_dtype_name(t), to / from);
        rank--;
    }
    return hlo_result(m, in, t, rank, dim, out);
}

/* ---- entry points ---- */

sd_status hlo_infer(hlo_module *m, const hlo_inst *in, const sd_shape **out)
{
    const hlo_op_info *op = hlo_info(in);

    if (in->narg > 0 && sd_shape_is_array(in->arg[0]->shape) &&
        !(op->types & hlo_type_bit(in->arg[0]->shape->dtype)))
        return hlo_bad(m, in, "%s does not take %s", op->name,
                       sd_dtype_name(in->arg[0]->shape->dtype));
    return infer_class[op->cls](m, in, out);
}

sd_status hlo_verify_inst(hlo_module *m, const hlo_inst *in)
{
    const sd_shape *s;
    sd_status st = hlo_want_declared(m, in);

    if (st || (st = hlo_infer(m, in, &s)))
        return st;
    if (!sd_shape_equal(s, in->shape))
        return hlo_bad(m, in, "gives %s, declared %s", hlo_shape_str(m, s),
                       hlo_shape_str(m, in->shape));
    return NULL;
}

/* A longer stride than its dimension takes one element, too. */
static void shorten_strides(hlo_module *m, hlo_inst *in)
{
    const sd_shape *x = in->arg[0]->shape;
    int64_t *by = sd_arena_array(m->arena, int64_t, x->rank + 1);

    for (int i = 0; i < x->rank; i++)
        by[i] = SD_MIN(in->u.slice.stride[i], SD_MAX(x->dim[i], 1));
    in->u.slice.stride = by;
}

sd_status hlo_admit(hlo_module *m, hlo_inst *in)
{
    sd_status st = hlo_verify_inst(m, in);

    if (!st && in->op == HLO_SLICE)
        shorten_strides(m, in);
    return st;
}
