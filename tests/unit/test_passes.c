/* Golden text for passes.  tests/passes/<pass>/<case>.hlo holds
 *
 *   // run: dce cse          the passes, in this order; "all": the pipeline
 *   // eval: 1e-6            optional: how far values may move; off: not run
 *   // slices: 256           optional: SUNDOG_SLICES
 *   // device: cuda:sm_90    optional: of devices.def
 *   // refuses: infeed       instead: the pipeline says UNIMPLEMENTED and this
 *   HloModule ...
 *   // gives:                optional: only the values are compared
 *   HloModule ...
 *
 * any number of times.  Beside the text, the module's values before and after
 * on random arguments are compared, by the evaluator.
 *
 *   test_passes DIR               runs all files below DIR
 *   test_passes --bless DIR       writes what the passes give
 *   test_passes --time FILE       the pipeline's time on a module
 *   test_passes --print FILE      what the pipeline gives */
#include "passes.h"
#include "ref.h"

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

typedef struct {
    const char *file;
    int line;
    const char *run, *text, *gives; /* gives: NULL where there is none */
    const char *refuses;            /* NULL: it does not */
    size_t run_len, text_len, gives_len, refuses_len;
    bool has_eval, eval_off;
    double eval;
    int64_t slices;
    char device[32]; /* empty: a host */
} test_case;

static int ran, failed;

static void fail(const test_case *t, const char *what, const char *detail)
{
    failed++;
    printf("FAIL %s:%d: %s\n%s\n", t->file, t->line, what,
           detail ? detail : "");
}

static bool ok(const test_case *t, const char *what, sd_status st)
{
    if (!st)
        return true;
    fail(t, what, st->message);
    sd_status_free(st);
    return false;
}

/* ---- values ---- */

static uint64_t next_random(uint64_t *s)
{
    *s = *s * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *s >> 33;
}

static void random_value(sd_arena *a, const sd_shape *s, uint64_t *seed,
                         hlo_value *v)
{
    *v = hlo_value_make(a, s);
    if (s->dtype == SD_TUPLE) {
        for (int i = 0; i < s->nelem; i++)
            random_value(a, s->elem[i], seed, &v->elem[i]);
        return;
    }
    sd_dtype t = sd_dtype_part(s->dtype);
    int64_t n = sd_shape_count(s) * (t == s->dtype ? 1 : 2);
    sd_kind k = sd_dtype_kind(t);

    for (int64_t i = 0; i < n; i++) {
        char *p = (char *)v->data + (size_t)i * sd_dtype_bytes(t);
        double u = (double)next_random(seed) / 2147483648.0;

        if (k == SD_K_FLOAT)
            sd_scalar_of_f64(t, 6 * u - 3, p);
        else if (k == SD_K_PRED)
            sd_scalar_of_s64(t, u < 0.5, p);
        else
            sd_scalar_of_s64(t, (int64_t)(8 * u) - (k == SD_K_SINT ? 2 : 0), p);
    }
}

static bool close_to(sd_dtype t, const char *x, const char *y, double tol)
{
    if (memcmp(x, y, sd_dtype_bytes(t)) == 0)
        return true;
    if (sd_dtype_kind(t) != SD_K_FLOAT)
        return false;
    double a = sd_scalar_to_f64(t, x), b = sd_scalar_to_f64(t, y);

    if (isnan(a) || isnan(b))
        return isnan(a) && isnan(b);
    return a == b ? tol > 0 || signbit(a) == signbit(b)
                  : fabs(a - b) <= tol * (1 + fabs(b));
}

static bool compare(const test_case *t, const hlo_value *x, const hlo_value *y)
{
    if (x->shape->dtype == SD_TUPLE) {
        for (int i = 0; i < x->shape->nelem; i++)
            if (!compare(t, &x->elem[i], &y->elem[i]))
                return false;
        return true;
    }
    sd_dtype e = sd_dtype_part(x->shape->dtype);
    int64_t n = sd_shape_count(x->shape) * (e == x->shape->dtype ? 1 : 2);

    for (int64_t i = 0; i < n; i++) {
        size_t at = (size_t)i * sd_dtype_bytes(e);
        const char *p = (const char *)x->data + at;
        const char *q = (const char *)y->data + at;

        if (!close_to(e, p, q, t->eval)) {
            char text[160];
            bool whole = sd_dtype_kind(e) != SD_K_FLOAT;

            snprintf(text, sizeof text,
                     "%s element %" PRId64 " is %.9g before, %.9g after",
                     sd_dtype_name(x->shape->dtype), i,
                     whole ? (double)sd_scalar_to_s64(e, p)
                           : sd_scalar_to_f64(e, p),
                     whole ? (double)sd_scalar_to_s64(e, q)
                           : sd_scalar_to_f64(e, q));
            fail(t, "values differ", text);
            return false;
        }
    }
    return true;
}

static bool eval(sd_arena *a, const test_case *t, hlo_module *m,
                 const hlo_value *arg, hlo_value *out, const char *when)
{
    return ok(t, when, ref_eval(a, m->entry, arg, m->entry->nparam, out));
}

