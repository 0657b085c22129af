/* The time that compiling takes grows with the length of a program and not
 * with a power of it: each operation of the table, 4 and 32 times in a row, at
 * ranks 1, 2, 8 and 15.  What is held is the ratio of two times of one
 * process, the least of several each; a rule that looks at a tree where a
 * graph is shared, or at all pairs, shows as tens or thousands instead of 8. */
#include "compile.h"
#include "hlo.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { SHORT = 4, LONG = 32 };
/* Twice as steep as linear is allowed, and times below GRAIN are noise. */
static const double most_ratio = 2.5 * LONG / SHORT, grain = 0.02;

typedef struct {
    hlo_op op;
    int least, most; /* rank */
    const char *text;
} link_row;

static const link_row links[] = {
#define LINK(ID, LEAST, MOST, TEXT) {HLO_##ID, LEAST, MOST, TEXT},
#define NOT(ID, WHY)                {HLO_##ID, 0, 0, NULL},
#include "chain_links.def"
};

/* ---- text ---- */

typedef struct {
    sd_buf param, body;
    int nparam, rank, n; /* n: the link */
    int64_t extent;
} chain;

static void list(sd_buf *b, int n, int64_t v)
{
    for (int i = 0; i < n; i++)
        sd_buf_fmt(b, "%s%" PRId64, i ? "," : "", v);
}

static void expand(chain *c, sd_buf *out, const char *s, size_t len, int k);

/* The text in the parentheses at s, which end at the result. */
static const char *closing(const char *s)
{
    int depth = 0;

    do {
        depth += *s == '(';
        depth -= *s == ')';
        s++;
    } while (depth);
    return s;
}

static void take_parameter(chain *c, sd_buf *out, const char *s, size_t len,
                           int k)
{
    sd_buf type = {0};

    expand(c, &type, s, len, k);
    sd_buf_fmt(&c->param, "  q%d = %.*s parameter(%d)\n", c->nparam,
               (int)type.len, type.at, c->nparam);
    sd_buf_fmt(out, "q%d", c->nparam++);
    sd_buf_finish(&type);
}

static void expand_one(chain *c, sd_buf *out, const char **at, int k)
{
    const char *s = *at + 1, *end;
    int last = c->rank - 1;
    int64_t all = 1;

    *at = s + 1;
    for (int d = 0; d < c->rank; d++)
        all *= c->extent;
    switch (*s) {
    case 'p':
        end = closing(s + 1);
        take_parameter(c, out, s + 2, (size_t)(end - s) - 3, k);
        *at = end;
        return;
    case 'r':
    case 'w':
        end = closing(s + 1);
        for (int d = 0; d < c->rank; d++) {
            if (d)
                sd_buf_str(out, *s == 'r' ? ", " : "x");
            expand(c, out, s + 2, (size_t)(end - s) - 3, d);
        }
        *at = end;
        return;
    case 'k': /* $k1: one more */
        sd_buf_fmt(out, "%d", k + (s[1] == '1'));
        *at += s[1] == '1';
        return;
    case 'x':
        sd_buf_fmt(out, "y%d", c->n);
        return;
    case 'y':
        sd_buf_fmt(out, "y%d", c->n + 1);
        return;
    case 'n':
        sd_buf_fmt(out, "%d", c->n);
        return;
    case 'S':
        sd_buf_str(out, "f32[");
        list(out, c->rank, c->extent);
        sd_buf_str(out, "]");
        return;
    case 'd':
        list(out, c->rank, c->extent);
        return;
    case 'e':
        list(out, c->rank, c->extent + 1);
        return;
    case 'h':
        list(out, c->rank, 1);
        return;
    case 't': /* transposed; all are one long, so that it may be reshaped */
        list(out, c->rank, c->extent);
        return;
    case 'T': /* every dimension one on */
        for (int d = 0; d < c->rank; d++)
            sd_buf_fmt(out, "%s%d", d ? "," : "", (d + 1) % c->rank);
        return;
    case 'q': /* two dimensions that no old one divides evenly */
    case 'Q':
        for (int64_t i = c->extent + 1; i < all; i++)
            if (all % i == 0 && i % c->extent) {
                sd_buf_fmt(out, "%" PRId64 ",%" PRId64, *s == 'q' ? i : all / i,
                           *s == 'q' ? all / i : i);
                return;
            }
        sd_buf_fmt(out, "%" PRId64 ",%" PRId64,
                   *s == 'q' ? c->extent : all / c->extent,
                   *s == 'q' ? all / c->extent : c->extent);
        return;
    case 'D': /* the last dimension twice as long */
        list(out, last, c->extent);
        sd_buf_fmt(out, "%s%" PRId64, last ? "," : "", 2 * c->extent);
        return;
    case 'b': /* of it a part that is in both halves */
        if (k == last)
            sd_buf_fmt(out, "1:%" PRId64, c->extent + 1);
        else
            sd_buf_fmt(out, "0:%" PRId64, c->extent);
        return;
    case '1':
        sd_buf_fmt(out, "%" PRId64, c->extent);
        return;
    case 'o':
        sd_buf_fmt(out, "%d", c->rank);
        return;
    case 'z':
        sd_buf_fmt(out, "%d", last);
        return;
    default:
        fprintf(stderr, "chain_links.def: $%c\n", *s);
        abort();
    }
}

static void expand(chain *c, sd_buf *out, const char *s, size_t len, int k)
{
    const char *end = s + len;

    while (s < end)
        if (*s == '$')
            expand_one(c, out, &s, k);
        else
            sd_buf_u8(out, (uint8_t)*s++);
}

