/* What must hold before a program may run.  A loaded program comes from a
 * file, so nothing in it is believed. */
#include "thunk_priv.h"

#define MAX_DEPTH 64

static sd_status check_type(const char *what, int i, const thunk_type *t)
{
    sd_shape s = {.dtype = t->dtype, .rank = t->rank, .dim = t->dim};
    sd_status st;

    if ((unsigned)t->dtype >= SD_DTYPE_COUNT || t->dtype == SD_TUPLE)
        return sd_error(SD_INVALID, "%s %d has element type %d", what, i,
                        (int)t->dtype);
    if ((st = sd_shape_check(t->dtype, t->rank, t->dim)))
        return sd_note(st, "%s %d", what, i);
    if (t->bytes != sd_shape_bytes(&s))
        return sd_error(SD_INVALID,
                        "%s %d says %" PRIu64 " bytes, its shape "
                        "%zu",
                        what, i, t->bytes, sd_shape_bytes(&s));
    return NULL;
}

static sd_status check_types(const thunk_program *p)
{
    sd_status st;

    for (int i = 0; i < p->nparam; i++)
        if ((st = check_type("parameter", i, &p->param[i])))
            return st;
    for (int i = 0; i < p->noutput; i++)
        if ((st = check_type("output", i, &p->output[i])))
            return st;
    return NULL;
}

/* Is [at, at + bytes) inside [0, whole)? */
static bool inside(uint64_t at, uint64_t bytes, uint64_t whole)
{
    return at <= whole && bytes <= whole - at;
}

static sd_status check_buffer(const thunk_program *p, int i)
{
    const thunk_buffer *b = &p->buffer[i];
    const thunk_type *t = NULL;

    switch (b->kind) {
    case THUNK_B_PARAM:
        if (b->index >= 0 && b->index < p->nparam)
            t = &p->param[b->index];
        break;
    case THUNK_B_OUTPUT:
        if (b->index >= 0 && b->index < p->noutput)
            t = &p->output[b->index];
        if (b->alias < -1 || b->alias >= p->nparam)
            return sd_error(SD_INVALID, "buffer %d is in parameter %d of %d", i,
                            b->alias, p->nparam);
        if (t && b->alias >= 0 && p->param[b->alias].bytes != t->bytes)
            return sd_error(SD_INVALID,
                            "output %d of %" PRIu64 " bytes is in "
                            "parameter %d of %" PRIu64,
                            b->index, t->bytes, b->alias,
                            p->param[b->alias].bytes);
        break;
    case THUNK_B_TEMP:
        if (!inside(b->at, b->bytes, p->temp_bytes))
            return sd_error(SD_INVALID,
                            "buffer %d of %" PRIu64 " bytes is "
                            "not inside the %" PRIu64 " of the temp slab",
                            i, b->bytes, p->temp_bytes);
        return NULL;
    case THUNK_B_CONST:
        if (!inside(b->at, b->bytes, p->constant_bytes))
            return sd_error(SD_INVALID,
                            "buffer %d of %" PRIu64 " bytes is "
                            "not inside the %zu of constants",
                            i, b->bytes, p->constant_bytes);
        return NULL;
    case THUNK_B_IDS:
        if (b->bytes == THUNK_IDS_BYTES)
            return NULL;
        return sd_error(SD_INVALID,
                        "buffer %d of a participant's numbers has %" PRIu64
                        " bytes",
                        i, b->bytes);
    default:
        return sd_error(SD_INVALID, "buffer %d has kind %d", i, (int)b->kind);
    }
    if (!t)
        return sd_error(SD_INVALID, "buffer %d has index %d", i, b->index);
    if (b->bytes != t->bytes)
        return sd_error(SD_INVALID,
                        "buffer %d has %" PRIu64 " bytes, its "
                        "type %" PRIu64,
                        i, b->bytes, t->bytes);
    return NULL;
}

/* Each parameter and output at most one buffer, each output exactly one, and
 * no two outputs in one parameter.  Counting is quadratic only in theory: the
 * table lists parameters and outputs first. */
