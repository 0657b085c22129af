/* spmd: a program of several participants on its way to what each runs. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "device_desc.h"
#include "hlo_sharding.h"
#include "passes.h"
#include "random.h"
#include "ref.h"
#include "sundog.h"

typedef struct {
    const char *stage;
    bool seen;
} watch;

static void show(const hlo_module *m)
{
    sd_buf text = {0};

    hlo_print(&text, m);
    fwrite(text.at, 1, text.len, stdout);
    sd_buf_finish(&text);
}

static void at_stage(void *ctx, const char *pass, const hlo_module *m)
{
    watch *w = ctx;

    if (w->seen || strcmp(w->stage, pass) != 0)
        return;
    w->seen = true;
    show(m);
}

static void show_sharding(const char *what, int i, const hlo_sharding *s)
{
    sd_buf b = {0};

    hlo_sharding_text(&b, s);
    printf("// %s %d: %.*s\n", what, i, (int)b.len, b.at);
    sd_buf_finish(&b);
}

static void show_shardings(const hlo_module *m)
{
    const sd_shape *root = m->entry->root->shape;
    int n = sd_shape_nresult(root);

    if (!m->param_sharding)
        return;
    for (int i = 0; i < m->entry->nparam; i++)
        show_sharding("parameter", i, m->param_sharding[i]);
    for (int i = 0; i < n; i++)
        show_sharding("result", i, m->output_sharding[i]);
}

static sd_status check_stage(const char *stage)
{
    static const char *const name[] = {"import", "spmd-import", "spmd-local",
                                       "optimized"};

    for (size_t i = 0; stage && i < SD_COUNTOF(name); i++)
        if (strcmp(stage, name[i]) == 0)
            return NULL;
    return stage ? sd_error(SD_NOT_FOUND,
                            "no stage is called %s; there are import, "
                            "spmd-import, spmd-local, optimized",
                            stage)
                 : NULL;
}

static sd_status print_stage(hlo_module *m, const char *stage)
{
    watch w = {.stage = stage};
    device_desc dev;
    sd_status st;

    if (strcmp(stage, "import") == 0) {
        show(m);
        return NULL;
    }
    if (strcmp(stage, "optimized") == 0 &&
        device_desc_of_name("host:v3", &dev)) {
        st = hlo_optimize(m, &dev, NULL, NULL, NULL);
        w.seen = true;
        if (!st)
            show(m);
    } else {
        st = hlo_spmd(m, at_stage, &w);
    }
    if (!st && !w.seen && hlo_participants(m) < 2)
        st = sd_error(SD_INVALID,
                      "%s is for one participant: nothing is cut "
                      "(--devices=N says for how many it is)",
                      m->name);
    if (!st)
        show_shardings(m);
    return st;
}

/* ---- uncut and cut ---- */

static uint64_t next(uint64_t *seed)
{
    *seed =
        *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *seed >> 33;
}

static hlo_value random_value(sd_arena *a, const sd_shape *s, uint64_t *seed)
{
    hlo_value v = hlo_value_make(a, s);
    sd_dtype part = sd_dtype_part(s->dtype);
    int64_t n = sd_shape_is_array(s) ? sd_shape_count(s) : 0;
    size_t size = sd_dtype_bytes(part);

    for (int i = 0; s->dtype == SD_TUPLE && i < s->nelem; i++)
        v.elem[i] = random_value(a, s->elem[i], seed);
    n *= n ? (int64_t)(sd_dtype_bytes(s->dtype) / size) : 0;
    for (int64_t i = 0; i < n; i++)
        if (sd_dtype_kind(part) == SD_K_FLOAT)
            sd_scalar_of_f64(part, (double)(next(seed) % 4096) / 2048 - 1,
                             (char *)v.data + (size_t)i * size);
        else
            sd_scalar_of_s64(part,
                             (int64_t)(next(seed) % (part == SD_PRED ? 2 : 5)),
                             (char *)v.data + (size_t)i * size);
    return v;
}

