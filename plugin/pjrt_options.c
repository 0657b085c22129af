/* What running needs of CompileOptionsProto: how many devices, and which.  The
 * compiler reads the rest. */
#include "pjrt.h"

enum { /* field numbers */
       OPT_BUILD = 3,
       OPT_PORTABLE = 4,
       BUILD_REPLICAS = 4,
       BUILD_PARTITIONS = 5,
       BUILD_ASSIGNMENT = 9,
       ASSIGN_REPLICAS = 1,
       ASSIGN_PARTITIONS = 2,
       ASSIGN_DEVICES = 3,
       DEVICES_IDS = 1
};
enum { WIRE_VARINT, WIRE_64, WIRE_BYTES, WIRE_32 = 5 };
#define MAX_DEVICES 65536

typedef struct {
    uint64_t field, value; /* value: of a varint */
    unsigned wire;
    sd_bytes bytes;
} item;

/* The next field; false at the end, and after an error. */
static bool next(sd_cursor *c, item *i)
{
    uint64_t tag;

    if (!sd_cursor_left(c))
        return false;
    tag = sd_read_leb(c);
    i->field = tag >> 3;
    i->wire = tag & 7;
    i->value = 0;
    i->bytes = (sd_bytes){0};
    if (i->wire == WIRE_VARINT)
        i->value = sd_read_leb(c);
    else if (i->wire == WIRE_64)
        i->value = sd_read_u64(c);
    else if (i->wire == WIRE_32)
        i->value = sd_read_u32(c);
    else if (i->wire == WIRE_BYTES)
        i->bytes = sd_read_bytes(c, sd_read_leb(c));
    else
        sd_cursor_fail(c, "a field of protobuf");
    if (!i->field)
        sd_cursor_fail(c, "a field's number");
    return !c->bad;
}

/* A row of ids, packed or one by one, into column `partition`. */
static sd_status read_ids(sd_bytes b, pjrt_compile_options *o, int partition)
{
    sd_cursor c = sd_cursor_of(b);
    int n = 0;
    item i;

    while (next(&c, &i)) {
        sd_cursor ids = sd_cursor_of(i.bytes);

        if (i.field != DEVICES_IDS)
            continue;
        do {
            uint64_t id = i.wire == WIRE_BYTES ? sd_read_leb(&ids) : i.value;

            if (n < o->nreplica && id <= INT32_MAX)
                o->device[partition * o->nreplica + n] = (int)id;
            n++;
        } while (sd_cursor_left(&ids));
        if (ids.bad)
            sd_cursor_fail(&c, "device ids");
    }
    if (c.bad)
        return sd_cursor_status(&c, "device assignment");
    if (n != o->nreplica)
        return sd_error(SD_INVALID,
                        "device assignment: %d devices for %d "
                        "replicas",
                        n, o->nreplica);
    return NULL;
}

static sd_status read_assignment(sd_bytes b, pjrt_compile_options *o)
{
    sd_cursor c = sd_cursor_of(b);
    uint64_t nr = 0, np = 0;
    int row = 0;
    sd_status st;
    item i;

    while (next(&c, &i)) {
        if (i.field == ASSIGN_REPLICAS)
            nr = i.value;
        else if (i.field == ASSIGN_PARTITIONS)
            np = i.value;
    }
    if (c.bad)
        return sd_cursor_status(&c, "device assignment");
    if (!nr || !np || nr > MAX_DEVICES || np > MAX_DEVICES / nr)
        return sd_error(SD_INVALID,
                        "device assignment of %" PRIu64 " replicas x %" PRIu64
                        " partitions",
                        nr, np);
    o->nreplica = (int)nr;
    o->npartition = (int)np;
    free(o->device);
    o->device = calloc(nr * np, sizeof *o->device);
    if (!o->device)
        return sd_no_memory(nr * np * sizeof *o->device);
    c = sd_cursor_of(b);
    while (next(&c, &i)) {
        if (i.field != ASSIGN_DEVICES)
            continue;
        if (row >= o->npartition)
            return sd_error(SD_INVALID,
                            "device assignment: more rows than %d "
                            "partitions",
                            o->npartition);
        if ((st = read_ids(i.bytes, o, row++)))
            return st;
    }
    if (row != o->npartition)
        return sd_error(SD_INVALID,
                        "device assignment: %d rows for %d "
                        "partitions",
                        row, o->npartition);
    return NULL;
}

static sd_status read_build(sd_bytes b, pjrt_compile_options *o)
{
    sd_cursor c = sd_cursor_of(b);
    sd_bytes assignment = {0};
    sd_status st;
    item i;

    while (next(&c, &i)) {
        if (i.field == BUILD_REPLICAS)
            o->nreplica = (int)SD_MIN(i.value, (uint64_t)MAX_DEVICES);
        else if (i.field == BUILD_PARTITIONS)
            o->npartition = (int)SD_MIN(i.value, (uint64_t)MAX_DEVICES);
        else if (i.field == BUILD_ASSIGNMENT)
            assignment = i.bytes;
    }
    if ((st = sd_cursor_status(&c, "executable build options")))
        return st;
    return assignment.len ? read_assignment(assignment, o) : NULL;
}

sd_status pjrt_options_read(sd_bytes b, pjrt_compile_options *out)
{
    sd_cursor c = sd_cursor_of(b);
    pjrt_compile_options o = {0};
    sd_status st = NULL;
    item i;

    while (!st && next(&c, &i)) {
        if (i.field == OPT_BUILD)
            st = read_build(i.bytes, &o);
        else if (i.field == OPT_PORTABLE)
            o.portable = i.value != 0;
    }
    if (!st)
        st = sd_cursor_status(&c, "compile options");
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
    sd_buf_u8(b, ASSIGN_REPLICAS << 3 | WIRE_VARINT);
    sd_buf_leb(b, (uint64_t)nreplica);
    sd_buf_u8(b, ASSIGN_PARTITIONS << 3 | WIRE_VARINT);
    sd_buf_leb(b, (uint64_t)npartition);
    for (int p = 0; p < npartition; p++) {
        sd_buf ids = {0}, row = {0};

        for (int r = 0; r < nreplica; r++)
            sd_buf_leb(&ids, (uint64_t)device[p * nreplica + r]);
        sd_buf_u8(&row, DEVICES_IDS << 3 | WIRE_BYTES);
        sd_buf_leb(&row, ids.len);
        sd_buf_add(&row, ids.at, ids.len);
        sd_buf_u8(b, ASSIGN_DEVICES << 3 | WIRE_BYTES);
        sd_buf_leb(b, row.len);
        sd_buf_add(b, row.at, row.len);
        b->oom |= ids.oom || row.oom;
        sd_buf_finish(&ids);
        sd_buf_finish(&row);
    }
}
