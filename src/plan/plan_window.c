/* A window's x in local memory once (ADR 25).  What a product of panels reads
 * of an image at one position of a window it reads at the next one from so many
 * rows further on, if an axis of M moves along the image as the window's does.
 * So the positions of the tile are copied with what the window reaches beyond
 * them, and all positions of the window find their rows there: 3 x 3 copy a
 * ninth, and ask a ninth as often where the image ends.  Rows of the image lie
 * one after another, each with what is beyond its end, and the tile counts its
 * positions so; sums of those beyond are not used.  Where M's axis moves in
 * strides of 2 the even rows are a plane of their own, in which its positions
 * are neighbours, and the odd ones another. */
#include "plan_blocks.h"

enum {
    ACCESS = 16,    /* bytes that an item copies at once */
    MOST_STEPS = 8, /* positions of the window's last axis */
    LEAST_SLIDE = 3, /* and those for which x slides: while they are multiplied
                        the next x is on its way, three products ahead */
    MOST_HALO = 16, /* rows of it */
};

uint64_t plan_window_axes(const plan_blocks *b)
{
    return b->node->over & ~(1ull << plan_last_axis(b->node->over));
}

/* Do guards of x see `of` positions of w as `by` of a? */
static bool guards_agree(const plan_node *x, int w, int a, int64_t by,
                         int64_t of)
{
    int64_t of_w, of_a;

    for (int i = 0; i < x->nguard; i++)
        if (!plan_expr_stride(x->guard[i].e, w, &of_w) ||
            !plan_expr_stride(x->guard[i].e, a, &of_a) ||
            of * of_w != by * of_a)
            return false;
    return true;
}

plan_pace plan_window_pace(const plan_kernel *k, const plan_blocks *b, int w)
{
    plan_pace best = {.axis = -1};
    int64_t of_w, of_a;

    if (!plan_expr_stride(b->x->off, w, &of_w) || of_w <= 0)
        return best;
    for (int a = 0; a < k->naxis; a++) {
        int64_t by, of;

        if (!((b->m_in | 1ull << b->m) >> a & 1) ||
            !plan_expr_stride(b->x->off, a, &of_a) || of_a <= 0)
            continue;
        by = SD_MAX(of_w / of_a, 1);
        of = SD_MAX(of_a / of_w, 1);
        if (of * of_w == by * of_a && of <= k->axis[w].extent &&
            (best.axis < 0 || by * of < best.by * best.of) &&
            guards_agree(b->x, w, a, by, of))
            best = (plan_pace){a, by, of};
    }
    return best;
}

int64_t plan_window_halo(const plan_kernel *k, const plan_blocks *b, int a)
{
    int64_t n = 0;

    plan_for_each_axis(w, plan_window_axes(b)) {
        plan_pace p = plan_window_pace(k, b, w);

        if (p.axis == a)
            n += (k->axis[w].extent - 1) / p.of * p.by;
    }
    return n;
}

/* Rows from a position of M to that which w's next one of its phase reads. */
static int64_t pitch_of(const plan_kernel *k, const plan_blocks *b,
                        const plan_pace *p)
{
    return p->by *
           plan_tile_points(k, b, b->m_in >> p->axis >> 1 << 1 << p->axis);
}

int64_t plan_window_plane(const plan_kernel *k, const plan_blocks *b)
{
    int64_t n = b->mt;

    plan_for_each_axis(w, plan_window_axes(b)) {
        plan_pace p = plan_window_pace(k, b, w);

        n += (k->axis[w].extent - 1) / p.of * pitch_of(k, b, &p);
    }
    return n;
}

int64_t plan_window_planes(const plan_kernel *k, const plan_blocks *b, int w)
{
    int64_t n = 1;

    for (; w < k->naxis; w++)
        if (plan_window_axes(b) >> w & 1)
            n *= plan_window_pace(k, b, w).of;
    return n;
}

int64_t plan_window_shift(const plan_kernel *k, const plan_blocks *b, int w,
                          int64_t at)
{
    plan_pace p = plan_window_pace(k, b, w);
    int64_t phase = plan_window_planes(k, b, w + 1) * plan_window_plane(k, b);

    return at % p.of * phase + at / p.of * pitch_of(k, b, &p);
}

int64_t plan_window_rows(const plan_kernel *k, const plan_blocks *b)
{
    int64_t n = plan_window_planes(k, b, 0) * plan_window_plane(k, b),
            each = b->step * (int64_t)sd_dtype_bytes(b->part);

    return plan_round_up(n, SD_MAX(k->group * ACCESS / each, 1));
}

