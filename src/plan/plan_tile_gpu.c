/* The mapping on a GPU: a tile is what a group of work items takes, LANE is the
 * item in its group. */
#include "plan_room.h"

enum {
    BLOCK = 16, /* positions of an axis that is crossed, in a tile */
    GPU_STEPS = 4, /* positions of LANE that an item takes at most */
    LESS_IDLE = 8 /* a group is smaller than the device's where that spares
                     one item in so many */
};

/* Items of a group along the LANE axis x.  Where x is 32 or 96 channels, groups
 * of 64 would leave a half or a quarter of the items without work.  In a group
 * larger than the axis some items also take the last position instead of their
 * own, which would make gathers of neighbouring reads. */
static int group_of(const plan_axis *x, const device_desc *dev)
{
    int best = dev->group;

    if (!x->outer)
        return best;
    for (int g = best / 2; g >= plan_least_group(dev); g /= 2) {
        int64_t all = plan_round_up(x->extent, best),
                less = plan_round_up(x->extent, g);

        if (all - less >= all / LESS_IDLE || best > x->extent)
            best = g;
    }
    return best;
}

void plan_tile_gpu(plan_kernel *k, const device_desc *dev)
{
    int lane = plan_lane_axis(k, dev);
    double all = plan_points(k, (1ull << k->nouter) - 1);
    int cross = plan_crossing_axis(k, lane);
    int64_t steps;

    k->axis[lane].place = PLAN_LANE;
    k->group = group_of(&k->axis[lane], dev);
    steps = (int64_t)(all / ((double)k->group * dev->units * 8));
    steps = SD_MIN(SD_MAX(steps, 1), GPU_STEPS);
    if (k->nstage == 0 || k->stage[0].axes)
        steps = 1; /* an item has a loop of its own */
    for (int i = 0; i < k->nouter; i++)
        plan_cut_axis(&k->axis[i], i == lane    ? k->group * steps
                                   : i == cross ? BLOCK
                                                : 1);
    plan_unroll_rows(k, lane);
    if (!k->axis[lane].outer)
        plan_park(k, lane, dev->local_bytes, false);
}