/* ---- one case ---- */

static bool is_word(const test_case *t, const char *w)
{
    return t->run_len == strlen(w) && memcmp(t->run, w, t->run_len) == 0;
}

static void refuses(const test_case *t, sd_status st)
{
    if (!st || st->code != SD_UNIMPLEMENTED ||
        !memmem(st->message, strlen(st->message), t->refuses, t->refuses_len))
        fail(t, "should be refused by name", st ? st->message : "it is not");
    sd_status_free(st);
}

static bool run_passes(const test_case *t, hlo_module *m)
{
    const char *at = t->run, *end = t->run + t->run_len;
    device_desc dev = {.kind = DEVICE_HOST, .lanes = 8, .group = 1};
    sd_options opt = {0};
    char name[64];

    if (*t->device && !device_desc_of_name(t->device, &dev))
        fail(t, "no such device", t->device);
    opt.value[SD_OPT_CHECK] = "verify,roundtrip";
    if (t->refuses) {
        refuses(t, hlo_optimize(m, &dev, &opt, NULL, NULL));
        return false;
    }
    if (is_word(t, "all"))
        return ok(t, "optimize", hlo_optimize(m, &dev, &opt, NULL, NULL));
    m->slice_size = t->slices;
    while (at < end) {
        size_t n = strcspn(at, " \n");
        const hlo_pass *p;

        snprintf(name, sizeof name, "%.*s", (int)n, at);
        if (!(p = hlo_pass_of_name(name))) {
            fail(t, "no such pass", name);
            return false;
        }
        p->run(m, &dev);
        if (!ok(t, "verify", hlo_verify(m)))
            return false;
        at += n + strspn(at + n, " ");
    }
    return true;
}

/* The case's text where the module is the one it says: a text may be written
 * in other words than a printer's.  Else what the module is. */
static bool print_like(sd_arena *a, const test_case *t, const hlo_module *m,
                       sd_buf *out)
{
    sd_buf got = {0}, want = {0};
    hlo_module *w;
    sd_status st = hlo_parse(a, t->gives, t->gives_len, &w);
    bool same = false;

    hlo_print(&got, m);
    sd_buf_u8(&got, 0);
    if (!st) {
        hlo_print(&want, w);
        sd_buf_u8(&want, 0);
        same = !strcmp(got.at, want.at);
    }
    if (same)
        sd_buf_add(out, t->gives, t->gives_len);
    else
        sd_buf_fmt(out, "%s%s", got.at, t->gives[t->gives_len] ? "\n" : "");
    sd_status_free(st);
    sd_buf_finish(&got);
    sd_buf_finish(&want);
    return same;
}

static void fail_text(sd_arena *a, const test_case *t, sd_buf *out, size_t from)
{
    hlo_module *w;

    sd_buf_u8(out, 0);
    if (ok(t, "parse what it gives", hlo_parse(a, t->gives, t->gives_len, &w)))
        fail(t, "the text differs; it gives", out->at + from);
    out->len--;
}

/* What the case is to give goes to out: where its passes fail, what it has. */
static void run_case(const test_case *t, bool bless, sd_buf *out)
{
    sd_arena *a = sd_arena_create();
    hlo_module *m, *before;
    hlo_value *arg, x = {0}, y = {0};
    uint64_t seed = 42;
    size_t from = out->len;

    ran++;
    if (!ok(t, "parse", hlo_parse(a, t->text, t->text_len, &before)) ||
        !ok(t, "parse", hlo_parse(a, t->text, t->text_len, &m)) ||
        !ok(t, "verify", hlo_verify(m)) || !run_passes(t, m)) {
        sd_buf_add(out, t->gives, t->gives_len);
        goto done;
    }
    if (t->gives && !print_like(a, t, m, out) && !bless)
        fail_text(a, t, out, from);
    if (t->eval_off || bless)
        goto done;
    arg = sd_arena_array(a, hlo_value, m->entry->nparam + 1);
    for (int i = 0; i < m->entry->nparam; i++)
        random_value(a, m->entry->param[i]->shape, &seed, &arg[i]);
    if (eval(a, t, before, arg, &x, "evaluate before") &&
        eval(a, t, m, arg, &y, "evaluate after"))
        compare(t, &x, &y);
done:
    sd_arena_destroy(a);
}

/* ---- files ---- */

static const char *next_line(const char *p)
{
    const char *e = strchr(p, '\n');

    return e ? e + 1 : p + strlen(p);
}

static bool starts(const char *p, const char *with)
{
    return strncmp(p, with, strlen(with)) == 0;
}

