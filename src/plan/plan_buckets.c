/* Scatters on GPUs whose updates, of one word, a group takes for a bucket of
 * places (plan_buckets): how many buckets, and the kernel.  Updates need be in
 * order by bucket alone, which is one digit of a sort instead of as many as
 * places have, and the array is read and written once. */
#include "plan_mapping.h"
#include "plan_whole.h"

enum {
    MOST_BITS = 8,
    MOST_NEAR = 3, /* places of a sector of memory */
    /* A unit's groups hide each other's waiting: with at most so many positions
     * a bucket, its memory holds six. */
    GROUPS_A_UNIT = 6,
    FEW_POSITIONS = 4096,
    LEAST_UPDATES = 1 << 15,
    LEAST_ROW = 1 << 13, /* of a batch: shorter ones the items of groups sort */
    /* to read and write a place is worth so many updates that are not sorted */
    PLACES_AN_UPDATE = 8
};

int64_t plan_bucket_room(const plan_buckets *b, int group)
{
    int64_t far = ((b->places - 1) >> (b->bits + b->near)) + 1;

    return plan_round_up(far << b->near, (int64_t)group * PLAN_BUCKET_AT_ONCE);
}

/* Marks stand behind the places. */
static size_t bytes_of(const plan_buckets *b, int group)
{
    return (size_t)plan_bucket_room(b, group) *
           (sizeof(uint32_t) + PLAN_BUCKET_MARKS);
}

/* Neighbours stay together as far as there are places for each bucket. */
static void share_places(plan_buckets *b, int bits)
{
    b->bits = bits;
    b->near = MOST_NEAR;
    while (b->near && (int64_t)1 << (b->bits + b->near) > b->places)
        b->near--;
}

bool plan_choose_buckets(plan_buckets *b, const device_desc *dev)
{
    int64_t all = b->batches * b->n;

    if (!(dev->features & DEVICE_HAS_VOTES) || all < LEAST_UPDATES ||
        b->n < LEAST_ROW || b->batches * b->places > PLACES_AN_UPDATE * all)
        return false;
    share_places(b, 1);
    while (b->bits < MOST_BITS && (int64_t)2 << b->bits <= b->places &&
           (plan_bucket_room(b, dev->subgroup) > FEW_POSITIONS ||
            b->batches << b->bits < (int64_t)GROUPS_A_UNIT * dev->units))
        share_places(b, b->bits + 1);
    return bytes_of(b, dev->subgroup) <= dev->local_bytes;
}

plan_kernel *plan_bucket_kernel(const plan_kernel *whole, const char *name,
                                const plan_buckets *b, sd_dtype type,
                                const device_desc *dev)
{
    sd_arena *a = whole->arena;
    plan_kernel *k = sd_arena_new(a, plan_kernel);
    int64_t all = b->batches * b->n;

    *k = (plan_kernel){.name = name,
                       .cls = PLAN_BUCKETS,
                       .buckets = b,
                       .nslot = 4,
                       .flops = (double)all,
                       .arena = a};
    plan_tile_begin(k, dev);
    k->group = k->items = dev->subgroup;
    k->tiles = b->batches << b->bits;
    k->slot = sd_arena_array(a, plan_slot, k->nslot);
    k->slot[0] = plan_work_slot(SD_U32, all, PLAN_READ);
    k->slot[1] = plan_work_slot(type, all, PLAN_READ);
    k->slot[2] =
        plan_work_slot(type, b->batches * b->places, PLAN_READ | PLAN_WRITE);
    k->slot[3] = plan_work_slot(SD_U32, b->batches * (b->pieces + 1) << b->bits,
                                PLAN_READ);
    for (int i = 0; i < k->nslot; i++)
        k->bytes += (double)k->slot[i].count * sizeof(uint32_t);
    plan_add_work(k, bytes_of(b, k->group));
    return k;
}

static bool has_lists(const plan_kernel *k, const plan_buckets *b)
{
    int64_t all = b->batches * b->n;
    sd_dtype t = k->slot[1].dtype;

    return k->nslot == 4 && k->slot[0].dtype == SD_U32 &&
           k->slot[0].count == all && k->slot[1].count == all &&
           sd_dtype_bytes(t) == sizeof(uint32_t) && k->slot[2].dtype == t &&
           k->slot[2].count == b->batches * b->places &&
           k->slot[3].dtype == SD_U32 &&
           k->slot[3].count == b->batches * (b->pieces + 1) << b->bits;
}

sd_status plan_verify_buckets(const plan_kernel *k, const device_desc *dev)
{
    const plan_buckets *b = k->buckets;

    if (!(dev->features & DEVICE_HAS_VOTES) || k->group != dev->subgroup)
        return plan_bad(k, NULL, "buckets of groups that do not vote");
    if (b->bits < 1 || b->bits > MOST_BITS || b->near < 0 || b->n < 1 ||
        b->places < 1 || b->places > UINT32_MAX ||
        k->tiles != b->batches << b->bits)
        return plan_bad(k, NULL, "buckets that not all places are in");
    if (!has_lists(k, b))
        return plan_bad(k, NULL, "buckets without lists of updates and places");
    if (bytes_of(b, k->group) > k->local_bytes)
        return plan_bad(k, NULL, "a bucket that local memory does not hold");
    return NULL;
}
