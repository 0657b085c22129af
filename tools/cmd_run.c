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
            st = sd_error(SD_INVALID,
                          "%s is not what parameter %d takes "
                          "(%s of rank %d)",
                          t->file[1 + i], i, sd_dtype_name(type->dtype),
                          type->rank);
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

    printf("%s[", sd_dtype_name(type->dtype));
    for (int i = 0; i < type->rank; i++)
        printf("%s%" PRId64, i ? "," : "", type->dim[i]);
    printf("]");
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

static sd_status execute(const tool_args *t, xpu_device *d, thunk_program *tp)
{
    xpu_buffer **arg = calloc((size_t)tp->nparam + 1, sizeof *arg);
    xpu_buffer **out = calloc((size_t)tp->noutput + 1, sizeof *out);
    xpu_call call = {.arg = arg, .narg = tp->nparam};
    xpu_program *xp = NULL;
    xpu_event *done = NULL;
    uint64_t state = t->seed;
    sd_status st = arg && out ? NULL : sd_no_memory(sizeof *arg);

    for (int i = 0; !st && i < tp->nparam; i++)
        st = make_argument(t, d, i, &tp->param[i], &state, &arg[i]);
    if (!st && !(st = xpu_program_load(d, tp, &xp)) &&
        !(st = xpu_execute(xp, &call, out, &done)))
        st = xpu_event_wait(done);
    for (int i = 0; !st && i < tp->noutput; i++)
        st = take_result(t, i, &tp->output[i], out[i]);
    for (int i = 0; arg && i < tp->nparam; i++)
        if (arg[i])
            xpu_buffer_release(arg[i]);
    for (int i = 0; out && i < tp->noutput; i++)
        if (out[i])
            xpu_buffer_release(out[i]);
    if (done)
        xpu_event_release(done);
    if (xp)
        xpu_program_release(xp);
    free(arg);
    free(out);
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
