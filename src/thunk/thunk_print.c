/* The program for people: thunk_sequence.txt.  A table of what is in memory,
 * then one line a step; what a step runs inside stands indented below it. */
#include "thunk_priv.h"

static void print_type(sd_buf *b, const char *what, int i, const thunk_type *t)
{
    sd_shape s = {.dtype = t->dtype, .rank = t->rank, .dim = t->dim};

    sd_buf_fmt(b, "%s %d: ", what, i);
    sd_shape_print(b, &s, false);
    sd_buf_fmt(b, ", %" PRIu64 " bytes", t->bytes);
    if (t->memory)
        sd_buf_fmt(b, ", memory %s", t->memory);
}

static void print_buffer(sd_buf *b, int i, const thunk_buffer *u)
{
    sd_buf_fmt(b, "buffer %d: ", i);
    switch (u->kind) {
    case THUNK_B_PARAM:
        sd_buf_fmt(b, "param %d", u->index);
        break;
    case THUNK_B_OUTPUT:
        sd_buf_fmt(b, "output %d", u->index);
        if (u->alias >= 0)
            sd_buf_fmt(b, " in param %d%s", u->alias,
                       u->alias_must ? " (must)" : "");
        break;
    case THUNK_B_TEMP:
        sd_buf_str(b, "temp");
        break;
    case THUNK_B_CONST:
        sd_buf_fmt(b, "constants at %" PRIu64, u->at);
        break;
    case THUNK_B_IDS:
        sd_buf_str(b, "ids");
        break;
    default:
        sd_buf_fmt(b, "kind %d", (int)u->kind);
    }
    sd_buf_fmt(b, ", %" PRIu64 " bytes\n", u->bytes);
}

static void print_slice(sd_buf *b, const thunk_program *p, thunk_slice s)
{
    sd_buf_fmt(b, "b%d", s.buffer);
    if (s.buffer < 0 || s.buffer >= p->nbuffer || s.offset ||
        s.bytes != p->buffer[s.buffer].bytes)
        sd_buf_fmt(b, "[%" PRIu64 " +%" PRIu64 "]", s.offset, s.bytes);
}

static void print_detail(sd_buf *b, const thunk_program *p, const thunk *t)
{
    switch (t->kind) {
    case THUNK_KERNEL:
        if (t->kernel >= 0 && t->kernel < p->nkernel) {
            const thunk_kernel *k = &p->kernel[t->kernel];

            sd_buf_fmt(b, " %s tiles=%" PRId64 " group=%d", k->symbol, k->tiles,
                       k->group);
            if (k->loop)
                sd_buf_str(b, " loop");
            if (k->local_bytes)
                sd_buf_fmt(b, " local=%" PRIu64, k->local_bytes);
        }
        break;
    case THUNK_LIBCALL:
        if (t->call) {
            sd_buf_fmt(b, " %s", libcall_table[t->call->op].name);
            libcall_print(b, t->call);
        }
        break;
    case THUNK_WHILE:
        if (t->trip >= 0)
            sd_buf_fmt(b, " trip=%" PRId64, t->trip);
        break;
    case THUNK_JOIN:
        if (t->trip == 1)
            sd_buf_str(b, " all but the last");
        break;
    case THUNK_COLLECTIVE:
        thunk_print_collective(b, p, t);
        return;
    default:
        if (t->target)
            sd_buf_fmt(b, " %s", t->target);
    }
    if (t->nattr) {
        sd_buf_str(b, " attr={");
        sd_buf_ints(b, t->attr, t->nattr, ",");
        sd_buf_str(b, "}");
    }
}

static const char *seq_name(const thunk *t, int i)
{
    if (t->kind == THUNK_WHILE)
        return i ? "body" : "condition";
    return t->kind == THUNK_COND ? "branch" : "body";
}

static void print_seq(sd_buf *b, const thunk_program *p, const thunk_seq *s,
                      int depth)
{
    for (int i = 0; i < s->n; i++) {
        const thunk *t = &s->at[i];

        sd_buf_fmt(b, "%*s%03d: %s %s", 4 * depth, "", i,
                   thunk_kind_name[t->kind], t->name ? t->name : "?");
        print_detail(b, p, t);
        sd_buf_str(b, " (");
        for (int k = 0; k < t->narg; k++) {
            sd_buf_str(b, k ? ", " : "");
            print_slice(b, p, t->arg[k]);
        }
        sd_buf_str(b, ")");
        if (t->op_name)
            sd_buf_fmt(b, " op_name=\"%s\"", t->op_name);
        sd_buf_str(b, "\n");
        for (int k = 0; k < t->nseq; k++) {
            sd_buf_fmt(b, "%*s%s", 4 * depth + 2, "", seq_name(t, k));
            if (t->kind == THUNK_COND)
                sd_buf_fmt(b, " %d", k);
            sd_buf_str(b, ":\n");
            print_seq(b, p, &t->seq[k], depth + 1);
        }
    }
}

void thunk_print(sd_buf *b, const thunk_program *p)
{
    sd_buf_fmt(b, "program %s for %s\n", p->name, p->device.name);
    for (int i = 0; i < p->nparam; i++) {
        print_type(b, "param", i, &p->param[i]);
        if (p->donatable && p->donatable[i])
            sd_buf_str(b, ", donatable");
        sd_buf_str(b, "\n");
    }
    for (int i = 0; i < p->noutput; i++) {
        print_type(b, "output", i, &p->output[i]);
        sd_buf_str(b, "\n");
    }
    for (int i = 0; i < p->nbuffer; i++)
        print_buffer(b, i, &p->buffer[i]);
    sd_buf_fmt(b,
               "temp %" PRIu64 " bytes, constants %zu bytes, %d kernels, "
               "%d binaries\n",
               p->temp_bytes, p->constant_bytes, p->nkernel, p->nbinary);
    print_seq(b, p, &p->seq, 0);
}