static sd_status check_buffers(const thunk_program *p)
{
    size_t n = (size_t)p->nparam * 2 + (size_t)p->noutput;
    sd_arena *a = sd_arena_create_try();
    uint8_t *seen = a ? sd_arena_try(a, n) : NULL;
    uint8_t *alias = seen ? seen + p->nparam : NULL;
    uint8_t *out = seen ? alias + p->nparam : NULL;
    sd_status st = seen ? NULL : sd_no_memory(n);

    for (int i = 0; i < p->nbuffer && !st; i++) {
        const thunk_buffer *b = &p->buffer[i];
        uint8_t *mark = NULL;

        if ((st = check_buffer(p, i)))
            break;
        if (b->kind == THUNK_B_PARAM)
            mark = &seen[b->index];
        else if (b->kind == THUNK_B_OUTPUT)
            mark = &out[b->index];
        if (mark && (*mark)++)
            st = sd_error(SD_INVALID,
                          "buffer %d is a second one of its "
                          "parameter or output %d",
                          i, b->index);
        else if (b->kind == THUNK_B_OUTPUT && b->alias >= 0 &&
                 alias[b->alias]++)
            st = sd_error(SD_INVALID, "two outputs are in parameter %d",
                          b->alias);
    }
    for (int i = 0; i < p->noutput && !st; i++)
        if (!out[i])
            st = sd_error(SD_INVALID, "output %d has no buffer", i);
    sd_arena_destroy(a);
    return st;
}

/* What a kernel may ask for as scratch: rows to sort are many times as large
 * as the arrays they are of; anything else is small. */
static uint64_t most_scratch(const thunk_program *p)
{
    uint64_t all = 1 << 26;

    for (int i = 0; i < p->nbuffer; i++)
        all += 32 * SD_MIN((uint64_t)p->buffer[i].bytes, UINT64_C(1) << 40);
    return all;
}

/* One thread's, whose scratch holds an address, or one group's. */
static bool may_be_loop(const thunk_program *p, const thunk_kernel *k)
{
    return k->tiles == 1 &&
           (p->device.kind == DEVICE_HOST ? k->local_bytes >= sizeof(void *)
                                          : p->device.kind == DEVICE_CUDA);
}

static sd_status check_kernels(const thunk_program *p)
{
    uint64_t most = most_scratch(p);

    for (int i = 0; i < p->nbinary; i++)
        if ((unsigned)p->binary[i].kind > THUNK_BIN_SPIRV_LARGE)
            return sd_error(SD_INVALID, "binary %d has kind %d", i,
                            (int)p->binary[i].kind);
    for (int i = 0; i < p->nkernel; i++) {
        const thunk_kernel *k = &p->kernel[i];

        if (!k->symbol || !*k->symbol)
            return sd_error(SD_INVALID, "kernel %d has no name", i);
        if (k->binary < 0 || k->binary >= p->nbinary)
            return sd_error(SD_INVALID, "kernel %s is in binary %d of %d",
                            k->symbol, k->binary, p->nbinary);
        if (k->nslot < 0 || k->tiles < 0 || k->group < 1)
            return sd_error(SD_INVALID,
                            "kernel %s has %d slots, %" PRId64
                            " tiles, groups of %d",
                            k->symbol, k->nslot, k->tiles, k->group);
        if (k->loop && !may_be_loop(p, k))
            return sd_error(SD_INVALID,
                            "kernel %s is a loop of %" PRId64
                            " tiles with %" PRIu64 " bytes of scratch on %s",
                            k->symbol, k->tiles, k->local_bytes,
                            p->device.name);
        if (k->local_bytes > most)
            return sd_error(SD_INVALID,
                            "kernel %s asks for %" PRIu64
                            " bytes of scratch, more than %" PRIu64,
                            k->symbol, (uint64_t)k->local_bytes, most);
    }
    return NULL;
}

/* The number of slices and sequences a kind wants; -1: any. */
static const struct {
    int8_t narg, nseq;
} wanted[THUNK_KIND_COUNT] = {
    [THUNK_KERNEL] = {-1, 0},     [THUNK_LIBCALL] = {-1, 0},
    [THUNK_COPY] = {2, 0},        [THUNK_WHILE] = {1, 2},
    [THUNK_COND] = {1, -1},       [THUNK_CUSTOM] = {-1, 0},
    [THUNK_SEND] = {1, 0},        [THUNK_RECV] = {1, 0},
    [THUNK_COLLECTIVE] = {-1, 0}, [THUNK_BESIDE] = {0, 1},
    [THUNK_JOIN] = {0, 0},
};

