/* run: compile for this machine, execute, print or save the results. */
#include <stdio.h>
#include <stdlib.h>

#include "sundog.h"

/* Small random values that suit every type, from --seed. */
static void fill_random(uint64_t *state, sd_dtype t, void *data, int64_t n)
{
    size_t size = sd_dtype_bytes(t);
    bool cplx = sd_is_complex(t);
    sd_dtype part = sd_dtype_part(t);

    if (cplx) {
        size /= 2;
        n *= 2;
    }
    for (int64_t i = 0; i < n; i++) {
        double u;

        *state = *state * 6364136223846793005u + 1442695040888963407u;
        u = (double)(*state >> 11) * 0x1p-53;
        if (sd_is_float(t) || cplx)
            sd_scalar_of_f64(part, 2 * u - 1, (char *)data + (size_t)i * size);
        else
            sd_scalar_of_s64(t, (int64_t)(u * (t == SD_PRED ? 2 : 10)),
                             (char *)data + (size_t)i * size);
    }
}

static void add_shape(sd_buf *b, sd_dtype t, int rank, const int64_t *dim)
{
    sd_buf_fmt(b, "%s[", sd_dtype_name(t));
    for (int i = 0; i < rank; i++)
        sd_buf_fmt(b, "%s%" PRId64, i ? "," : "", dim[i]);
    sd_buf_str(b, "]");
}

static sd_status refuse(const char *file, int i, sd_dtype t, int rank,
                        const int64_t *dim, const thunk_type *want)
{
    sd_buf is = {0}, takes = {0};
    sd_status st;

    add_shape(&is, t, rank, dim);
    add_shape(&takes, want->dtype, want->rank, want->dim);
    st = sd_error(SD_INVALID, "%s is %.*s, and parameter %d takes %.*s", file,
                  (int)is.len, is.at, i, (int)takes.len, takes.at);
    sd_buf_finish(&is);
    sd_buf_finish(&takes);
    return st;
}

static sd_status make_argument(const tool_args *t, xpu_device *d, int i,
                               const thunk_type *type, uint64_t *state,
                               xpu_buffer **out)
{
    sd_status st = NULL;
    sd_buf file = {0};
    void *data;

    if (t->nfile > 1 + i) {
        int64_t dim[SD_MAX_RANK];
        size_t at;
        sd_dtype dt;
        int rank;

        if ((st = npy_read(t->file[1 + i], &file, &at, &dt, &rank, dim)))
            return st;
        if (dt != type->dtype || rank != type->rank ||
            memcmp(dim, type->dim, (size_t)rank * sizeof *dim))
            st = refuse(t->file[1 + i], i, dt, rank, dim, type);
        else
            st = xpu_buffer_from_host(d, XPU_MEM_DEVICE, dt, rank, dim,
                                      file.at + at, NULL, true, out, NULL);
        sd_buf_finish(&file);
        return st;
    }
    if (!(data = calloc(1, type->bytes + 1)))
        return sd_no_memory(type->bytes);
    fill_random(state, type->dtype, data,
                (int64_t)(type->bytes / sd_dtype_bytes(type->dtype)));
    st = xpu_buffer_from_host(d, XPU_MEM_DEVICE, type->dtype, type->rank,
                              type->dim, data, NULL, true, out, NULL);
    free(data);
    return st;
}

static void print_value(const thunk_type *type, const uint8_t *data)
{
    int64_t n = (int64_t)(type->bytes / sd_dtype_bytes(type->dtype));
    sd_dtype part = sd_dtype_part(type->dtype);
    size_t size = sd_dtype_bytes(part);
    sd_buf shape = {0};

    add_shape(&shape, type->dtype, type->rank, type->dim);
    printf("%.*s", (int)shape.len, shape.at);
    sd_buf_finish(&shape);
    n *= part == type->dtype ? 1 : 2;
    for (int64_t i = 0; i < SD_MIN(n, 8); i++) {
        const uint8_t *p = data + (size_t)i * size;

        if (sd_is_float(part))
            printf(" %.9g", sd_scalar_to_f64(part, p));
        else
            printf(" %" PRId64, sd_scalar_to_s64(part, p));
    }
    printf("%s\n", n > 8 ? " ..." : "");
}

static sd_status take_result(const tool_args *t, int i, const thunk_type *type,
                             xpu_buffer *b)
{
    uint8_t *data = calloc(1, type->bytes + 1);
    xpu_event *done;
    char path[4096];
    sd_status st;

    if (!data)
        return sd_no_memory(type->bytes);
    if (!(st = xpu_buffer_to_host(b, 0, data, type->bytes, &done))) {
        st = xpu_event_wait(done);
        xpu_event_release(done);
    }
    if (!st && t->out) {
        snprintf(path, sizeof path, "%s%d.npy", t->out, i);
        st = npy_write(path, type->dtype, type->rank, type->dim, data,
                       type->bytes);
    } else if (!st) {
        print_value(type, data);
    }
    free(data);
    return st;
}

/* ---- --time: how long its steps take ---- */

typedef struct {
    const thunk *step;
    uint64_t ns;
    int64_t calls;
} timed;
typedef struct {
    timed *at;
    int n, cap;
    bool oom;
} times;

static void add_time(void *ctx, const xpu_step *s)
{
    times *t = ctx;
    int i = 0;

    if (s->step->nseq) /* its own steps are told, too */
        return;
    while (i < t->n && t->at[i].step != s->step)
        i++;
    if (i == t->cap) {
        int cap = 2 * t->cap + 64;
        timed *at = realloc(t->at, (size_t)cap * sizeof *at);

        if (!at) {
            t->oom = true;
            return;
        }
        t->at = at;
        t->cap = cap;
    }
    if (i == t->n)
        t->at[t->n++] = (timed){.step = s->step};
    t->at[i].ns += s->until - s->from;
    t->at[i].calls++;
}

