/* Evaluating what runs a computation on scalars: reductions in row-major
 * order, windows, scans, map, sort.  Sums and products of floats are kept
 * wide and rounded once, so that a device may add in any order and still be
 * near. */
#include "ref_priv.h"

/* ---- a running reduction of n values at once ---- */

typedef struct {
    hlo_ev *e;
    ref_region *region;
    int n;
    bool wide;
    hlo_op op;
    sd_dtype t;
    hlo_wide sum;
    char (*acc)[16], (*next)[16];
    const void **arg;
    void **to;
    const hlo_value *init;
} reducer;

static void reducer_init(reducer *r, hlo_ev *e, const hlo_comp *c, int n,
                         const hlo_value *init)
{
    sd_dtype t = init[0].shape->dtype;
    sd_kind k = sd_dtype_kind(t);

    *r = (reducer){.e = e, .n = n, .init = init, .t = t};
    r->region = ref_region_open(e, c);
    r->wide = n == 1 && (k == SD_K_FLOAT || k == SD_K_COMPLEX) &&
              ref_region_op(r->region, &r->op) &&
              (r->op == HLO_ADD || r->op == HLO_MULTIPLY);
    r->acc = sd_arena_alloc(e->arena, (size_t)n * 16);
    r->next = sd_arena_alloc(e->arena, (size_t)n * 16);
    r->arg = sd_arena_array(e->arena, const void *, 2 * n);
    r->to = sd_arena_array(e->arena, void *, n);
    for (int i = 0; i < n; i++) {
        r->arg[i] = r->acc[i];
        r->to[i] = r->next[i];
    }
}

static void reducer_start(reducer *r)
{
    if (r->wide)
        r->sum = hlo_wide_load(r->t, r->init[0].data);
    for (int i = 0; i < r->n; i++)
        memcpy(r->acc[i], r->init[i].data,
               sd_dtype_bytes(r->init[i].shape->dtype));
}

/* Takes element i of each of the n arrays x. */
static sd_status reducer_add(reducer *r, const hlo_value *x, int64_t i)
{
    sd_status st;

    if (r->wide) {
        hlo_wide v = hlo_wide_load(r->t, hlo_at_elem(&x[0], i));
        long double a = creall(r->sum), b = cimagl(r->sum);

        if (r->op == HLO_ADD)
            r->sum = CMPLXL(a + creall(v), b + cimagl(v));
        else if (sd_is_float(r->t))
            r->sum = CMPLXL(a * creall(v), 0);
        else
            r->sum = CMPLXL(a * creall(v) - b * cimagl(v),
                            a * cimagl(v) + b * creall(v));
        return NULL;
    }
    for (int k = 0; k < r->n; k++)
        r->arg[r->n + k] = hlo_at_elem(&x[k], i);
    if ((st = ref_region_run(r->e, r->region, r->arg, r->to)))
        return st;
    for (int k = 0; k < r->n; k++)
        memcpy(r->acc[k], r->next[k], 16);
    return NULL;
}

static void reducer_put(const reducer *r, hlo_value *out, int64_t i)
{
    if (r->wide) {
        hlo_wide_store(r->t, r->sum, hlo_at_elem(out, i));
        return;
    }
    for (int k = 0; k < r->n; k++) {
        hlo_value *v = hlo_result_at(out, k);

        memcpy(hlo_at_elem(v, i), r->acc[k], sd_dtype_bytes(v->shape->dtype));
    }
}

/* ---- reduce ---- */

