/* Truth values that are both ANDed and ORed, which NVIDIA's assembler gets
 * wrong.
 *
 * Where p & q and p | q are both asked for, ptxas takes one instruction with
 * two results, PLOP3.  Where it finds later that it needs only one of them, it
 * sometimes keeps the other: gammasgn(NaN) was 1, and of 3,000 random programs
 * of truth values 32 were wrong, by the ptxas of CUDA 12.9.  That of 13.5 and
 * the driver of 13.0 do so, too.  p or q may be negated on the way to either.
 * So an OR of what is also ANDed is written as (p ^ q) ^ (p & q) here, of which
 * none of 16,000 was wrong.
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
    sd_arena *a;
    sd_buf out;
    unsigned nreg;    /* of truth values, in the function that is read */
    unsigned *source; /* of each: what it copies or negates, or itself */
    sd_vec(pair) and;
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
    static const char *const name[] = {
        [AND] = "and", [OR] = "or", [NOT] = "not", [COPY] = "mov"};
    char text[LONGEST], op[8];
    int n;

    *l = (line_of){0};
    if (!copy_line(at, len, text))
        return false;
    n = sscanf(text, " %7[a-z].pred %%p%u, %%p%u, %%p%u;", op, &l->to, &l->a,
               &l->b);
    for (operation i = AND; n >= 2 && i <= COPY; i++)
        if (!strcmp(op, name[i]) && n == 3 + (i <= OR))
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

/* Two registers behind the function's own hold the parts of an OR. */
static void write_parted(logic *l, const line_of *in)
{
    unsigned one = l->nreg, both = l->nreg + 1;

    sd_buf_fmt(&l->out,
               "\txor.pred \t%%p%u, %%p%u, %%p%u;\n"
               "\tand.pred \t%%p%u, %%p%u, %%p%u;\n"
               "\txor.pred \t%%p%u, %%p%u, %%p%u;\n",
               one, in->a, in->b, both, in->a, in->b, in->to, one, both);
}

/* The lines behind the declaration of a function's truth values. */
static void part_function(logic *l, const char *at, const char *end)
{
    line_of in;

    find_sources(l, at, end);
    find_ands(l, at, end);
    sd_buf_fmt(&l->out, "\t.reg .pred \t%%p<%u>;\n", l->nreg + 2);
    for (size_t len; at < end; at += len) {
        len = length_of(at, end);
        if (read_line(at, len, &in) && in.op == OR && is_known(l, &in) &&
            is_anded(l, &in))
            write_parted(l, &in);
        else
            sd_buf_add(&l->out, at, len);
    }
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

LLVMMemoryBufferRef target_ptx_part_logic(LLVMMemoryBufferRef text)
{
    static const char or[] = "or.pred";
    const char *at = LLVMGetBufferStart(text), *next;
    const char *end = at + LLVMGetBufferSize(text);
    logic l = {0};
    unsigned n = 0;

    if (!memmem(at, (size_t)(end - at), or, sizeof or - 1))
        return text;
    l.a = sd_arena_create();
    next = next_function(at, end, &l.nreg);
    sd_buf_add(&l.out, at, (size_t)(next - at));
    for (at = next; at < end; at = next, l.nreg = n) {
        at += length_of(at, end);
        next = next_function(at, end, &n);
        part_function(&l, at, next);
    }
    LLVMDisposeMemoryBuffer(text);
    text =
        LLVMCreateMemoryBufferWithMemoryRangeCopy(l.out.at, l.out.len, "ptx");
    sd_buf_finish(&l.out);
    sd_arena_destroy(l.a);
    return text;
}
