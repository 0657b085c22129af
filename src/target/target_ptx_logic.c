/* Truth values that are both ANDed and ORed, which NVIDIA's assembler gets
 * wrong.
 *
 * Where p & q and p | q are both asked for, ptxas takes one instruction with
 * two results, PLOP3.  Where it finds later that it needs only one of them, it
 * sometimes keeps the other: gammasgn(NaN) was 1 on an H200, and of the first
 * 2,996 random programs of tests/ptx/logic.py 21 are wrong by the ptxas of CUDA
 * 12.9, 13.0 and 13.5.  p or q may be negated on the way to either.  So an OR
 * of what is also ANDed is written as (p ^ q) ^ (p & q) here, of which none of
 * 11,977 is wrong (logic.py --parted).
 *
 * This reads the finished text, since code generation makes ANDs and ORs of its
 * own: of p ? q : r, of !(p & q), of p | (q & !p). */
#include <stdio.h>
#include <stdlib.h>

#include "target_ptx.h"

typedef enum { OTHER, AND, OR, NOT, COPY } operation;

typedef struct {
    operation op;
    unsigned to, a, b; /* registers: `and.pred %p7, %p5, %p6` has 7, 5, 6 */
} line_of;

typedef struct {
    unsigned low, high; /* registers that are ANDed, without their NOTs */
} pair;

typedef struct {
    const char *at; /* a line that is written otherwise */
    size_t len;
    line_of in; /* the OR that is parted; OTHER: a function's declaration */
    unsigned nreg; /* of the function */
} change;

typedef struct {
    sd_arena *a;
    unsigned nreg; /* of truth values, in the function that is read */
    unsigned *source; /* of each: what it copies or negates, or itself */
    sd_vec(pair) and;
    sd_vec(change) change; /* in the order of the text */
} logic;

/* Lines of truth values are short; what is longer is another one. */
enum { LONGEST = 80 };

static size_t length_of(const char *at, const char *end)
{
    const char *nl = memchr(at, '\n', (size_t)(end - at));

    return nl ? (size_t)(nl + 1 - at) : (size_t)(end - at);
}

/* Copies a line that may be one of truth values, and ends it with a NUL. */
static bool copy_line(const char *at, size_t len, char text[LONGEST])
{
    static const char truth[] = ".pred";

    if (len >= LONGEST || !memmem(at, len, truth, sizeof truth - 1))
        return false;
    memcpy(text, at, len);
    text[len] = 0;
    return true;
}

static bool read_line(const char *at, size_t len, line_of *l)
{
    static const struct {
        const char *name;
        int nreg;
    } known[] = {[AND] = {"and", 3},
                 [OR] = {"or", 3},
                 [NOT] = {"not", 2},
                 [COPY] = {"mov", 2}};
    char text[LONGEST], op[8];
    int n; /* of what was read: op and registers */

    *l = (line_of){0};
    if (!copy_line(at, len, text))
        return false;
    n = sscanf(text, " %7[a-z].pred %%p%u, %%p%u, %%p%u;", op, &l->to, &l->a,
               &l->b);
    for (operation i = AND; n >= 2 && i <= COPY; i++)
        if (!strcmp(op, known[i].name) && n == 1 + known[i].nreg)
            l->op = i;
    return n >= 2;
}

/* The registers of a function are declared at its head. */
static bool read_count(const char *at, size_t len, unsigned *n)
{
    char text[LONGEST];

    return copy_line(at, len, text) &&
           sscanf(text, " .reg .pred %%p<%u>;", n) == 1;
}

static unsigned base_of(const logic *l, unsigned r)
{
    for (unsigned i = 0; i < l->nreg && l->source[r] != r; i++)
        r = l->source[r];
    return r;
}

static pair pair_of(const logic *l, const line_of *in)
{
    unsigned p = base_of(l, in->a), q = base_of(l, in->b);

    return p < q ? (pair){p, q} : (pair){q, p};
}

static int by_register(const void *x, const void *y)
{
    const pair *a = x, *b = y;

    if (a->low != b->low)
        return a->low < b->low ? -1 : 1;
    return (a->high > b->high) - (a->high < b->high);
}

static bool is_known(const logic *l, const line_of *in)
{
    return in->to < l->nreg && in->a < l->nreg && in->b < l->nreg;
}

static bool is_anded(const logic *l, const line_of *in)
{
    pair of = pair_of(l, in);

    return l->and.n &&
           bsearch(&of, l->and.at, (size_t)l->and.n, sizeof of, by_register);
}

