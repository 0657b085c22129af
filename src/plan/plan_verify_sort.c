/* What emitters count on in sorts, in scatters whose updates share the work,
 * and in the memory that steps give to kernels: see plan_verify.c. */
#include "plan_mapping.h"
#include "plan_whole.h"

/* ---- sorts ---- */

static int64_t quotient_up(int64_t n, int64_t by)
{
    return (n + by - 1) / by;
}

/* Slot i holds so many of type t. */
static bool has_slot(const plan_kernel *k, int i, sd_dtype t, int64_t count)
{
    return i >= 0 && i < k->nslot && k->slot[i].dtype == t &&
           k->slot[i].count == count;
}

static sd_status check_operands(const plan_kernel *k, const plan_sort *s)
{
    int64_t row = s->step == PLAN_SORT_TILES
                      ? plan_sort_kept(s->n, s->piece, s->keep)
                      : s->keep;

    for (int i = 0; i < s->nop; i++)
        if (s->in[i] >= s->first_out ||
            (s->in[i] >= 0 &&
             !has_slot(k, s->in[i], s->type[i], s->rows * s->n)))
            return plan_bad(k, NULL, "an operand to sort that no slot has");
    for (int i = 0; i < s->nout; i++)
        if (s->out[i] < 0 || s->out[i] >= s->nop ||
            !has_slot(k, s->first_out + i, s->type[s->out[i]], s->rows * row))
            return plan_bad(k, NULL, "a sorted result that no slot has");
    return NULL;
}

static bool has_numbers(const plan_kernel *k, const plan_sort *s)
{
    int at = s->first_out + s->nout;
    int64_t n = s->rows * (plan_sort_pieces(s) + 1) << s->bits;

    return has_slot(k, at, SD_U32, n) &&
           (s->step == PLAN_SORT_SUM || has_slot(k, at + 1, SD_S64, 1));
}

/* A group has an item for each digit, and counters for each team. */
static bool has_shape(const plan_kernel *k, const plan_sort *s)
{
    return s->each > 0 && s->bits > 0 && s->bits <= 8 && s->team > 0 &&
           s->piece == (int64_t)k->group * s->each &&
           k->group >= 1 << s->bits && k->group % s->team == 0 &&
           (s->step == PLAN_SORT_SUM || s->keys) &&
           (s->step != PLAN_SORT_MOVE ||
            (s->inner_out > 0 && s->rows % s->inner_out == 0));
}

/* Runs of what items hold have a length that is a power of two. */
static bool has_team(const plan_kernel *k, const plan_sort *s,
                     const device_desc *dev)
{
    int64_t n = s->step == PLAN_SORT_TILES ? s->piece : s->n;

    return dev->kind != DEVICE_HOST && s->keys && s->team > 0 &&
           (s->team == 1 || (s->each & (s->each - 1)) == 0) &&
           n <= (int64_t)s->each * s->team &&
           k->group == s->team * plan_sort_abreast(s);
}

/* Which tiles there are follows from the step; pieces and merges are a GPU's.
 */
static sd_status check_step(const plan_kernel *k, const plan_sort *s,
                            const device_desc *dev)
{
    int64_t tiles = s->rows;

    if (s->step != PLAN_SORT_ROWS && dev->kind == DEVICE_HOST)
        return plan_bad(k, NULL, "a part of a sort on the host");
    if (s->step == PLAN_SORT_TILES)
        tiles *= quotient_up(s->n, s->piece);
    if (plan_sort_has_items(s))
        tiles = quotient_up(tiles, plan_sort_abreast(s));
    if (s->step == PLAN_SORT_MERGE) {
        tiles *= quotient_up(s->keep, (int64_t)k->group * s->each);
        if (!has_slot(k, s->first_out + s->nout, SD_S64, 1))
            return plan_bad(k, NULL, "a merge without the length of a run");
    }
    if (plan_sort_has_digits(s)) {
        tiles *= s->step == PLAN_SORT_SUM ? (int64_t)1 << s->bits
                                          : plan_sort_pieces(s);
        if (!has_numbers(k, s))
            return plan_bad(k, NULL, "a sort by digits without its numbers");
    }
    if (k->tiles != tiles)
        return plan_bad(k, NULL, "tiles of a sort are miscounted");
    if (s->scratch < plan_sort_bytes(s, dev->kind == DEVICE_HOST))
        return plan_bad(k, NULL, "a sort without the work space it needs");
    return NULL;
}

sd_status plan_verify_sort(const plan_kernel *k, const device_desc *dev)
{
    const plan_sort *s = k->sort;
    sd_status st;

    if (s->rows < 1 || s->n < 1 || s->inner < 1 || s->rows % s->inner ||
        s->keep < 1 || s->keep > s->n)
        return plan_bad(k, NULL,
                        "a sort of no rows, or of more than they have");
    if ((s->step == PLAN_SORT_TILES && s->piece < 1) ||
        (s->step == PLAN_SORT_MERGE && s->each < 1))
        return plan_bad(k, NULL, "a part of a sort that does nothing");
    if (plan_sort_has_items(s) && !has_team(k, s, dev))
        return plan_bad(k, NULL, "a row that its items do not hold");
    if (plan_sort_has_digits(s) && !has_shape(k, s))
        return plan_bad(k, NULL, "digits that a group cannot count");
    st = check_operands(k, s);
    return st ? st : check_step(k, s, dev);
}