sd_status ref_reduce(hlo_ev *e, const hlo_inst *in, const hlo_value *arg,
                     hlo_value *out)
{
    int n = in->narg / 2, rank = 0, nred = 0;
    const sd_shape *s = arg[0].shape;
    int64_t stride[SD_MAX_RANK], ix[SD_MAX_RANK] = {0};
    int64_t keep[SD_MAX_RANK], keep_by[SD_MAX_RANK];
    int64_t red[SD_MAX_RANK], red_by[SD_MAX_RANK], i = 0, count = 1;
    reducer r;
    sd_status st;

    sd_shape_strides(s, stride);
    for (int d = 0; d < s->rank; d++) {
        bool gone = false;

        for (int k = 0; k < in->dims.n; k++)
            gone |= in->dims.at[k] == d;
        if (gone) {
            red[nred] = s->dim[d];
            red_by[nred++] = stride[d];
            count *= s->dim[d];
        } else {
            keep[rank] = s->dim[d];
            keep_by[rank++] = stride[d];
        }
    }
    if (sd_shape_count(hlo_result_at(out, 0)->shape) == 0)
        return NULL;
    reducer_init(&r, e, in->comp[0], n, arg + n);
    do {
        int64_t rx[SD_MAX_RANK] = {0}, base = 0;

        for (int d = 0; d < rank; d++)
            base += ix[d] * keep_by[d];
        reducer_start(&r);
        if (count > 0)
            do {
                int64_t at = base;

                for (int d = 0; d < nred; d++)
                    at += rx[d] * red_by[d];
                if ((st = reducer_add(&r, arg, at)))
                    return st;
            } while (hlo_step(nred, red, rx));
        reducer_put(&r, out, i++);
    } while (hlo_step(rank, keep, ix));
    return NULL;
}

/* ---- windows ---- */

/* The operand's element under window position w of output ix; -1 when it is
 * padding or a hole of the dilation. */
static int64_t under_window(const hlo_inst *in, const sd_shape *s,
                            const int64_t *stride, const int64_t *ix,
                            const int64_t *w)
{
    int64_t at = 0;

    for (int d = 0; d < s->rank; d++) {
        const hlo_window_dim *win = &in->u.window.dim[d];
        int64_t k = win->reversal ? win->size - 1 - w[d] : w[d];
        int64_t p =
            ix[d] * win->stride + k * win->window_dilation - win->pad_low;

        if (p < 0 || p % win->base_dilation ||
            p / win->base_dilation >= s->dim[d])
            return -1;
        at += p / win->base_dilation * stride[d];
    }
    return at;
}

static void window_sizes(const hlo_inst *in, int64_t *size)
{
    for (int d = 0; d < in->u.window.n; d++)
        size[d] = in->u.window.dim[d].size;
}

static sd_status reduce_window(hlo_ev *e, const hlo_inst *in,
                               const hlo_value *arg, hlo_value *out)
{
    int n = in->narg / 2;
    const sd_shape *s = arg[0].shape, *to = hlo_result_at(out, 0)->shape;
    int64_t ix[SD_MAX_RANK] = {0}, stride[SD_MAX_RANK], size[SD_MAX_RANK];
    int64_t i = 0;
    reducer r;
    sd_status st;

    if (sd_shape_count(to) == 0)
        return NULL;
    reducer_init(&r, e, in->comp[0], n, arg + n);
    sd_shape_strides(s, stride);
    window_sizes(in, size);
    do {
        int64_t w[SD_MAX_RANK] = {0};

        reducer_start(&r);
        do {
            int64_t at = under_window(in, s, stride, ix, w);

            if (at >= 0 && (st = reducer_add(&r, arg, at)))
                return st;
        } while (hlo_step(s->rank, size, w));
        reducer_put(&r, out, i++);
    } while (hlo_step(to->rank, to->dim, ix));
    return NULL;
}

/* The element that `select` leaves of a window; -1 when all is padding. */
static sd_status pick(hlo_ev *e, ref_region *select, const hlo_inst *in,
                      const hlo_value *x, const int64_t *stride,
                      const int64_t *ix, int64_t *out)
{
    int64_t w[SD_MAX_RANK] = {0}, size[SD_MAX_RANK];
    sd_status st;

    *out = -1;
    window_sizes(in, size);
    do {
        int64_t at = under_window(in, x->shape, stride, ix, w);
        char stays = 0;
        void *to = &stays;

        if (at < 0)
            continue;
        if (*out >= 0) {
            const void *pair[2] = {hlo_at_elem(x, *out), hlo_at_elem(x, at)};

            if ((st = ref_region_run(e, select, pair, &to)))
                return st;
        }
        if (!stays)
            *out = at;
    } while (hlo_step(x->shape->rank, size, w));
    return NULL;
}

