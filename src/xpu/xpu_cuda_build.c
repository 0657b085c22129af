/* Loading a program's kernels: PTX text, which nvJitLink or the driver compiles
 * for the card, or a cubin, which the driver takes as it is. */
#include "xpu_cuda_api.h"

#include <stdlib.h>

#define LOG_BYTES 8192

/* The compiler's own words are the best part of the message. */
static sd_status build_failed(xpu_cuda *v, cu_result err, char *log)
{
    sd_status st = xpu_cuda_status(v->driver, v, err, "cuModuleLoadDataEx");

    for (char *s = log; *s; s++)
        if (*s != '\n' && (*s < ' ' || *s > '~'))
            *s = '?';
    if (!*log)
        return st;
    sd_status_free(st);
    return sd_error(SD_INTERNAL, "CUDA, cuModuleLoadDataEx, error %d: %s", err,
                    log);
}

sd_status xpu_cuda_load_image(xpu_cuda *v, const void *image, cu_module *out)
{
    char *log = calloc(1, LOG_BYTES);
    int option[] = {CU_JIT_ERROR_LOG, CU_JIT_ERROR_LOG_BYTES};
    void *value[] = {log, (void *)(uintptr_t)(LOG_BYTES - 1)};
    sd_status st = NULL;
    cu_result err;

    if (!log)
        return sd_no_memory(LOG_BYTES);
    err = v->driver->api.ModuleLoadDataEx(out, image, SD_COUNTOF(option),
                                          option, value);
    if (err) {
        *out = NULL;
        st = build_failed(v, err, log);
    }
    free(log);
    return st;
}

/* What the linker made of a text may be newer than the driver. */
static sd_status load(xpu_cuda *v, const char *text, const char *cubin,
                      cu_module *out)
{
    sd_status st;

    if (!cubin)
        return xpu_cuda_load_image(v, text, out);
    if (!(st = xpu_cuda_load_image(v, cubin, out)))
        return NULL;
    sd_log(SD_LOG_DEBUG, "nvJitLink's code is left alone: %s", st->message);
    sd_status_free(st);
    return xpu_cuda_load_image(v, text, out);
}

/* A NUL behind each, as the driver wants it. */
static sd_status copy_texts(const thunk_program *p, char **text)
{
    for (int i = 0; i < p->nbinary; i++) {
        const thunk_binary *b = &p->binary[i];

        if (b->kind != THUNK_BIN_PTX)
            return sd_error(SD_PRECONDITION, "a binary that is not PTX");
        if (!(text[i] = malloc(b->bytes + 1)))
            return sd_no_memory(b->bytes + 1);
        memcpy(text[i], b->data, b->bytes);
        text[i][b->bytes] = 0;
    }
    return NULL;
}

static sd_status load_all(xpu_cuda *v, const thunk_program *p,
                          cu_module *module)
{
    size_t n = (size_t)p->nbinary;
    char **text = calloc(n ? 2 * n : 1, sizeof *text), **cubin;
    sd_status st;

    if (!text)
        return sd_no_memory(2 * n * sizeof *text);
    cubin = text + n;
    if (!(st = copy_texts(p, text)))
        xpu_cuda_link(v, p, text, cubin);
    for (size_t i = 0; i < n && !st; i++)
        st = load(v, text[i], cubin[i], &module[i]);
    for (size_t i = 0; i < 2 * n; i++)
        free(text[i]);
    free(text);
    return st;
}

/* Local memory beyond what every kernel may have is asked for in the launch. */
static sd_status find_kernel(xpu_cuda *v, const thunk_kernel *k, cu_module m,
                             cu_function *out)
{
    const xpu_cuda_api *a = &v->driver->api;
    cu_result err = a->ModuleGetFunction(out, m, k->symbol);

    if (err) {
        *out = NULL;
        return sd_note(
            xpu_cuda_status(v->driver, v, err, "cuModuleGetFunction"), "%s",
            k->symbol);
    }
    if (k->local_bytes <= XPU_CUDA_STATIC_SHARED)
        return NULL;
    if (k->local_bytes > INT32_MAX)
        return sd_error(SD_PRECONDITION,
                        "%s asks for %" PRIu64 " bytes of local memory",
                        k->symbol, k->local_bytes);
    return sd_note(
        xpu_cuda_status(v->driver, v,
                        a->FuncSetAttribute(*out, CU_FN_DYNAMIC_SHARED,
                                            (int)k->local_bytes),
                        "cuFuncSetAttribute"),
        "%s, %" PRIu64 " bytes of local memory", k->symbol, k->local_bytes);
}

sd_status xpu_cuda_build(xpu_cuda *v, const thunk_program *p, cu_module *module,
                         cu_function *fn)
{
    sd_status st = load_all(v, p, module);

    if (st)
        return st;
    for (int i = 0; i < p->nkernel; i++)
        if ((st = find_kernel(v, &p->kernel[i], module[p->kernel[i].binary],
                              &fn[i])))
            return st;
    return NULL;
}
