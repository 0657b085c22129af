/* Loading a program's kernels: PTX text, which the driver compiles for the
 * card, or a cubin, which it takes as it is. */
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

/* text ends with a NUL, as the driver wants it. */
static sd_status load_text(xpu_cuda *v, const char *text, cu_module *out)
{
    char *log = calloc(1, LOG_BYTES);
    int option[] = {CU_JIT_ERROR_LOG, CU_JIT_ERROR_LOG_BYTES};
    void *value[] = {log, (void *)(uintptr_t)(LOG_BYTES - 1)};
    sd_status st = NULL;
    cu_result err;

    if (!log)
        return sd_no_memory(LOG_BYTES);
    err = v->driver->api.ModuleLoadDataEx(out, text, SD_COUNTOF(option), option,
                                          value);
    if (err) {
        *out = NULL;
        st = build_failed(v, err, log);
    }
    free(log);
    return st;
}

static sd_status build(xpu_cuda *v, const thunk_binary *b, cu_module *out)
{
    char *text;
    sd_status st;

    if (b->kind != THUNK_BIN_PTX)
        return sd_error(SD_PRECONDITION, "a binary that is not PTX");
    if (!(text = malloc(b->bytes + 1)))
        return sd_no_memory(b->bytes + 1);
    memcpy(text, b->data, b->bytes);
    text[b->bytes] = 0;
    st = load_text(v, text, out);
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
    sd_status st;

    for (int i = 0; i < p->nbinary; i++)
        if ((st = build(v, &p->binary[i], &module[i])))
            return st;
    for (int i = 0; i < p->nkernel; i++)
        if ((st = find_kernel(v, &p->kernel[i], module[p->kernel[i].binary],
                              &fn[i])))
            return st;
    return NULL;
}