/* Reads the case at p; returns where the next one begins. */
static const char *read_case(const char *p, const char *begin, test_case *t)
{
    const char *e;

    t->gives = t->refuses = NULL;
    t->gives_len = 0;
    t->has_eval = t->eval_off = false;
    t->eval = 0;
    t->slices = 0;
    *t->device = 0;
    t->line = 1;
    for (const char *q = begin; q < p; q++)
        t->line += *q == '\n';
    t->run = p + strlen("// run: ");
    e = next_line(p);
    t->run_len = (size_t)(e - t->run) - (e[-1] == '\n');
    if (starts(e, "// eval: ")) {
        t->has_eval = true;
        t->eval_off = starts(e, "// eval: off");
        t->eval = strtod(e + strlen("// eval: "), NULL);
        e = next_line(e);
    }
    if (starts(e, "// slices: ")) {
        t->slices = strtol(e + strlen("// slices: "), NULL, 10);
        e = next_line(e);
    }
    if (starts(e, "// device: ")) {
        sscanf(e, "// device: %31s", t->device);
        e = next_line(e);
    }
    if (starts(e, "// refuses: ")) {
        t->refuses = e + strlen("// refuses: ");
        e = next_line(e);
        t->refuses_len = (size_t)(e - t->refuses) - (e[-1] == '\n');
    }
    t->text = e;
    while (*e && !starts(e, "// gives:") && !starts(e, "// run: "))
        e = next_line(e);
    t->text_len = (size_t)(e - t->text);
    if (starts(e, "// gives:")) {
        t->gives = e = next_line(e);
        while (*e && !starts(e, "// run: "))
            e = next_line(e);
        t->gives_len = (size_t)(e - t->gives);
    }
    return e;
}

static void run_file(const char *path, bool bless)
{
    sd_buf text = {0}, out = {0};
    test_case t = {.file = path};
    int had = failed;
    const char *p, *from;

    if (!ok(&t, "read", sd_file_read(path, &text)))
        return;
    sd_buf_u8(&text, 0);
    for (p = text.at; *p && !starts(p, "// run: ");)
        p = next_line(p);
    sd_buf_add(&out, text.at, (size_t)(p - text.at));
    while (*(from = p)) {
        p = read_case(p, text.at, &t);
        sd_buf_add(&out, from, (size_t)(t.text + t.text_len - from));
        sd_buf_str(&out, t.gives ? "// gives:\n" : "");
        if (t.gives || !bless)
            run_case(&t, bless, &out);
    }
    if (bless)
        ok(&t, "write", sd_file_write(path, out.at, out.len));
    else if (failed == had &&
             (out.len + 1 != text.len || memcmp(out.at, text.at, out.len) != 0))
        fail(&t, "all is as it should be, and blessing would change it", NULL);
    sd_buf_finish(&text);
    sd_buf_finish(&out);
}

static int by_name(const struct dirent **x, const struct dirent **y)
{
    return strcmp((*x)->d_name, (*y)->d_name);
}

static void run_all(const char *path, bool bless)
{
    struct dirent **e;
    struct stat s;
    char sub[4096];
    int n;

    if (stat(path, &s) == 0 && !S_ISDIR(s.st_mode)) {
        run_file(path, bless);
        return;
    }
    n = scandir(path, &e, NULL, by_name);
    for (int i = 0; i < n; i++) {
        snprintf(sub, sizeof sub, "%s/%s", path, e[i]->d_name);
        if (e[i]->d_name[0] != '.')
            run_all(sub, bless);
        free(e[i]);
    }
    if (n >= 0)
        free(e);
}

static int time_file(const char *path, bool print)
{
    device_desc dev = {.kind = DEVICE_HOST, .lanes = 8, .group = 1};
    sd_options opt = {0};
    sd_buf text = {0}, out = {0};
    sd_status st = sd_file_read(path, &text);
    uint64_t best = UINT64_MAX, from;
    hlo_module *m;
    int n = 0, left = 0;

    for (int i = 0; i < 5 && !st; i++) {
        sd_arena *a = sd_arena_create();

        n = left = 0;
        st = hlo_parse(a, text.at, text.len, &m);
        if (!st) {
            hlo_for_each_comp(c, m)
                n += hlo_comp_count(c);
            from = sd_now_ns();
            st = hlo_optimize(m, &dev, &opt, NULL, NULL);
            best = SD_MIN(best, sd_now_ns() - from);
            hlo_for_each_comp(c, m)
                left += hlo_comp_count(c);
            if (print && i == 0)
                hlo_print(&out, m);
        }
        sd_arena_destroy(a);
    }
    printf("%.*s", (int)out.len, out.at ? out.at : "");
    printf("%s: %d instructions, %d after, %.3f ms %s\n", path, n, left,
           (double)best / 1e6, st ? st->message : "");
    sd_status_free(st);
    sd_buf_finish(&text);
    sd_buf_finish(&out);
    return 0;
}

int main(int argc, char **argv)
{
    bool bless = argc == 3 && strcmp(argv[1], "--bless") == 0;

    if (argc == 3 &&
        (strcmp(argv[1], "--time") == 0 || strcmp(argv[1], "--print") == 0))
        return time_file(argv[2], argv[1][2] == 'p');
    if (argc != (bless ? 3 : 2)) {
        fprintf(stderr, "usage: %s [--bless | --time | --print] PATH\n",
                argv[0]);
        return 2;
    }
    run_all(argv[bless ? 2 : 1], bless);
    printf("%d cases, %d failures\n", ran, failed);
    return failed || !ran;
}