static const char head[] = "HloModule chain\n"
                           "add { x = f32[] parameter(0) y = f32[] parameter(1)"
                           " ROOT z = f32[] add(x, y) }\n"
                           "ge { x = f32[] parameter(0) y = f32[] parameter(1)"
                           " ROOT z = pred[] compare(x, y), direction=GE }\n";
static const char calls[] =
    "both { x = $S parameter(0) y = $S parameter(1)"
    " ROOT z = $S multiply(x, y) }\n"
    "turn { x = $S parameter(0) ROOT z = $S sine(x) }\n"
    "twist { x = $S parameter(0) ROOT z = $S cosine(x) }\n"
    "cond { s = (s32[], $S) parameter(0)"
    " i = s32[] get-tuple-element(s), index=0"
    " m = s32[] constant(9) ROOT r = pred[] compare(i, m), direction=LT }\n"
    "body { s = (s32[], $S) parameter(0)"
    " i = s32[] get-tuple-element(s), index=0"
    " x = $S get-tuple-element(s), index=1 one = s32[] constant(1)"
    " j = s32[] add(i, one) y = $S sine(x)"
    " ROOT r = (s32[], $S) tuple(j, y) }\n";

static void write_chain(const link_row *row, int rank, int n, sd_buf *out)
{
    static const int64_t extents[] = {60, 24, 8, 6, 4, 4, 3, 3};
    chain c = {.rank = rank, .nparam = 1};

    c.extent = rank <= 8 ? extents[rank - 1] : 2;
    sd_buf_str(out, head);
    expand(&c, out, calls, sizeof calls - 1, 0);
    sd_buf_str(out, "ENTRY f {\n  zero = f32[] constant(0)\n"
                    "  one = f32[] constant(1)\n");
    expand(&c, out, "  y0 = $S parameter(0)\n", 22, 0);
    for (c.n = 0; c.n < n; c.n++) {
        expand(&c, &c.body, row->text, strlen(row->text), 0);
        sd_buf_str(&c.body, "\n");
    }
    sd_buf_add(out, c.param.at, c.param.len);
    sd_buf_add(out, c.body.at, c.body.len);
    c.n--;
    expand(&c, out, "  ROOT end = $S negate($y)\n}\n", 28, 0);
    sd_buf_finish(&c.param);
    sd_buf_finish(&c.body);
}

/* ---- time ---- */

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double compile_once(const sd_buf *text, const device_desc *dev)
{
    compile_request rq = {.program = {(const uint8_t *)text->at, text->len},
                          .format = "hlo_text",
                          .format_len = 8,
                          .device = dev};
    sd_options o = {0};
    compile_services sv = {.env = &o};
    thunk_program *p = NULL;
    double t = now();
    sd_status st = sundog_compile(&rq, &sv, &p);

    t = now() - t;
    if (st) {
        fprintf(stderr, "%.*s\n%s\n", (int)text->len, text->at, st->message);
        sd_status_free(st);
        return -1;
    }
    thunk_program_release(p);
    return t;
}

/* The least of some tries, fewer where it takes long. */
static double compile_time(const link_row *row, int rank, int n,
                           const device_desc *dev)
{
    sd_buf text = {0};
    double best = 1e9, spent = 0;

    write_chain(row, rank, n, &text);
    for (int i = 0; i < 3 && spent < 0.05 && best > 0; i++) {
        double t = compile_once(&text, dev);

        spent += t;
        best = SD_MIN(best, t);
    }
    sd_buf_finish(&text);
    return best;
}

/* 1: too steep or refused. */
static int try_chain(const link_row *row, int rank, const device_desc *dev)
{
    double x, y = 0, ratio = 0;

    for (int again = 0; again < 3; again++) {
        x = compile_time(row, rank, SHORT, dev);
        y = x < 0 ? -1 : compile_time(row, rank, LONG, dev);
        if (y < 0) {
            printf("%s, rank %d: refused\n", hlo_op_table[row->op].name, rank);
            return 1;
        }
        ratio = y / SD_MAX(x, grain);
        if (ratio <= most_ratio)
            break;
    }
    if (getenv("VERBOSE") || ratio > most_ratio)
        printf("%s, rank %d: %.4f s and %.4f s, %.1f times\n",
               hlo_op_table[row->op].name, rank, x, y, ratio);
    return ratio > most_ratio;
}

int main(int argc, char **argv)
{
    static const int rank[] = {1, 2, 8, 15};
    bool seen[HLO_OP_COUNT] = {false};
    int bad = 0, ran = 0;
    device_desc dev;

    if (!device_desc_of_name("host:v3", &dev))
        return 2;
    for (size_t i = 0; i < SD_COUNTOF(links); i++) {
        const link_row *row = &links[i];

        seen[row->op] = true;
        if (!row->text ||
            (argc > 1 && strcmp(argv[1], hlo_op_table[row->op].name) != 0))
            continue;
        for (size_t r = 0; r < SD_COUNTOF(rank); r++)
            if (rank[r] >= row->least && rank[r] <= row->most) {
                bad += try_chain(row, rank[r], &dev);
                ran++;
            }
        if (row->least == row->most) {
            bad += try_chain(row, row->least, &dev);
            ran++;
        }
    }
    for (int i = 0; i < HLO_OP_COUNT; i++)
        if (!seen[i]) {
            printf("chain_links.def has no row for %s\n", hlo_op_table[i].name);
            bad++;
        }
    printf("%d chains, %d bad\n", ran, bad);
    return bad != 0;
}