static sd_status select_and_scatter(hlo_ev *e, const hlo_inst *in,
                                    const hlo_value *arg, hlo_value *out)
{
    const sd_shape *s = arg[0].shape, *src = arg[1].shape;
    size_t size = sd_dtype_bytes(s->dtype);
    int64_t ix[SD_MAX_RANK] = {0}, stride[SD_MAX_RANK], at, i = 0;
    ref_region *select, *scatter;
    char fresh[16];
    void *to = fresh;
    sd_status st;

    for (int64_t k = 0; k < sd_shape_count(s); k++)
        memcpy(hlo_at_elem(out, k), arg[2].data, size);
    if (sd_shape_count(src) == 0)
        return NULL;
    select = ref_region_open(e, in->comp[0]);
    scatter = ref_region_open(e, in->comp[1]);
    sd_shape_strides(s, stride);
    do {
        if ((st = pick(e, select, in, &arg[0], stride, ix, &at)))
            return st;
        if (at >= 0) {
            const void *pair[2] = {hlo_at_elem(out, at),
                                   hlo_at_elem(&arg[1], i)};

            if ((st = ref_region_run(e, scatter, pair, &to)))
                return st;
            memcpy(hlo_at_elem(out, at), fresh, size);
        }
        i++;
    } while (hlo_step(src->rank, src->dim, ix));
    return NULL;
}

sd_status ref_window(hlo_ev *e, const hlo_inst *in, const hlo_value *arg,
                     hlo_value *out)
{
    return in->op == HLO_REDUCE_WINDOW ? reduce_window(e, in, arg, out)
                                       : select_and_scatter(e, in, arg, out);
}

/* ---- lines along one dimension ---- */

/* Line k of the array: its first element and the step along dimension d. */
static int64_t line_start(const sd_shape *s, int64_t d, int64_t k,
                          int64_t *step)
{
    int64_t stride[SD_MAX_RANK];

    sd_shape_strides(s, stride);
    *step = stride[d];
    return k / stride[d] * stride[d] * s->dim[d] + k % stride[d];
}

sd_status ref_scan(hlo_ev *e, const hlo_inst *in, const hlo_value *arg,
                   hlo_value *out)
{
    int n = in->narg / 2;
    const sd_shape *s = arg[0].shape;
    int64_t d = in->u.scan.dim, len = s->dim[d], step;
    int64_t count = sd_shape_count(s);
    reducer r;
    sd_status st;

    if (count == 0)
        return NULL;
    reducer_init(&r, e, in->comp[0], n, arg + n);
    for (int64_t k = 0; k < count / len; k++) {
        int64_t at = line_start(s, d, k, &step);

        reducer_start(&r);
        for (int64_t i = 0; i < len; i++) {
            int64_t p = at + (in->u.scan.reverse ? len - 1 - i : i) * step;

            if (in->u.scan.exclusive)
                reducer_put(&r, out, p);
            if ((st = reducer_add(&r, arg, p)))
                return st;
            if (!in->u.scan.exclusive)
                reducer_put(&r, out, p);
        }
    }
    return NULL;
}

sd_status ref_map(hlo_ev *e, const hlo_inst *in, const hlo_value *arg,
                  hlo_value *out)
{
    const void **x = sd_arena_array(e->arena, const void *, in->narg);
    int64_t n = sd_shape_count(out->shape);
    ref_region *r = ref_region_open(e, in->comp[0]);
    sd_status st;

    for (int64_t i = 0; i < n; i++) {
        void *to = hlo_at_elem(out, i);

        for (int k = 0; k < in->narg; k++)
            x[k] = hlo_at_elem(&arg[k], i);
        if ((st = ref_region_run(e, r, x, &to)))
            return st;
    }
    return NULL;
}

/* ---- sort ---- */

typedef struct {
    hlo_ev *e;
    ref_region *less; /* NULL: largest first, in the total order */
    const hlo_value *x;
    int n;
    const void **pair;
    sd_status st;
} sorter;

