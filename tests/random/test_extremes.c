/* Every number that a program brings, at every extreme: it is refused, or it is
 * right.  Never a signal, never blame on ourselves.
 *
 *   test_extremes DEVICE FILE          all rows
 *   test_extremes DEVICE FILE print    also each program before it runs
 *
 * FILE holds programs with a line "// -----" between them, in which <4> is such
 * a number and 4 what it is when others are at their extremes: each by itself,
 * and each two of them together at some.  Shapes that follow are not to be
 * known: one that does not fit is taken from the message that says so. */
#include "random.h"

#include <stdio.h>
#include <stdlib.h>

enum { MOST_NUMBERS = 16, MOST_TEXT = 8192, MOST_SHAPES = 8 };

enum { OF_TWO = 5 }; /* the first of them, for two together */
static const char *const extremes[] = {"0",
                                       "-1",
                                       "4294967296",
                                       "70368744177664", /* 2^46 */
                                       "9223372036854775807",
                                       "1",
                                       "2",
                                       "3",
                                       "2147483647",
                                       "2147483648",
                                       "-70368744177664",
                                       "4611686018427387904", /* 2^62 */
                                       "-9223372036854775808"};

/* What most rows call; before each, behind its first line if that is a head. */
static const char regions[] =
    "add { x = f32[] parameter(0) y = f32[] parameter(1) ROOT z = f32[] add(x, "
    "y) }\n"
    "ge { x = f32[] parameter(0) y = f32[] parameter(1) ROOT z = pred[] "
    "compare(x, y), direction=GE }\n"
    "less { x = f32[] parameter(0) y = f32[] parameter(1) ROOT z = pred[] "
    "compare(x, y), direction=LT }\n";

typedef struct {
    const char *piece[MOST_NUMBERS + 1]; /* between the numbers */
    int len[MOST_NUMBERS + 1];
    const char *usual[MOST_NUMBERS];
    int usual_len[MOST_NUMBERS];
    int n;
} row;

typedef struct {
    const random_world *w;
    bool print;
    int64_t agree, refused, wrong;
} tally;

static row row_of(const char *s, const char *end)
{
    row r = {.piece = {s}};

    for (const char *at = s; at < end; at++) {
        bool digit = at[1] == '-' || (at[1] >= '0' && at[1] <= '9');

        if (*at != '<' || !digit || r.n == MOST_NUMBERS)
            continue;
        r.len[r.n] = (int)(at - r.piece[r.n]);
        r.usual[r.n] = at + 1;
        at = memchr(at, '>', (size_t)(end - at));
        r.usual_len[r.n] = (int)(at - r.usual[r.n]);
        r.piece[++r.n] = at + 1;
    }
    r.len[r.n] = (int)(end - r.piece[r.n]);
    return r;
}

/* With the numbers i and k at extremes; -1: none. */
static void write_row(const row *r, int i, const char *x, int k, const char *y,
                      sd_buf *b)
{
    for (int n = 0; n <= r->n; n++) {
        sd_buf_add(b, r->piece[n], (size_t)r->len[n]);
        if (n == r->n)
            break;
        if (n == i || n == k)
            sd_buf_str(b, n == i ? x : y);
        else
            sd_buf_add(b, r->usual[n], (size_t)r->usual_len[n]);
    }
}

static void put_regions(const sd_buf *from, sd_buf *to)
{
    const char *end = from->at + from->len, *body = from->at;

    if (from->len > 9 && !memcmp(from->at, "HloModule", 9))
        body = (const char *)memchr(from->at, '\n', from->len) + 1;
    sd_buf_add(to, from->at, (size_t)(body - from->at));
    sd_buf_str(to, regions);
    sd_buf_add(to, body, (size_t)(end - body));
}

/* "line 5: slice of f32[9]: gives f32[1], declared f32[2]": the first slice of
 * such a shape gets the other; false: the message says something else. */
