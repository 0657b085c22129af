/* What participants do together.  Each kind is a way of reading: a participant
 * fills its result with blocks of the operands of the members of its group, and
 * with zeros where it has no member to read from.  What is computed of these
 * blocks, as the sum of an all-reduce, kernels compute. */
#include "thunk_priv.h"

#include <stdlib.h>

enum { KIND, OUTER, BLOCK, NGROUP, SIZE, FIRST_MEMBER };

const char *const thunk_collective_name[THUNK_COLL_COUNT] = {
    [THUNK_COLL_GATHER] = "all-gather",
    [THUNK_COLL_ALL_TO_ALL] = "all-to-all",
    [THUNK_COLL_PERMUTE] = "permute",
    [THUNK_COLL_BROADCAST] = "broadcast",
};

void thunk_set_collective(thunk_program *p, thunk *t, const thunk_collective *c)
{
    size_t n = (size_t)c->ngroup * (size_t)c->size;
    int64_t *at = sd_arena_array(p->arena, int64_t, FIRST_MEMBER + n);

    at[KIND] = c->kind;
    at[OUTER] = c->outer;
    at[BLOCK] = c->block;
    at[NGROUP] = c->ngroup;
    at[SIZE] = c->size;
    if (n)
        memcpy(at + FIRST_MEMBER, c->member, n * sizeof *at);
    t->attr = at;
    t->nattr = (int)(FIRST_MEMBER + n);
    t->kernel = -1;
}

thunk_collective thunk_collective_of(const thunk *t)
{
    return (thunk_collective){.kind = (thunk_collective_kind)t->attr[KIND],
                              .outer = t->attr[OUTER],
                              .block = t->attr[BLOCK],
                              .ngroup = t->attr[NGROUP],
                              .size = t->attr[SIZE],
                              .member = t->attr + FIRST_MEMBER};
}

int64_t thunk_collective_find(const thunk_collective *c, int64_t participant)
{
    for (int64_t i = 0; i < c->ngroup * c->size; i++)
        if (c->member[i] == participant)
            return i;
    return -1;
}

int thunk_participants(const thunk_program *p)
{
    return p->nreplica * p->npartition;
}

/* ---- verify ---- */

static sd_status check_numbers(const thunk *t)
{
    const int64_t *at = t->attr;
    int64_t n;

    if (t->nattr < FIRST_MEMBER || at[KIND] < 0 || at[KIND] >= THUNK_COLL_COUNT)
        return sd_error(SD_INVALID, "a collective of no kind");
    if (at[NGROUP] < 0 || at[SIZE] < 1 ||
        !sd_mul_i64(at[NGROUP], at[SIZE], &n) || n != t->nattr - FIRST_MEMBER)
        return sd_error(SD_INVALID,
                        "%" PRId64 " groups of %" PRId64 " in %d numbers",
                        at[NGROUP], at[SIZE], t->nattr - FIRST_MEMBER);
    if (at[KIND] == THUNK_COLL_PERMUTE && at[SIZE] != 2)
        return sd_error(SD_INVALID, "pairs of %" PRId64 " participants",
                        at[SIZE]);
    return NULL;
}

/* A participant may be both the source of a pair and the target of another;
 * else it is in one place. */
static sd_status check_members(const thunk_collective *c, int participants)
{
    bool pairs = c->kind == THUNK_COLL_PERMUTE;
    uint8_t *seen = calloc((size_t)participants, 1);
    sd_status st = seen ? NULL : sd_no_memory((size_t)participants);

    for (int64_t i = 0; i < c->ngroup * c->size && !st; i++) {
        int64_t v = c->member[i];
        uint8_t as = pairs && i % 2 ? 2 : 1;

        if (v == -1 && !pairs)
            continue;
        if (v < 0 || v >= participants)
            st = sd_error(SD_INVALID, "participant %" PRId64 " of %d", v,
                          participants);
        else if (seen[v] & as)
            st =
                sd_error(SD_INVALID, "participant %" PRId64 " stands twice", v);
        else
            seen[v] |= as;
    }
    free(seen);
    return st;
}