static bool comes_before(sorter *s, int64_t a, int64_t b)
{
    char yes = 0;
    void *to = &yes;

    if (s->st)
        return false;
    if (!s->less)
        return hlo_scalar_compare(HLO_GT, HLO_CMP_TOTAL, s->x->shape->dtype,
                                  hlo_at_elem(s->x, a), hlo_at_elem(s->x, b));
    for (int k = 0; k < s->n; k++) {
        s->pair[2 * k] = hlo_at_elem(&s->x[k], a);
        s->pair[2 * k + 1] = hlo_at_elem(&s->x[k], b);
    }
    s->st = ref_region_run(s->e, s->less, s->pair, &to);
    return yes;
}

/* Merge sort: stable, and it ends whatever the comparator says. */
static void sort_line(sorter *s, int64_t *at, int64_t *tmp, int64_t n)
{
    if (n < 2)
        return;
    int64_t half = n / 2, i = 0, k = half, o = 0;

    sort_line(s, at, tmp, half);
    sort_line(s, at + half, tmp, n - half);
    while (i < half && k < n)
        tmp[o++] = comes_before(s, at[k], at[i]) ? at[k++] : at[i++];
    while (i < half)
        tmp[o++] = at[i++];
    while (k < n)
        tmp[o++] = at[k++];
    memcpy(at, tmp, sizeof *at * (size_t)n);
}

/* Where element i of line k lies in the array of this shape. */
static int64_t line_at(const sd_shape *s, int64_t d, int64_t k, int64_t i)
{
    int64_t step, start = s->rank ? line_start(s, d, k, &step) : 0;

    return s->rank ? start + i * step : start;
}

/* Line k of the n results, as long as they are. */
static void put_sorted(const sorter *s, const int64_t *at, int64_t d, int64_t k,
                       hlo_value *out)
{
    for (int r = 0; r < s->n; r++) {
        hlo_value *to = hlo_result_at(out, r);
        int64_t len = to->shape->rank ? to->shape->dim[d] : 1;

        for (int64_t i = 0; i < len; i++)
            memcpy(hlo_at_elem(to, line_at(to->shape, d, k, i)),
                   hlo_at_elem(&s->x[r], at[i]),
                   sd_dtype_bytes(to->shape->dtype));
    }
}

/* The first of line k, and where in it they stood. */
static void put_top(const sorter *s, const int64_t *at, int64_t d, int64_t k,
                    hlo_value *out)
{
    hlo_value *value = &out->elem[0], *index = &out->elem[1];
    int64_t step, start = line_start(s->x->shape, d, k, &step);

    for (int64_t i = 0; i < value->shape->dim[d]; i++) {
        int64_t p = line_at(value->shape, d, k, i);

        memcpy(hlo_at_elem(value, p), hlo_at_elem(s->x, at[i]),
               sd_dtype_bytes(value->shape->dtype));
        sd_scalar_of_s64(index->shape->dtype, (at[i] - start) / step,
                         hlo_at_elem(index, p));
    }
}

sd_status ref_sort_lines(hlo_ev *e, const hlo_comp *less, int n,
                         const hlo_value *x, int64_t d, hlo_value *out)
{
    const sd_shape *s = x->shape;
    int64_t count = sd_shape_count(s), len = s->rank ? s->dim[d] : 1;
    sorter so = {.e = e, .x = x, .n = n};

    if (count == 0)
        return NULL;
    if (less)
        so.less = ref_region_open(e, less);
    so.pair = sd_arena_array(e->arena, const void *, 2 * n);
    int64_t *at = sd_arena_array(e->arena, int64_t, len);
    int64_t *tmp = sd_arena_array(e->arena, int64_t, len);

    for (int64_t k = 0; k < count / len; k++) {
        for (int64_t i = 0; i < len; i++)
            at[i] = line_at(s, d, k, i);
        sort_line(&so, at, tmp, len);
        if (so.st)
            return so.st;
        if (less)
            put_sorted(&so, at, d, k, out);
        else
            put_top(&so, at, d, k, out);
    }
    return NULL;
}

sd_status ref_sort(hlo_ev *e, const hlo_inst *in, const hlo_value *arg,
                   hlo_value *out)
{
    if (in->op == HLO_TOPK)
        return ref_sort_lines(e, NULL, 1, arg, arg[0].shape->rank - 1, out);
    return ref_sort_lines(e, in->comp[0], in->narg, arg, in->dims.at[0], out);
}
