/* One program: compiled, executed, and its results held against the
 * evaluator's. */
#include "selftest.h"

#include "random.h"
#include "ref.h"

#include <stdlib.h>

enum { MOST_ARGS = 16 };

sd_status selftest_wait(xpu_event *done)
{
    sd_status st = xpu_event_wait(done);

    xpu_event_release(done);
    return st;
}

sd_status selftest_take(xpu_buffer *b, void *to)
{
    xpu_event *done;
    sd_status st = xpu_buffer_to_host(b, 0, to, xpu_buffer_bytes(b), &done);

    return st ? st : selftest_wait(done);
}

sd_status selftest_give(selftest *s, sd_dtype t, int rank, const int64_t *dim,
                        const void *data, xpu_buffer **out)
{
    return xpu_buffer_from_host(s->device, XPU_MEM_DEVICE, t, rank, dim, data,
                                NULL, true, out, NULL);
}

sd_status selftest_execute(xpu_program *x, int narg, xpu_buffer *const *arg,
                           xpu_buffer **out)
{
    xpu_call call = {.arg = arg, .narg = narg};
    xpu_event *done;
    sd_status st = xpu_execute(x, &call, out, &done);

    return st ? st : selftest_wait(done);
}

sd_status selftest_compile(selftest *s, const char *text, size_t len,
                           bool apart, thunk_program **out)
{
    sd_options env = s->options;
    compile_services sv = {.env = &env, .pool = xpu_client_pool(s->client)};
    compile_request rq = {
        .program = {(const uint8_t *)text, len},
        .format = "hlo_text",
        .format_len = strlen("hlo_text"),
        .device = xpu_device_desc(s->device),
    };

    sd_status st;

    if (apart)
        env.value[SD_OPT_FUSE] = "0";
    s->page->here = true;
    st = s->compile(&rq, &sv, out);
    s->page->here = false;
    return st;
}

sd_status selftest_load(selftest *s, const char *text, xpu_program **out)
{
    thunk_program *t = NULL;
    sd_status st = selftest_compile(s, text, strlen(text), false, &t);

    if (!st)
        st = xpu_program_load(s->device, t, out);
    thunk_program_release(t);
    return st;
}

/* ---- against the evaluator ---- */

typedef struct {
    selftest *s;
    const selftest_program *p;
    sd_arena *a;
    hlo_value arg[MOST_ARGS], want;
    int narg, nout;
} run;

static sd_status evaluate(run *r)
{
    hlo_module *m;
    sd_status st = hlo_parse(r->a, r->p->text, r->p->len, &m);

    if (st || (st = hlo_verify(m)))
        return st;
    r->narg = m->entry->nparam;
    if (r->narg > MOST_ARGS)
        return sd_error(SD_UNIMPLEMENTED, "%d arguments", r->narg);
    for (int i = 0; i < r->narg; i++) {
        const hlo_inst *p = m->entry->param[i];

        r->arg[i] = hlo_value_make(r->a, p->shape);
        r->p->fill(&r->arg[i], p->name, i);
    }
    st = ref_eval(r->a, m->entry, r->arg, r->narg, &r->want);
    r->nout = r->want.elem ? r->want.shape->nelem : 1;
    return sd_note(st, "evaluator");
}

static const hlo_value *wanted(const run *r, int i)
{
    return r->want.elem ? &r->want.elem[i] : &r->want;
}

static sd_status compare(const run *r, xpu_buffer *const *out)
{
    sd_buf why = {0};
    sd_status st = NULL;

    for (int i = 0; i < r->nout && !st; i++) {
        const hlo_value *want = wanted(r, i);
        hlo_value got = hlo_value_make(r->a, want->shape);

        if (!(st = selftest_take(out[i], got.data)) &&
            r->p->differs(r->p->ctx, i, &got, want, &why))
            st = sd_error(SD_DATA_LOSS, "%.*s", (int)why.len,
                          why.at ? why.at : "");
    }
    sd_buf_finish(&why);
    return st;
}

static sd_status execute(const run *r, thunk_program *t)
{
    xpu_buffer *in[MOST_ARGS] = {0};
    xpu_buffer **out = sd_arena_array(r->a, xpu_buffer *, r->nout);
    xpu_program *x = NULL;
    sd_status st = xpu_program_load(r->s->device, t, &x);

    for (int i = 0; i < r->narg && !st; i++) {
        const sd_shape *s = r->arg[i].shape;

        st = selftest_give(r->s, s->dtype, s->rank, s->dim, r->arg[i].data,
                           &in[i]);
    }
    if (!st && !(st = selftest_execute(x, r->narg, in, out)))
        st = compare(r, out);
    for (int i = 0; i < r->narg; i++)
        if (in[i])
            xpu_buffer_release(in[i]);
    for (int i = 0; i < r->nout; i++)
        if (out[i])
            xpu_buffer_release(out[i]);
    if (x)
        xpu_program_release(x);
    return st;
}

static sd_status compare_in(void *ctx)
{
    run *r = ctx;
    thunk_program *t = NULL;
    sd_status st;

    r->s->page->here = true;
    st = evaluate(r);
    r->s->page->here = false;
    if (!st)
        st = selftest_compile(r->s, r->p->text, r->p->len, r->p->apart, &t);
    if (!st)
        st = execute(r, t);
    thunk_program_release(t);
    return st;
}

sd_status selftest_compare(selftest *s, const selftest_program *p)
{
    run r = {.s = s, .p = p, .a = sd_arena_create()};
    sd_status st = sd_catch_oom(compare_in, &r);

    sd_arena_destroy(r.a);
    return st;
}

/* ---- texts that say their errors ---- */

typedef struct {
    const char *device;
    const double *error;
} limits;

static bool is_beyond(void *ctx, int out, const hlo_value *got,
                      const hlo_value *want, sd_buf *why)
{
    const limits *l = ctx;
    double error = out < RANDOM_RESULTS ? l->error[out] : 0;

    return random_differs(l->device, out, got, want, error, why);
}

static sd_status compare_text(selftest *s, const char *text, size_t len)
{
    sd_arena *a = sd_arena_create();
    limits l = {xpu_device_desc(s->device)->name, random_errors(a, text, len)};
    selftest_program p = {.text = text,
                          .len = len,
                          .fill = random_fill,
                          .differs = is_beyond,
                          .ctx = &l};
    sd_status st = selftest_compare(s, &p);

    sd_arena_destroy(a);
    return st;
}

/* ---- the classes that are programs alone ---- */

/* Each begins with the line of its errors. */
static const char head[] = "// error:";

void selftest_programs(selftest *s, const char *text)
{
    while ((text = strstr(text, head))) {
        const char *name = strstr(text, "HloModule ");
        const char *next = strstr(text + 1, head);
        size_t len = next ? (size_t)(next - text) : strlen(text);

        name += strlen("HloModule ");
        if (selftest_begin(s, "%.*s", (int)strcspn(name, " ,\n"), name))
            selftest_end(s, compare_text(s, text, len));
        text += len;
    }
}

/* Made from seeds, as long as there is time. */
void selftest_random(selftest *s, const char *text)
{
    (void)text;
    for (uint64_t seed = 1; sd_now_ns() < s->until && seed <= 2000; seed++)
        if (selftest_begin(s, "random program %" PRIu64, seed)) {
            sd_arena *a = sd_arena_create();
            sd_buf hlo = {0};

            random_module(a, seed, &hlo);
            selftest_end(s, compare_text(s, hlo.at, hlo.len));
            sd_buf_finish(&hlo);
            sd_arena_destroy(a);
        }
}