/* The types of a custom-call are those of its slices. */
static sd_status check_custom(const thunk *t)
{
    const int64_t *at = t->attr, *end = at + t->nattr;

    if (!t->target)
        return sd_error(SD_INVALID, "a custom-call of no target");
    if (at == end || *at < 0 || *at > t->narg)
        return sd_error(SD_INVALID,
                        "its numbers do not say how many of %d slices are "
                        "operands",
                        t->narg);
    at++;
    for (int i = 0; i < t->narg; i++) {
        sd_shape s = {0};
        sd_status st;

        if (end - at < 2 || at[1] < 0 || at[1] > SD_MAX_RANK ||
            at[1] > end - at - 2 ||
            !sd_dtype_of_xla((int)SD_MIN(at[0], INT64_C(255)), &s.dtype))
            return sd_error(SD_INVALID, "no type of slice %d", i);
        s.rank = (int)at[1];
        s.dim = at + 2;
        if ((st = sd_shape_check(s.dtype, s.rank, s.dim)))
            return st;
        if (sd_shape_bytes(&s) != t->arg[i].bytes)
            return sd_error(SD_INVALID,
                            "slice %d of %" PRIu64 " bytes is of type %s, %zu "
                            "bytes",
                            i, t->arg[i].bytes, sd_dtype_name(s.dtype),
                            sd_shape_bytes(&s));
        at += 2 + s.rank;
    }
    if (at != end)
        return sd_error(SD_INVALID, "types of more than %d slices", t->narg);
    return NULL;
}

/* The library believes what the call says of its memory. */
static sd_status check_libcall(const thunk *t)
{
    libcall_args a;
    libcall same;
    int64_t word[LIBCALL_WORDS];
    sd_status st;

    if (!t->call)
        return sd_error(SD_INVALID, "a library call of nothing");
    if ((st = libcall_of_words(t->call->op, word, libcall_words(t->call, word),
                               &same)))
        return st;
    a = libcall_args_of(t->call);
    if (a.overflow || t->narg != a.n)
        return sd_error(SD_INVALID, "%s: %d slices, not %d%s",
                        libcall_table[t->call->op].name, t->narg, a.n,
                        a.overflow ? ", of more elements than there are" : "");
    for (int i = 0; i < a.n; i++)
        if (t->arg[i].bytes / sd_dtype_bytes(a.at[i].type) <
            (uint64_t)a.at[i].n)
            return sd_error(SD_INVALID,
                            "%s: slice %d of %" PRIu64 " bytes is too small "
                            "for %" PRId64 " elements of %s",
                            libcall_table[t->call->op].name, i, t->arg[i].bytes,
                            a.at[i].n, sd_dtype_name(a.at[i].type));
    return NULL;
}

static sd_status check_slices(const thunk_program *p, const thunk *t)
{
    for (int i = 0; i < t->narg; i++) {
        thunk_slice s = t->arg[i];

        if (s.buffer < 0 || s.buffer >= p->nbuffer)
            return sd_error(SD_INVALID, "slice %d is of buffer %d of %d", i,
                            s.buffer, p->nbuffer);
        if (!inside(s.offset, s.bytes, p->buffer[s.buffer].bytes))
            return sd_error(SD_INVALID,
                            "slice %d, %" PRIu64 " bytes at %" PRIu64
                            ", is not inside buffer %d of %" PRIu64,
                            i, s.bytes, s.offset, s.buffer,
                            p->buffer[s.buffer].bytes);
    }
    return NULL;
}

static sd_status check_beside(const thunk_seq *seq)
{
    for (int i = 0; i < seq->n; i++)
        if (seq->at[i].kind != THUNK_COLLECTIVE &&
            seq->at[i].kind != THUNK_KERNEL)
            return sd_error(SD_INVALID,
                            "its step %d is no collective and no kernel", i);
    return NULL;
}