static bool take_shape(const char *message, sd_buf *b)
{
    const char *op = strstr(message, "line "), *gives, *declared, *is;
    sd_buf to = {0};
    char old[256];

    if (!op || !(op = strchr(op, ':')) || !(gives = strstr(op, ": gives ")) ||
        !(declared = strstr(gives, ", declared ")))
        return false;
    op += strlen(": ");
    gives += strlen(": gives ");
    snprintf(old, sizeof old, " %s %.*s(", declared + strlen(", declared "),
             (int)strcspn(op, " "), op);
    sd_buf_u8(b, 0);
    b->len--;
    if (!(is = strstr(b->at, old)))
        return false;
    sd_buf_add(&to, b->at, (size_t)(is - b->at) + 1);
    sd_buf_add(&to, gives, (size_t)(declared - gives));
    is += 1 + strlen(declared + strlen(", declared "));
    sd_buf_str(&to, is);
    sd_buf_finish(b);
    *b = to;
    return true;
}

static void fit_shapes(sd_buf *b)
{
    for (int i = 0; i < MOST_SHAPES; i++) {
        sd_arena *a = sd_arena_create();
        hlo_module *m;
        sd_status st = hlo_parse(a, b->at, b->len, &m);
        bool again = st && take_shape(st->message, b);

        sd_status_free(st);
        sd_arena_destroy(a);
        if (!again)
            return;
    }
}

static void run(tally *t, const sd_buf *text)
{
    sd_buf b = {0}, why = {0};
    random_program p = {
        .format = "hlo_text", .relative = 1e-5, .hostile = true};
    random_verdict v;

    put_regions(text, &b);
    fit_shapes(&b);
    if (t->print) {
        printf("%.*s\n", (int)b.len, b.at);
        fflush(stdout);
    }
    p.bytes = (sd_bytes){(const uint8_t *)b.at, b.len};
    v = random_run_program(t->w, &p, &why);
    if (t->print)
        printf("-> %.*s\n", (int)why.len, why.at ? why.at : "");
    t->agree += v == RANDOM_AGREES;
    t->refused += v == RANDOM_REFUSED;
    t->wrong += v == RANDOM_WRONG;
    if (v == RANDOM_WRONG)
        printf("WRONG %.*s\n%.*s\n", (int)why.len, why.at, (int)b.len, b.at);
    sd_buf_finish(&b);
    sd_buf_finish(&why);
}

static void run_row(tally *t, const row *r)
{
    const int n = (int)SD_COUNTOF(extremes);

    for (int i = 0; i < r->n; i++)
        for (int k = i; k < r->n; k++)
            for (int x = 0; x < (k == i ? n : OF_TWO); x++)
                for (int y = 0; y < (k == i ? 1 : OF_TWO); y++) {
                    sd_buf b = {0};

                    write_row(r, i, extremes[x], k, extremes[y], &b);
                    run(t, &b);
                    sd_buf_finish(&b);
                }
}

/* Unchanged it runs: a row that is always refused tries nothing. */
static void run_usual(tally *t, const row *r)
{
    int64_t before = t->agree;
    sd_buf b = {0};

    write_row(r, -1, NULL, -1, NULL, &b);
    run(t, &b);
    if (t->agree == before) {
        printf("WRONG, refused as it is: %.*s\n", (int)b.len, b.at);
        t->wrong++;
    }
    sd_buf_finish(&b);
}

int main(int argc, char **argv)
{
    sd_buf b = {0};
    random_world w;
    sd_status st;
    tally t = {.w = &w, .print = argc == 4};

    if (argc < 3) {
        fprintf(stderr, "usage: test_extremes DEVICE FILE [print]\n");
        return 2;
    }
    sd_log_init();
    if ((st = random_world_open(&w, argv[1])) ||
        (st = sd_file_read(argv[2], &b))) {
        fprintf(stderr, "%s\n", st->message);
        return 1;
    }
    sd_buf_u8(&b, 0);
    for (const char *at = b.at, *end; at; at = end ? end + 9 : NULL) {
        row r;

        end = strstr(at, "// -----\n");
        r = row_of(at, end ? end : at + strlen(at));
        run_usual(&t, &r);
        run_row(&t, &r);
    }
    random_world_close(&w);
    sd_buf_finish(&b);
    printf("%s: %" PRId64 " run, %" PRId64 " refused, %" PRId64 " wrong\n",
           w.name, t.agree, t.refused, t.wrong);
    return t.wrong != 0;
}