/* Participant p's part of the whole. */
static hlo_value part_of(sd_arena *a, const hlo_value *whole,
                         const hlo_sharding *s, const sd_shape *local,
                         int64_t p)
{
    hlo_value v = hlo_value_make(a, local);
    size_t size = sd_dtype_bytes(local->dtype);
    int64_t start[SD_MAX_RANK], ix[SD_MAX_RANK] = {0}, i = 0;

    for (int d = 0; d < local->rank; d++)
        start[d] = d < s->rank ? hlo_grid_index(s->grid, &s->dim[d].cut, p) *
                                     local->dim[d]
                               : 0;
    while (i < sd_shape_count(local)) {
        int64_t at = 0;

        for (int d = 0; d < local->rank; d++)
            at = at * whole->shape->dim[d] + start[d] + ix[d];
        memcpy((char *)v.data + (size_t)i * size,
               (const char *)whole->data + (size_t)at * size, size);
        i++;
        for (int d = local->rank - 1; d >= 0 && ++ix[d] == local->dim[d]; d--)
            ix[d] = 0;
    }
    return v;
}

typedef struct {
    sd_arena *a;
    hlo_module *whole, *cut;
    int64_t n;
    hlo_value *arg;                /* of the whole */
    hlo_value *want, *got;         /* by participant */
    const double *error;           /* by result; NULL: a few roundings */
} trial;

/* Of what is to be summed the first has all, and the others nothing. */
static bool is_first(const hlo_sharding *s, int64_t p)
{
    hlo_atoms along = {0};

    for (int i = 0; i < s->grid->natom; i++)
        if (s->unreduced >> i & 1)
            along.at[along.n++] = (uint8_t)i;
    return hlo_grid_index(s->grid, &along, p) == 0;
}

static sd_status evaluate(trial *t)
{
    int narg = t->whole->entry->nparam;
    const hlo_value **same = sd_arena_array(t->a, const hlo_value *, t->n);
    const hlo_value **part = sd_arena_array(t->a, const hlo_value *, t->n);
    sd_status st;

    for (int64_t p = 0; p < t->n; p++) {
        hlo_value *x = sd_arena_array(t->a, hlo_value, narg + 1);

        for (int i = 0; i < narg; i++) {
            const hlo_sharding *s = t->cut->param_sharding[i];

            x[i] =
                part_of(t->a, &t->arg[i], s, t->cut->entry->param[i]->shape, p);
            if (s->partial == HLO_SUM_OF && !is_first(s, p))
                memset(x[i].data, 0, sd_shape_bytes(x[i].shape));
        }
        same[p] = t->arg;
        part[p] = x;
    }
    t->want = sd_arena_array(t->a, hlo_value, t->n);
    t->got = sd_arena_array(t->a, hlo_value, t->n);
    if ((st = ref_eval_all(t->a, t->whole->entry, same, narg, t->want)))
        return sd_note(st, "uncut");
    return sd_note(ref_eval_all(t->a, t->cut->entry, part, narg, t->got),
                   "cut");
}

/* The parts that p's group has along the atoms that s leaves unreduced, made
 * into what they are parts of. */
static hlo_value joined(sd_arena *a, const hlo_sharding *s, int64_t n,
                        const hlo_value **part, int64_t p)
{
    hlo_atoms rest = hlo_grid_rest(s->grid, s->unreduced);
    hlo_value v = hlo_value_make(a, part[p]->shape);
    sd_dtype t = sd_dtype_part(v.shape->dtype);
    size_t size = sd_dtype_bytes(t), count = sd_shape_bytes(v.shape) / size;

    for (size_t i = 0; i < count; i++) {
        double sum = sd_scalar_to_f64(t, (char *)part[p]->data + i * size);

        for (int64_t q = 0; q < n; q++) {
            double x = sd_scalar_to_f64(t, (char *)part[q]->data + i * size);

            if (q == p || hlo_grid_index(s->grid, &rest, q) !=
                              hlo_grid_index(s->grid, &rest, p))
                continue;
            sum = s->partial == HLO_MAX_OF   ? SD_MAX(sum, x)
                  : s->partial == HLO_MIN_OF ? SD_MIN(sum, x)
                                             : sum + x;
        }
        if (sd_dtype_kind(t) == SD_K_FLOAT)
            sd_scalar_of_f64(t, sum, (char *)v.data + i * size);
        else
            sd_scalar_of_s64(t, (int64_t)sum, (char *)v.data + i * size);
    }
    return v;
}

