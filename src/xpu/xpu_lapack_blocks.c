/* One large matrix on all our threads: LAPACK's routines get blocks of it, each
 * call being one thread's.  The library's own threads spin while they wait for
 * each other, which takes all cores, and milliseconds where another program has
 * one of them. */
#include "xpu_lapack.h"

/* Columns of a panel; work below which one thread is as quick; numbers of a
 * call that moves some. */
enum { WIDE = 64, LEAST_WORK = 1 << 24, LEAST_MOVED = 1 << 16 };

bool lapack_is_large(const lapack_job *j, int64_t m, int64_t n, int64_t k)
{
    return j->alone && j->l->nthread > 1 &&
           (double)m * (double)n * (double)k >= LEAST_WORK;
}

/* Where part i of `parts` of `count` rows or columns begins. */
static int64_t first_of(int64_t count, int64_t parts, int64_t i)
{
    int64_t each = ((count + parts - 1) / parts + 15) / 16 * 16;

    return SD_MIN(each * i, count);
}

static int64_t parts_of(const lapack_job *j, int64_t count, int64_t least)
{
    return SD_MAX(SD_MIN(count / least, (int64_t)j->l->nthread * 2), 1);
}

/* ---- moving ---- */

typedef struct {
    const lapack_job *j;
    void *to;
    const void *from;
    int64_t rows, cols, parts;
    bool conjugate;
} turning;

static void turn_part(void *ctx, int64_t i, int worker)
{
    const turning *t = ctx;

    (void)worker;
    lapack_turn_rows(t->j, t->to, t->from, t->rows, t->cols, t->conjugate,
                     first_of(t->rows, t->parts, i),
                     first_of(t->rows, t->parts, i + 1));
}

void lapack_turn(const lapack_job *j, void *to, const void *from, int64_t rows,
                 int64_t cols, bool conjugate)
{
    turning t = {j, to, from, rows, cols, 1, conjugate};

    if (j->alone && j->l->nthread > 1 && rows * cols >= LEAST_MOVED)
        t.parts = parts_of(j, rows * cols, LEAST_MOVED / 4);
    if (t.parts > 1)
        sd_pool_run(j->l->pool, t.parts, turn_part, &t);
    else
        turn_part(&t, 0, 0);
}

/* ---- elimination ---- */

/* a, m x n by columns; the panel at column k, `wide` of them. */
typedef struct {
    const lapack_job *j;
    char *a, *pivots;
    int64_t m, n, steps, k, wide, parts;
} elimination;

static char *at(const elimination *e, int64_t row, int64_t col)
{
    return e->a + (size_t)(col * e->m + row) * e->j->size;
}

static int64_t width_at(const elimination *e, int64_t k)
{
    return SD_MIN(WIDE, e->steps - k);
}

/* Its pivots count from the matrix's first row. */
static void factor_panel(const elimination *e, int64_t k)
{
    int64_t rows = e->m - k, wide = width_at(e, k), info = 0;
    char *pivots = e->pivots + (size_t)k * e->j->l->int_bytes;

    LAPACK(e->j, GETRF, &rows, &wide, at(e, k, k), &e->m, pivots, &info);
    for (int64_t i = 0; i < wide; i++)
        lapack_put_int(e->j, pivots, i, lapack_int(e->j, pivots, i) + k);
}

/* The exchanges of steps [from, to) in columns [first, last). */
static void exchange(const elimination *e, int64_t first, int64_t last,
                     int64_t from, int64_t to)
{
    const int64_t n = last - first, one = 1;

    from++; /* Fortran's */
    if (n > 0 && from <= to)
        LAPACK(e->j, LASWP, &n, at(e, 0, first), &e->m, &from, &to, e->pivots,
               &one);
}

/* What the panel does to columns [first, last) right of it. */
static void take_panel(const elimination *e, int64_t first, int64_t last)
{
    static const double one_f64[2] = {1, 0}, less_f64[2] = {-1, 0};
    static const float one_f32[2] = {1, 0}, less_f32[2] = {-1, 0};
    bool narrow = e->j->part == 4;
    const void *one = narrow ? (const void *)one_f32 : one_f64;
    const void *less = narrow ? (const void *)less_f32 : less_f64;
    int64_t n = last - first, end = e->k + e->wide, rest = e->m - end;

    if (n <= 0)
        return;
    exchange(e, first, last, e->k, end);
    LAPACK(e->j, TRSM, "L", "L", "N", "U", &e->wide, &n, one, at(e, e->k, e->k),
           &e->m, at(e, e->k, first), &e->m);
    if (rest > 0)
        LAPACK(e->j, GEMM, "N", "N", &rest, &n, &e->wide, less,
               at(e, end, e->k), &e->m, at(e, e->k, first), &e->m, one,
               at(e, end, first), &e->m);
}

/* The next panel comes first, and is factored beside what is right of it. */
static void run_step(void *ctx, int64_t i, int worker)
{
    const elimination *e = ctx;
    int64_t next = e->k + e->wide, wide = width_at(e, next);
    int64_t right = next + wide, count = e->n - right;

    (void)worker;
    if (i > 0) {
        take_panel(e, right + first_of(count, e->parts, i - 1),
                   right + first_of(count, e->parts, i));
    } else if (wide > 0) {
        take_panel(e, next, right);
        factor_panel(e, next);
    }
}

static void finish_columns(void *ctx, int64_t i, int worker)
{
    const elimination *e = ctx;
    int64_t first = i * WIDE, last = first + width_at(e, first);

    (void)worker;
    exchange(e, first, last, last, e->steps);
}

void lapack_eliminate(const lapack_job *j, int64_t m, int64_t n, char *a,
                      char *pivots)
{
    elimination e = {.j = j,
                     .a = a,
                     .pivots = pivots,
                     .m = m,
                     .n = n,
                     .steps = SD_MIN(m, n)};

    factor_panel(&e, 0);
    for (; e.k < e.steps; e.k += e.wide) {
        e.wide = width_at(&e, e.k);
        e.parts = parts_of(j, n - e.k - 2 * e.wide, WIDE);
        sd_pool_run(j->l->pool, 1 + e.parts, run_step, &e);
    }
    sd_pool_run(j->l->pool, (e.steps + WIDE - 1) / WIDE, finish_columns, &e);
}

/* ---- triangles ---- */

typedef struct {
    const lapack_job *j;
    const libcall_solve *c;
    const char *a;
    char *x;
    int64_t parts;
} solution;

/* x by columns is q x p: columns of an A on the left, rows of one on the
 * right. */
static void solve_part(void *ctx, int64_t i, int worker)
{
    const solution *s = ctx;
    int64_t count = s->c->left ? s->c->q : s->c->p;
    int64_t first = first_of(count, s->parts, i);
    int64_t n = first_of(count, s->parts, i + 1) - first;
    size_t apart = s->c->left ? 1 : (size_t)s->c->q;

    (void)worker;
    if (n > 0)
        lapack_solve_part(s->j, s->c, s->a,
                          s->x + (size_t)first * apart * s->j->size, n);
}

void lapack_solve_one(const lapack_job *j, const libcall_solve *c,
                      const char *a, char *x)
{
    int64_t n = c->left ? c->p : c->q, count = c->left ? c->q : c->p;
    solution s = {j, c, a, x, parts_of(j, count, 16)};

    if (lapack_is_large(j, c->p, c->q, n))
        sd_pool_run(j->l->pool, s.parts, solve_part, &s);
    else
        lapack_solve_part(j, c, a, x, count);
}