/* ---- scatters ---- */

static bool is_outer(const plan_kernel *k, int a)
{
    return a >= 0 && a < k->nouter;
}

static sd_status check_runs(const plan_kernel *k, const plan_node *n)
{
    const plan_runs *r = k->runs;
    int64_t all, most;

    if (!is_outer(k, r->axis) || r->axis == r->batch ||
        (r->batch != -1 && !is_outer(k, r->batch)) ||
        !(n->varies >> r->axis & 1))
        return plan_bad(k, n, "runs along an axis that is not the updates'");
    all =
        k->axis[r->axis].extent * (r->batch < 0 ? 1 : k->axis[r->batch].extent);
    if (!has_slot(k, r->update, r->moved ? n->arg[0]->dtype : SD_S32, all) ||
        (!has_slot(k, r->key, SD_U32, all) &&
         !has_slot(k, r->key, SD_S64, all)))
        return plan_bad(k, n, "runs without a list of the updates");
    /* all ones is no place */
    most = k->slot[r->key].dtype == SD_U32 ? UINT32_MAX : INT64_MAX;
    if (k->slot[n->slot].count >= most)
        return plan_bad(k, n, "places that the list of them cannot say");
    if (k->vector > 1 &&
        !plan_places_are_wide(k, n, plan_lane_of(k), k->vector))
        return plan_bad(k, n, "neighbours of a row at places of their own");
    return NULL;
}

/* Items that share the updates of a scatter come to one place in turns, or in
 * any order where that is the same, and where a step of memory does it. */
sd_status plan_verify_scatter(const plan_kernel *k, const device_desc *dev)
{
    plan_for_each_node(n, k) {
        if (n->kind == PN_SCATTER && n->narg > 1 &&
            (dev->kind != DEVICE_HOST || n->arg[1]->kind != PN_CONST ||
             !plan_tiles_own_places(k)))
            return plan_bad(k, n, "begins with what no tile can write alone");
        if (n->meets &&
            (n->kind != PN_SCATTER || n->over || dev->kind == DEVICE_HOST ||
             sd_dtype_bytes(n->dtype) != 4 ||
             !plan_body_any_order(n->body, n->dtype)))
            return plan_bad(k, n, "meets where the order of updates shows");
        if (k->runs && n->kind == PN_SCATTER && !n->over)
            return n->meets ? plan_bad(k, n, "meets, and takes whole runs")
                            : check_runs(k, n);
    }
    return k->runs ? plan_bad(k, NULL, "runs of updates, and no scatter")
                   : NULL;
}

/* ---- steps ---- */

static size_t slot_bytes(const plan_slot *s)
{
    return (size_t)s->count * sd_dtype_bytes(s->dtype);
}

/* An item that merges makes results of two runs alone. */
static bool cuts_runs(const plan *p, const plan_sort *s, const thunk *t)
{
    const thunk_program *pr = p->program;
    thunk_slice run;
    int64_t width;

    if (!s || s->step != PLAN_SORT_MERGE)
        return false;
    run = t->arg[s->first_out + s->nout];
    memcpy(&width, pr->constants + pr->buffer[run.buffer].at + run.offset,
           sizeof width);
    return width < 1 || width % s->each;
}

/* There is such a digit. */
static bool has_digit(const plan *p, const plan_sort *s, const thunk *t)
{
    const thunk_program *pr = p->program;
    thunk_slice shift;
    int64_t bit;

    if (!s || (s->step != PLAN_SORT_COUNT && s->step != PLAN_SORT_MOVE))
        return true;
    shift = t->arg[s->first_out + s->nout + 1];
    memcpy(&bit, pr->constants + pr->buffer[shift.buffer].at + shift.offset,
           sizeof bit);
    return bit >= 0 && bit < s->code_bits;
}

static sd_status check_memory(const plan *p, const thunk *t)
{
    const plan_kernel *k = p->kernel[t->kernel];

    if (t->narg != k->nslot)
        return plan_bad(k, NULL, "a step with other slots than its kernel");
    for (int i = 0; i < k->nslot; i++) {
        const thunk_slice *x = &t->arg[i];

        if (slot_bytes(&k->slot[i]) > x->bytes)
            return plan_bad(k, NULL, "a slot beyond the memory that it gets");
        for (int j = 0; j < i; j++)
            if ((k->slot[i].noalias || k->slot[j].noalias) &&
                (k->slot[i].access | k->slot[j].access) & PLAN_WRITE &&
                thunk_slices_overlap(*x, t->arg[j]))
                return plan_bad(k, NULL,
                                "slots that overlap and say they do not");
    }
    if (cuts_runs(p, k->sort, t))
        return plan_bad(k, NULL, "items that share a run's end");
    if (!has_digit(p, k->sort, t))
        return plan_bad(k, NULL, "a digit that codes do not have");
    return NULL;
}

sd_status plan_verify_steps(const plan *p, const thunk_seq *seq)
{
    sd_status st = NULL;

    for (int i = 0; i < seq->n && !st; i++) {
        const thunk *t = &seq->at[i];

        if (t->kind == THUNK_KERNEL)
            st = check_memory(p, t);
        for (int j = 0; j < t->nseq && !st; j++)
            st = plan_verify_steps(p, &t->seq[j]);
    }
    return st;
}