/* Numbers of floats are added in another order where they are cut: a few
 * roundings of the largest. */
static bool close_to(const hlo_value *x, const hlo_value *y)
{
    sd_dtype t = sd_dtype_part(x->shape->dtype);
    size_t size = sd_dtype_bytes(t);
    size_t n = sd_shape_bytes(x->shape) / size;
    double most = 0, worst = 0;
    double eps = t == SD_F64 ? 1e-13 : t == SD_F32 ? 1e-5 : 0.05;

    if (!memcmp(x->data, y->data, sd_shape_bytes(x->shape)))
        return true;
    if (sd_dtype_kind(t) != SD_K_FLOAT)
        return false;
    for (size_t i = 0; i < n; i++) {
        double v = sd_scalar_to_f64(t, (char *)x->data + i * size);
        double w = sd_scalar_to_f64(t, (char *)y->data + i * size);

        if (v == w || (v != v && w != w))
            continue;
        most = SD_MAX(most, v < 0 ? -v : v);
        worst = SD_MAX(worst, v < w ? w - v : v - w);
        if (!isfinite(v) || !isfinite(w))
            return false;
    }
    return worst <= eps * most;
}

/* Both have an error of their own. */
static bool is_allowed(const trial *t, int i, const hlo_value *x,
                       const hlo_value *y)
{
    sd_buf why = {0};
    bool bad = random_differs("cut", i, x, y, 2 * t->error[i], &why);

    if (bad)
        printf("%.*s\n", (int)why.len, why.at);
    sd_buf_finish(&why);
    return !bad;
}

static sd_status compare_result(trial *t, int i)
{
    const hlo_sharding *s = t->cut->output_sharding[i];
    const hlo_value **got = sd_arena_array(t->a, const hlo_value *, t->n);
    bool is_tuple = t->cut->entry->root->shape->dtype == SD_TUPLE;

    for (int64_t p = 0; p < t->n; p++)
        got[p] = is_tuple ? &t->got[p].elem[i] : &t->got[p];
    for (int64_t p = 0; p < t->n; p++) {
        const hlo_value *want = is_tuple ? &t->want[p].elem[i] : &t->want[p];
        hlo_value part = part_of(t->a, want, s, got[p]->shape, p);
        hlo_value all = s->unreduced ? joined(t->a, s, t->n, got, p) : *got[p];

        if (!(t->error ? is_allowed(t, i, &all, &part) : close_to(&part, &all)))
            return sd_error(SD_INTERNAL,
                            "result %d of participant %" PRId64
                            " is another than of the uncut program",
                            i, p);
    }
    return NULL;
}

static sd_status compare(trial *t)
{
    const sd_shape *root = t->cut->entry->root->shape;
    int n = sd_shape_nresult(root);
    sd_status st = NULL;

    for (int i = 0; !st && i < n; i++)
        st = compare_result(t, i);
    return st;
}

/* Meshes that were placed are of as many participants as there were. */
static void set_participants(hlo_module *m, int n)
{
    if (m->npartition == n)
        return;
    m->npartition = n;
    m->mesh = NULL;
}

static sd_status run_trial(trial *t)
{
    sd_status st;

    if ((st = hlo_verify(t->whole)) || (st = hlo_spmd(t->cut, NULL, NULL)) ||
        (st = sd_note(hlo_verify(t->cut), "cut")))
        return st;
    if (!t->cut->param_sharding)
        return sd_error(SD_INVALID,
                        "%s is for one participant: nothing is cut "
                        "(--devices=N says for how many it is)",
                        t->whole->name);
    if ((st = evaluate(t)))
        return st;
    return compare(t);
}