static int longest_first(const void *a, const void *b)
{
    const timed *x = a, *y = b;

    return (x->ns < y->ns) - (x->ns > y->ns);
}

static void print_times(times *t, int runs)
{
    double all = 0;

    qsort(t->at, (size_t)t->n, sizeof *t->at, longest_first);
    for (int i = 0; i < t->n; i++)
        all += (double)t->at[i].ns;
    printf("%.3f ms a run in %d %s (%d runs)\n"
           "      ms     %%  calls    GB/s  GFLOP/s\n",
           all / runs / 1e6, t->n, t->n == 1 ? "step" : "steps", runs);
    for (int i = 0; i < t->n; i++) {
        const timed *x = &t->at[i];
        const thunk *k = x->step;
        double each = (double)SD_MAX(x->ns, 1) / (double)x->calls;

        printf("%8.3f %5.1f %6.6g %7.1f %8.1f  %s %s\n",
               (double)x->ns / runs / 1e6, 100 * (double)x->ns / SD_MAX(all, 1),
               (double)x->calls / runs, k->bytes / each, k->flops / each,
               k->name ? k->name : thunk_kind_name[k->kind],
               k->op_name ? k->op_name : "");
    }
}

static sd_status run_once(xpu_program *x, const xpu_call *call,
                          xpu_buffer **out)
{
    xpu_event *done;
    sd_status st = xpu_execute(x, call, out, &done);

    if (st)
        return st;
    st = xpu_event_wait(done);
    xpu_event_release(done);
    return st;
}

static void release_all(xpu_buffer **b, int n)
{
    for (int i = 0; b && i < n; i++) {
        if (b[i])
            xpu_buffer_release(b[i]);
        b[i] = NULL;
    }
}

/* After a first run that is not told: for a second, and once at least. */
static sd_status time_runs(xpu_program *x, xpu_call call, xpu_buffer **out,
                           int nout)
{
    enum { MOST = 100, ENOUGH = 1000000000 };
    times t = {0};
    sd_status st = run_once(x, &call, out);
    uint64_t from = sd_now_ns();
    int runs = 0;

    call.listener = (xpu_listener){add_time, &t};
    while (!st && runs < MOST && (!runs || sd_now_ns() - from < ENOUGH)) {
        release_all(out, nout);
        st = run_once(x, &call, out);
        runs++;
    }
    if (!st && t.oom)
        st = sd_no_memory(0);
    if (!st)
        print_times(&t, runs);
    free(t.at);
    return st;
}

/* ---- a run ---- */

static sd_status run_loaded(const tool_args *t, xpu_program *x,
                            const xpu_call *call, xpu_buffer **out,
                            const thunk_program *tp)
{
    sd_status st = t->time ? time_runs(x, *call, out, tp->noutput)
                           : run_once(x, call, out);

    if (t->time && !t->out)
        return st;
    for (int i = 0; !st && i < tp->noutput; i++)
        st = take_result(t, i, &tp->output[i], out[i]);
    return st;
}

static sd_status execute(const tool_args *t, xpu_device *d, thunk_program *tp)
{
    size_t n = (size_t)tp->nparam + 1;
    xpu_buffer **arg = calloc(n, sizeof *arg);
    xpu_buffer **out = calloc((size_t)tp->noutput + 1, sizeof *out);
    bool *keep = malloc(n * sizeof *keep); /* for the next run */
    xpu_call call = {.arg = arg, .narg = tp->nparam, .keep = keep};
    xpu_program *xp = NULL;
    uint64_t state = t->seed;
    sd_status st = arg && out && keep ? NULL : sd_no_memory(sizeof *arg);

    if (!st && t->nfile - 1 > tp->nparam)
        st = sd_error(SD_INVALID, "%s: parameters: %d, and files for them: %d",
                      tp->name, tp->nparam, t->nfile - 1);
    for (int i = 0; !st && i < tp->nparam; i++) {
        keep[i] = t->time;
        st = make_argument(t, d, i, &tp->param[i], &state, &arg[i]);
    }
    if (!st && !(st = xpu_program_load(d, tp, &xp)))
        st = run_loaded(t, xp, &call, out, tp);
    release_all(arg, tp->nparam);
    release_all(out, tp->noutput);
    if (xp)
        xpu_program_release(xp);
    free(arg);
    free(out);
    free(keep);
    return st;
}

sd_status tool_run(const tool_args *t)
{
    sd_options o = {0};
    sd_buf bytes = {0};
    xpu_client *c = NULL;
    thunk_program *tp = NULL;
    compile_services sv = {.env = &o};
    compile_request rq = {0};
    compile_fn compile;
    sd_status st;

    sd_options_from_env(&o);
    if ((st = tool_read(t->file[0], &bytes, &rq.format)) ||
        (st = tool_compiler(&compile)) || (st = xpu_client_create(&o, &c)))
        goto done;
    rq.format_len = strlen(rq.format);
    rq.program = (sd_bytes){(uint8_t *)bytes.at, bytes.len};
    rq.device = xpu_device_desc(xpu_client_device(c, 0));
    sv.pool = xpu_client_pool(c);
    if (!(st = compile(&rq, &sv, &tp)))
        st = execute(t, xpu_client_device(c, 0), tp);
done:
    thunk_program_release(tp);
    if (c)
        xpu_client_destroy(c);
    sd_buf_finish(&bytes);
    return st;
}