static sd_status check_step(const thunk_program *p, const thunk *t)
{
    sd_status st = check_slices(p, t);

    if (st)
        return st;
    if (wanted[t->kind].narg >= 0 && t->narg != wanted[t->kind].narg)
        return sd_error(SD_INVALID, "%d slices, not %d", t->narg,
                        wanted[t->kind].narg);
    if (wanted[t->kind].nseq >= 0 && t->nseq != wanted[t->kind].nseq)
        return sd_error(SD_INVALID, "%d sequences, not %d", t->nseq,
                        wanted[t->kind].nseq);
    switch (t->kind) {
    case THUNK_KERNEL:
        if (t->kernel < 0 || t->kernel >= p->nkernel)
            return sd_error(SD_INVALID, "kernel %d of %d", t->kernel,
                            p->nkernel);
        if (t->narg != p->kernel[t->kernel].nslot)
            return sd_error(SD_INVALID, "%d slices for %d slots", t->narg,
                            p->kernel[t->kernel].nslot);
        break;
    case THUNK_LIBCALL:
        return check_libcall(t);
    case THUNK_COPY:
        if (t->arg[0].bytes != t->arg[1].bytes)
            return sd_error(SD_INVALID, "copy of %" PRIu64 " bytes to %" PRIu64,
                            t->arg[0].bytes, t->arg[1].bytes);
        break;
    case THUNK_WHILE:
        if (t->arg[0].bytes != 1)
            return sd_error(SD_INVALID,
                            "a predicate of %" PRIu64 " bytes, not 1",
                            t->arg[0].bytes);
        break;
    case THUNK_COND:
        if (t->nseq < 1 || (t->arg[0].bytes != 4 && t->arg[0].bytes != 1))
            return sd_error(SD_INVALID,
                            "%d branches, chosen by %" PRIu64
                            " bytes: a pred (1) or an s32 (4) should",
                            t->nseq, t->arg[0].bytes);
        break;
    case THUNK_SEND:
    case THUNK_RECV:
        if (t->nattr != 1)
            return sd_error(SD_INVALID,
                            "%d numbers where one channel should stand",
                            t->nattr);
        break;
    case THUNK_CUSTOM:
        return check_custom(t);
    case THUNK_COLLECTIVE:
        return thunk_check_collective(p, t);
    case THUNK_BESIDE:
        return check_beside(&t->seq[0]);
    default:
        break;
    }
    return NULL;
}

static sd_status check_seq(const thunk_program *p, const thunk_seq *s,
                           int depth)
{
    const thunk *open = NULL;
    sd_status st;

    if (depth > MAX_DEPTH)
        return sd_error(SD_INVALID, "sequences nest deeper than %d", MAX_DEPTH);
    for (int i = 0; i < s->n; i++) {
        const thunk *t = &s->at[i];

        if ((unsigned)t->kind >= THUNK_KIND_COUNT)
            return sd_error(SD_INVALID, "step %d has kind %d", i, (int)t->kind);
        if ((st = check_step(p, t)))
            return sd_note(st, "step %d, %s %s", i, thunk_kind_name[t->kind],
                           t->name ? t->name : "?");
        for (int k = 0; k < t->nseq; k++)
            if ((st = check_seq(p, &t->seq[k], depth + 1)))
                return st;
        if (t->kind == THUNK_BESIDE)
            open = t;
        if (t->kind == THUNK_JOIN && t->trip != 1)
            open = NULL;
    }
    if (open)
        return sd_error(SD_INVALID, "nothing waits for what is beside in %s",
                        open->name ? open->name : "?");
    return NULL;
}

sd_status thunk_verify(const thunk_program *p)
{
    sd_status st;

    if ((unsigned)p->device.kind >= DEVICE_KIND_COUNT)
        st = sd_error(SD_INVALID, "device kind %d", (int)p->device.kind);
    else if (p->nreplica < 1 || p->npartition < 1 ||
             p->nreplica > THUNK_PARTICIPANTS / p->npartition)
        st = sd_error(SD_INVALID, "%d replicas, %d partitions", p->nreplica,
                      p->npartition);
    else if (!(st = check_types(p)) && !(st = check_buffers(p)) &&
             !(st = check_kernels(p)))
        st = check_seq(p, &p->seq, 0);
    return sd_note(st, "program %s", p->name);
}