static sd_status check(const tool_args *a, sd_arena *arena, hlo_module *whole)
{
    trial t = {.a = arena, .whole = whole, .n = hlo_participants(whole)};
    uint64_t seed = a->seed;
    sd_status st;

    if ((st = tool_module(arena, a->file[0], &t.cut)))
        return st;
    set_participants(t.cut, whole->npartition);
    t.arg = sd_arena_array(arena, hlo_value, whole->entry->nparam + 1);
    for (int i = 0; i < whole->entry->nparam; i++)
        t.arg[i] = random_value(arena, whole->entry->param[i]->shape, &seed);
    if ((st = run_trial(&t)))
        return st;
    printf("%s: cut and uncut are equal on %" PRId64 " participants\n",
           whole->name, t.n);
    return NULL;
}

/* ---- random programs ---- */

/* The program of a seed over several participants, twice, and what its text
 * says of errors; false: this seed has none. */
static bool make_random(sd_arena *a, uint64_t seed, trial *t, sd_status *st)
{
    sd_buf text = {0};
    hlo_module *m =
        (seed % 4 ? random_even_module : random_module)(a, seed, &text);
    bool ok = random_parts(m, seed);

    t->error = random_errors(a, text.at, text.len);
    sd_buf_finish(&text);
    if (!ok)
        return false;
    text = (sd_buf){0};
    hlo_print(&text, m);
    if (!(*st = hlo_parse(a, text.at, text.len, &t->whole)))
        *st = hlo_parse(a, text.at, text.len, &t->cut);
    sd_buf_finish(&text);
    return true;
}

static sd_status check_random(sd_arena *a, uint64_t seed, bool print,
                              bool *made)
{
    trial t = {.a = a};
    sd_status st;

    if (!(*made = make_random(a, seed, &t, &st)) || st)
        return *made ? st : NULL;
    if (print)
        show(t.whole);
    t.n = hlo_participants(t.whole);
    t.arg = sd_arena_array(a, hlo_value, t.whole->entry->nparam + 1);
    for (int i = 0; i < t.whole->entry->nparam; i++) {
        const hlo_inst *p = t.whole->entry->param[i];

        t.arg[i] = hlo_value_make(a, p->shape);
        random_fill(&t.arg[i], p->name, i);
    }
    return run_trial(&t);
}

/* What the evaluator or the compiler lacks by name is nobody's mistake here. */
static sd_status check_many(const tool_args *t)
{
    uint64_t count = t->random ? t->random : 100;
    int64_t good = 0, bad = 0, refused = 0;

    for (uint64_t i = 0; i < count; i++) {
        sd_arena *a = sd_arena_create();
        bool made;
        sd_status st = check_random(a, t->seed + i, t->stage != NULL, &made);

        if (st && st->code == SD_UNIMPLEMENTED) {
            refused++;
        } else if (st) {
            printf("WRONG %" PRIu64 ": %s\n", t->seed + i, st->message);
            fflush(stdout);
            bad++;
        } else {
            good += made;
        }
        sd_status_free(st);
        sd_arena_destroy(a);
    }
    printf("%" PRId64 " equal, %" PRId64 " wrong, %" PRId64 " refused\n", good,
           bad, refused);
    *t->bad = bad > 0;
    return NULL;
}

sd_status tool_spmd(const tool_args *t)
{
    sd_arena *a;
    hlo_module *m;
    sd_status st = check_stage(t->stage);

    if (st || !t->nfile)
        return st ? st : check_many(t);
    a = sd_arena_create();
    st = tool_module(a, t->file[0], &m);
    if (!st && t->devices)
        set_participants(m, (int)t->devices);
    if (!st)
        st = t->check ? check(t, a, m)
                      : print_stage(m, t->stage ? t->stage : "spmd-local");
    sd_arena_destroy(a);
    return st;
}