/* A value that is written once, as a NOT or a copy, has a source.  One that two
 * blocks copy to is what either wrote, and has none. */
static void find_sources(logic *l, const char *at, const char *end)
{
    bool *written = sd_arena_array(l->a, bool, l->nreg);
    line_of in;

    l->source = sd_arena_array(l->a, unsigned, l->nreg);
    for (unsigned r = 0; r < l->nreg; r++)
        l->source[r] = r;
    for (size_t len; at < end; at += len) {
        len = length_of(at, end);
        if (!read_line(at, len, &in) || !is_known(l, &in))
            continue;
        if (in.op == NOT || in.op == COPY)
            l->source[in.to] = written[in.to] ? in.to : in.a;
        written[in.to] = true;
    }
}

static void find_ands(logic *l, const char *at, const char *end)
{
    line_of in;

    l->and.n = 0;
    for (size_t len; at < end; at += len) {
        len = length_of(at, end);
        if (read_line(at, len, &in) && in.op == AND && is_known(l, &in))
            *sd_push(l->a, &l->and) = pair_of(l, &in);
    }
    if (l->and.n)
        qsort(l->and.at, (size_t)l->and.n, sizeof *l->and.at, by_register);
}

/* The lines behind the declaration of a function's truth values. */
static void find_ors(logic *l, const char *at, const char *end)
{
    line_of in;

    find_sources(l, at, end);
    find_ands(l, at, end);
    for (size_t len; at < end; at += len) {
        len = length_of(at, end);
        if (read_line(at, len, &in) && in.op == OR && is_known(l, &in) &&
            is_anded(l, &in))
            *sd_push(l->a, &l->change) = (change){at, len, in, l->nreg};
    }
}

/* Two registers behind the function's own hold the parts of an OR. */
static void write_change(sd_buf *out, const change *c)
{
    const line_of *in = &c->in;
    unsigned one = c->nreg, both = c->nreg + 1;

    if (in->op == OTHER)
        sd_buf_fmt(out, "\t.reg .pred \t%%p<%u>;\n", both + 1);
    else
        sd_buf_fmt(out,
                   "\txor.pred \t%%p%u, %%p%u, %%p%u;\n"
                   "\tand.pred \t%%p%u, %%p%u, %%p%u;\n"
                   "\txor.pred \t%%p%u, %%p%u, %%p%u;\n",
                   one, in->a, in->b, both, in->a, in->b, in->to, one, both);
}

static const char *next_function(const char *at, const char *end, unsigned *n)
{
    for (size_t len; at < end; at += len) {
        len = length_of(at, end);
        if (read_count(at, len, n))
            break;
    }
    return at;
}

static void find_changes(logic *l, const char *at, const char *end)
{
    const char *next = next_function(at, end, &l->nreg);
    unsigned n = 0;

    for (at = next; at < end; at = next, l->nreg = n) {
        size_t len = length_of(at, end);
        int before = l->change.n;

        *sd_push(l->a, &l->change) = (change){at, len, {0}, l->nreg};
        next = next_function(at + len, end, &n);
        find_ors(l, at + len, next);
        if (l->change.n == before + 1) /* nothing there needs registers */
            l->change.n = before;
    }
}

/* The arena is asked for nothing while `out` is held: where memory runs out,
 * sd_catch frees what arenas have, and no buffer. */
LLVMMemoryBufferRef target_ptx_part_logic(LLVMMemoryBufferRef text)
{
    static const char or[] = "or.pred";
    const char *at = LLVMGetBufferStart(text);
    const char *end = at + LLVMGetBufferSize(text);
    logic l = {0};
    sd_buf out = {0};

    if (!memmem(at, (size_t)(end - at), or, sizeof or - 1))
        return text;
    l.a = sd_arena_create();
    find_changes(&l, at, end);
    for (int i = 0; i < l.change.n; i++) {
        const change *c = &l.change.at[i];

        sd_buf_add(&out, at, (size_t)(c->at - at));
        write_change(&out, c);
        at = c->at + c->len;
    }
    if (l.change.n) {
        sd_buf_add(&out, at, (size_t)(end - at));
        if (out.oom) {
            sd_buf_finish(&out);
            sd_oom((size_t)(end - at));
        }
        LLVMDisposeMemoryBuffer(text);
        text =
            LLVMCreateMemoryBufferWithMemoryRangeCopy(out.at, out.len, "ptx");
    }
    sd_buf_finish(&out);
    sd_arena_destroy(l.a);
    return text;
}