int plan_areas_of_y(const plan_kernel *k, const plan_blocks *b)
{
    return b->window ? (int)k->axis[plan_last_axis(plan_window_axes(b))].extent
                     : 2;
}

/* What its vectors have, and where each begins.  A step that has all of K's
 * last axis is read before the window is multiplied. */
double plan_window_registers(const plan_kernel *k, const plan_blocks *b,
                             int step)
{
    plan_blocks of = *b;
    double bytes = (double)sd_dtype_bytes(b->part);

    of.step = step;
    return k->axis[plan_last_axis(b->node->over)].extent == step
               ? 0
               : (double)plan_window_rows(k, &of) * step / k->group * bytes *
                     (1 + 4.0 / ACCESS);
}

/* Does w move x along an axis of M, and no other of K's does? */
static bool takes_axis(const plan_kernel *k, const plan_blocks *b, int w,
                       uint64_t *taken)
{
    int a = plan_window_pace(k, b, w).axis;

    if (a < 0 || *taken >> a & 1)
        return false;
    *taken |= 1ull << a;
    return true;
}

bool plan_find_window(const plan_kernel *k, const plan_blocks *b)
{
    const plan_engine_info *e = &plan_engine_table[b->engine];
    uint64_t axes = plan_window_axes(b), side = b->m_in | 1ull << b->m,
             taken = 0;
    int last = plan_last_axis(b->node->over), inner;
    int64_t s;

    if (!e->panels || !axes || b->x->kind != PN_LOAD || b->y->kind != PN_LOAD ||
        b->y->nguard || !plan_fills_zeros(b->x) || !plan_fills_zeros(b->y) ||
        b->x_along != last || k->axis[last].extent % e->depth)
        return false;
    inner = plan_last_axis(axes);
    if (k->axis[inner].extent > MOST_STEPS || k->axis[inner].extent < 2 ||
        !plan_lies_in_row(k, b->y->off, axes & ~(1ull << inner)) ||
        !plan_expr_stride(b->y->off, inner, &s) ||
        !plan_expr_stride(b->y->off, last, &s) ||
        !plan_expr_stride(b->y->off, b->y_along, &s) ||
        !plan_expr_stride(b->x->off, last, &s) || s != 1)
        return false;
    for (int i = 0; i < b->x->nguard; i++)
        if (b->x->guard[i].e->varies >> last & 1)
            return false;
    for (int a = 0; a < k->naxis; a++)
        if ((side >> a & 1 &&
             (!plan_expr_stride(b->x->off, a, &s) ||
              plan_window_halo(k, b, a) > k->axis[a].extent)) ||
            (axes >> a & 1 && !takes_axis(k, b, a, &taken)))
            return false;
    return true;
}

/* ---- wide engines: x slides ---- */

int plan_slide_axis(const plan_blocks *b)
{
    return plan_last_axis(plan_window_axes(b));
}

int64_t plan_slide_step(const plan_kernel *k, const plan_blocks *b)
{
    return plan_window_pace(k, b, plan_slide_axis(b)).by;
}

int64_t plan_slide_halo(const plan_kernel *k, const plan_blocks *b)
{
    return (k->axis[plan_slide_axis(b)].extent - 1) * plan_slide_step(k, b);
}

/* Rows of x lie along K and are whole lines, which its other guards leave
 * whole. */
bool plan_find_slide(const plan_kernel *k, const plan_blocks *b)
{
    int last = plan_last_axis(b->node->over), kx;
    int64_t line = PLAN_LINE / (int64_t)sd_dtype_bytes(b->part), s;
    plan_pace p;

    if (!plan_is_wide(b) || !plan_window_axes(b) || b->x->kind != PN_LOAD ||
        b->y->kind != PN_LOAD || b->x_along != last ||
        k->axis[last].extent % line)
        return false;
    kx = plan_slide_axis(b);
    p = plan_window_pace(k, b, kx);
    if (p.axis != plan_last_axis(plan_block_rows(b)) || p.of != 1 ||
        k->axis[kx].extent < LEAST_SLIDE || k->axis[kx].extent > MOST_STEPS ||
        plan_slide_halo(k, b) > SD_MIN(MOST_HALO, k->axis[p.axis].extent))
        return false;
    plan_for_each_axis(a, plan_block_rows(b))
        if (!plan_expr_stride(b->x->off, a, &s))
            return false;
    return true;
}