/* The operand's bytes, then the result's. */
static bool sizes_of(const thunk_collective *c, int64_t bytes[2])
{
    int64_t one, all;

    if (c->outer < 0 || c->block < 0 || !sd_mul_i64(c->outer, c->block, &one) ||
        !sd_mul_i64(one, c->size, &all))
        return false;
    bytes[0] = c->kind == THUNK_COLL_ALL_TO_ALL ? all : one;
    bytes[1] = c->kind == THUNK_COLL_GATHER ? all : bytes[0];
    return true;
}

/* A slot for each member's block, which all participants have, then those that
 * are the step's own. */
static sd_status check_kernel(const thunk_program *p, const thunk *t,
                              const thunk_collective *c)
{
    int64_t all = c->ngroup * c->size;

    if (t->kernel >= p->nkernel || t->narg < 2)
        return sd_error(SD_INVALID, "kernel %d of %d, %d slices", t->kernel,
                        p->nkernel, t->narg);
    if (t->narg - 1 + c->size != p->kernel[t->kernel].nslot)
        return sd_error(SD_INVALID,
                        "%d slices and %" PRId64 " members for %d slots",
                        t->narg - 1, c->size, p->kernel[t->kernel].nslot);
    for (int64_t i = 0; i < c->ngroup * c->size; i++)
        all -= c->member[i] < 0;
    if (all != thunk_participants(p) || c->outer != 1 ||
        (c->kind != THUNK_COLL_GATHER && c->kind != THUNK_COLL_ALL_TO_ALL))
        return sd_error(SD_INVALID,
                        "what a kernel is to read in %s of %" PRId64
                        " x %" PRId64 " bytes is of %" PRId64
                        " participants of %d",
                        thunk_collective_name[c->kind], c->outer, c->block, all,
                        thunk_participants(p));
    return NULL;
}

sd_status thunk_check_collective(const thunk_program *p, const thunk *t)
{
    thunk_collective c;
    int64_t bytes[2];
    int nslice = t->kernel < 0 ? 2 : 1;
    sd_status st = check_numbers(t);

    if (st)
        return st;
    c = thunk_collective_of(t);
    if ((st = check_members(&c, thunk_participants(p))) ||
        (t->kernel >= 0 && (st = check_kernel(p, t, &c))))
        return st;
    if (t->kernel < 0 && t->narg != 2)
        return sd_error(SD_INVALID, "%d slices, not 2", t->narg);
    for (int i = 0; i < nslice; i++)
        if (!sizes_of(&c, bytes) || t->arg[i].bytes != (uint64_t)bytes[i])
            return sd_error(SD_INVALID,
                            "slice %d of %" PRIu64 " bytes is not that of an "
                            "%s of %" PRId64 " x %" PRId64 " bytes among "
                            "%" PRId64,
                            i, t->arg[i].bytes, thunk_collective_name[c.kind],
                            c.outer, c.block, c.size);
    /* others read the operand while the result is written */
    if (t->kernel < 0 && thunk_slices_overlap(t->arg[0], t->arg[1]))
        return sd_error(SD_INVALID, "its operand and its result overlap");
    return NULL;
}

/* ---- print ---- */

void thunk_print_collective(sd_buf *b, const thunk_program *p, const thunk *t)
{
    thunk_collective c;
    sd_status st = check_numbers(t);

    if (st) { /* of a program that is no good */
        sd_status_free(st);
        return;
    }
    c = thunk_collective_of(t);
    if (t->kernel >= 0 && t->kernel < p->nkernel)
        sd_buf_fmt(b, " %s of", p->kernel[t->kernel].symbol);
    sd_buf_fmt(b, " %s outer=%" PRId64 " block=%" PRId64 " groups={",
               thunk_collective_name[c.kind], c.outer, c.block);
    for (int64_t g = 0; g < c.ngroup; g++) {
        sd_buf_str(b, g ? ",{" : "{");
        for (int64_t i = 0; i < c.size; i++)
            if (c.member[g * c.size + i] >= 0)
                sd_buf_fmt(b, i ? ",%" PRId64 : "%" PRId64,
                           c.member[g * c.size + i]);
        sd_buf_str(b, "}");
    }
    sd_buf_str(b, "}");
}
