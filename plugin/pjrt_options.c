/* What running needs of CompileOptionsProto: how many devices, and which.  The
 * compiler reads the rest. */
#include "pjrt.h"

#include "pb.h"

enum { MAX_DEVICES = 65536 };

/* A row of ids into column `partition`. */
static sd_status take_ids(const pb_ints *ids, pjrt_compile_options *o,
                          int partition)
{
    if (ids->n != o->nreplica)
        return sd_error(SD_INVALID,
                        "device assignment: %d devices for %d "
                        "replicas",
                        ids->n, o->nreplica);
    for (int i = 0; i < ids->n; i++)
        o->device[partition * o->nreplica + i] =
            ids->at[i] >= 0 && ids->at[i] <= INT32_MAX ? (int)ids->at[i] : -1;
    return NULL;
}

static sd_status take_assignment(const pb_assignment *a,
                                 pjrt_compile_options *o)
{
    int64_t nr = a->nreplica, np = a->npartition;
    sd_status st = NULL;

    if (!nr && !np && !a->partition.n) /* none */
        return NULL;
    if (nr < 1 || np < 1 || nr > MAX_DEVICES || np > MAX_DEVICES / nr)
        return sd_error(SD_INVALID,
                        "device assignment of %" PRId64 " replicas x %" PRId64
                        " partitions",
                        nr, np);
    if (a->partition.n != np)
        return sd_error(SD_INVALID,
                        "device assignment: %d rows for %" PRId64 " partitions",
                        a->partition.n, np);
    o->nreplica = (int)nr;
    o->npartition = (int)np;
    o->device = calloc((size_t)(nr * np), sizeof *o->device);
    if (!o->device)
        return sd_no_memory((size_t)(nr * np) * sizeof *o->device);
    for (int i = 0; i < a->partition.n && !st; i++)
        st = take_ids(&a->partition.at[i].ids, o, i);
    return st;
}

static sd_status take_build(const pb_build_options *b, pjrt_compile_options *o)
{
    o->nreplica = (int)SD_MIN((uint64_t)b->num_replicas, MAX_DEVICES);
    o->npartition = (int)SD_MIN((uint64_t)b->num_partitions, MAX_DEVICES);
    return b->assignment ? take_assignment(b->assignment, o) : NULL;
}

typedef struct {
    sd_bytes bytes;
    pjrt_compile_options *out;
} reading;

/* On an arena, so under sd_catch_oom. */
static sd_status read_options(void *ctx)
{
    reading *r = ctx;
    sd_arena *a = sd_arena_create();
    pb_compile_options p = {0};
    sd_status st = pb_read(a, &pb_compile_options_table, r->bytes, &p);

    if (!st && p.build)
        st = take_build(p.build, r->out);
    r->out->portable = p.portable != 0;
    sd_arena_destroy(a);
    return st;
}

sd_status pjrt_options_read(sd_bytes b, pjrt_compile_options *out)
{
    pjrt_compile_options o = {0};
    sd_status st = sd_catch_oom(read_options, &(reading){b, &o});

    if (st) {
        pjrt_options_finish(&o);
        return st;
    }
    o.nreplica = SD_MAX(o.nreplica, 1);
    o.npartition = SD_MAX(o.npartition, 1);
    *out = o;
    return NULL;
}

void pjrt_options_finish(pjrt_compile_options *o)
{
    free(o->device);
    o->device = NULL;
}

void pjrt_options_assignment(sd_buf *b, int nreplica, int npartition,
                             const int *device)
{
    pb_assignment sizes = {.nreplica = nreplica, .npartition = npartition};

    pb_write(b, &pb_assignment_table, &sizes);
    for (int p = 0; p < npartition; p++) {
        size_t row = pb_open(b, PB_TAG_assignment_partition);
        size_t ids = pb_open(b, PB_TAG_assigned_ids);

        for (int r = 0; r < nreplica; r++)
            sd_buf_leb(b, (uint64_t)device[p * nreplica + r]);
        pb_close(b, ids);
        pb_close(b, row);
    }
}
