/* Kernels of windows' gradients: lowering, tiles, printing and verifying.
 * plan_places.h says how they run. */
#include <string.h>

#include "plan_lower.h"
#include "plan_mapping.h"
#include "plan_whole.h"

/* Slots: x, y, the result. */
sd_status plan_lower_placing(plan_lowering *lw, const hlo_inst *in)
{
    plan_kernel *k = lw->k;
    plan_places *p = k->places = sd_arena_new(lw->a, plan_places);
    const hlo_places *w = &p->of;

    if (!hlo_places_read(in, &p->of))
        return sd_error(SD_INTERNAL, "%s: no call of a window's gradient",
                        in->name);
    for (int i = 0; i < in->narg; i++)
        k->slot[i].access = PLAN_READ;
    k->cls = PLAN_PLACING;
    k->flops = 2.0 * (double)sd_shape_count(in->arg[1]->shape) *
               (double)(w->place[0] * w->place[1] * w->features);
    return lw->st;
}

static int64_t blocks_of(int64_t features)
{
    return (features + HLO_PLACES_FEATURES - 1) / HLO_PLACES_FEATURES;
}

static int64_t tiles_of(const plan_places *p)
{
    return p->of.pieces * p->x_blocks * p->y_blocks;
}

static plan_engine engine_of(sd_dtype t)
{
    return t == SD_BF16  ? PLAN_ENGINE_WGMMA_BF16
           : t == SD_F16 ? PLAN_ENGINE_WGMMA_F16
                         : PLAN_ENGINE_MMA_TF32;
}

void plan_tile_places(plan_kernel *k, const device_desc *dev)
{
    plan_places *p = k->places;

    p->engine = engine_of(k->slot[0].dtype);
    hlo_places_cut(&p->of, dev->local_most, &p->step);
    p->x_blocks = blocks_of(p->of.features);
    p->y_blocks = blocks_of(p->of.own);
    k->group = k->items = (int)p->of.place[0] * PLAN_PLACES_TEAM;
    k->tiles = tiles_of(p);
    plan_add_work(k, plan_places_area(p) * (size_t)p->step.pairs);
}

void plan_print_places(sd_buf *b, const plan_kernel *k)
{
    const plan_places *p = k->places;
    const hlo_places *w = &p->of;
    const hlo_places_step *s = &p->step;

    sd_buf_fmt(
        b,
        "  places %" PRId64 " x %" PRId64 " from %" PRId64 ", %" PRId64
        " of %" PRId64 " x %" PRId64 " in %" PRId64 " x %" PRId64 ", %" PRId64
        " images in %" PRId64 " bands, %" PRId64 " by %" PRId64 " features\n",
        w->place[0], w->place[1], -w->low[0], -w->low[1], w->of[0], w->of[1],
        w->size[0], w->size[1], w->images, s->bands, w->features, w->own);
    sd_buf_fmt(b,
               "  %" PRId64 " steps of %" PRId64 " x %" PRId64
               " positions in %" PRId64 " pieces, %d pairs, group %d\n",
               s->steps, s->rows, s->columns, w->pieces, s->pairs, k->group);
}

bool plan_same_places(const plan_places *x, const plan_places *y)
{
    if (!x || !y)
        return x == y;
    return memcmp(&x->of, &y->of, sizeof x->of) == 0 && x->engine == y->engine;
}

sd_status plan_verify_places(const plan_kernel *k, const device_desc *dev)
{
    const plan_places *p = k->places;
    const plan_engine_info *of = &plan_engine_table[p->engine];
    const hlo_places_step *s = &p->step;

    if (p->engine != engine_of(of->part) ||
        (of->needs & dev->features) != of->needs)
        return plan_bad(k, NULL,
                        "a window's gradient by an engine that the device has "
                        "not, or that is not for it");
    if (k->nslot != 3 || k->slot[0].dtype != of->part ||
        k->slot[1].dtype != of->part || k->slot[2].dtype != SD_F32 ||
        k->slot[0].align < PLAN_LINE_PART || k->slot[1].align < PLAN_LINE_PART)
        return plan_bad(k, NULL,
                        "a window's gradient of other types, or whose operands "
                        "lie badly");
    if (k->tiles != tiles_of(p) ||
        (of->several && (s->columns % 2 || s->pairs < 3)) || s->pairs < 2 ||
        p->of.pieces > s->steps ||
        s->steps * s->y_units * HLO_PLACES_BESIDE !=
            p->of.images * p->of.of[0] * p->of.of[1])
        return plan_bad(k, NULL, "a window's positions are miscounted");
    if (k->group != p->of.place[0] * PLAN_PLACES_TEAM ||
        k->local_bytes < plan_places_area(p) * (size_t)s->pairs ||
        k->local_bytes > dev->local_most)
        return plan_bad(k, NULL, "a window's gradient fits no group");
    return NULL;
}
