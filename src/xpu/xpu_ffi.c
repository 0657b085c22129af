/* Typed foreign calls: what a handler gets to see of a custom-call, and when.
 * A program's sites are made when it is loaded, which is when attributes are
 * read and handlers instantiated; a run fills in addresses. */
#include "xpu_ffi.h"

#include <fenv.h>
#include <stdlib.h>

/* ---- one call ---- */

static sd_status call_handler(XLA_FFI_InvokeContext *ctx)
{
    xpu_ffi_site *s = ctx->site;
    XLA_FFI_ExecutionStage stage = ctx->stage;
    bool buffers = stage != XLA_FFI_ExecutionStage_INSTANTIATE;
    XLA_FFI_CallFrame f = {.struct_size = XLA_FFI_CallFrame_STRUCT_SIZE,
                           .api = &xpu_ffi_api,
                           .ctx = ctx,
                           .stage = stage,
                           .args = {.struct_size = XLA_FFI_Args_STRUCT_SIZE,
                                    .size = buffers ? s->narg : 0,
                                    .types = s->arg_type,
                                    .args = s->pointer},
                           .rets = {.struct_size = XLA_FFI_Rets_STRUCT_SIZE,
                                    .size = buffers ? s->nret : 0,
                                    .types = s->ret_type,
                                    .rets = s->pointer + s->narg},
                           .attrs = s->attrs};
    sd_status st = xpu_ffi_status(s->stage[stage](&f));

    return f.future ? sd_first(st, xpu_ffi_await(f.future)) : st;
}

/* While a program is loaded another may run: no stream is lent then. */
static sd_status call_stage(xpu_ffi *x, xpu_ffi_site *s,
                            XLA_FFI_ExecutionStage stage, const xpu_run *run)
{
    XLA_FFI_InvokeContext ctx = {
        .dev = x->dev, .ffi = x, .site = s, .stage = stage, .run = run};
    const xpu_device_ops *ops = x->dev->ops;
    sd_status st = run ? ops->lend(x->dev, &ctx.stream) : NULL;

    if (!st) {
        st = call_handler(&ctx);
        st = sd_first(st, run ? ops->reclaim(x->dev) : NULL);
    }
    return sd_note(st, "custom-call %s", s->t->target);
}

static void set_addresses(const xpu_run *r, xpu_ffi_site *s)
{
    for (int i = 0; i < s->narg + s->nret; i++) {
        const thunk_slice *at = &s->t->arg[i];

        s->buffer[i].data = s->buffer[i].dtype == XLA_FFI_DataType_TOKEN
                                ? NULL
                                : r->base[at->buffer] + at->offset;
    }
}

/* ---- state ---- */

static void drop_state(xpu_ffi_site *s, XLA_FFI_ExecutionStage stage)
{
    xpu_ffi_state *state = &s->state[stage];
    void (*deleter)(void *) = xpu_ffi_deleter(state->type);

    if (state->data && deleter)
        deleter(state->data);
    *state = (xpu_ffi_state){0};
}

/* ---- a run ---- */

static sd_status call_all(const xpu_run *r, XLA_FFI_ExecutionStage stage)
{
    xpu_ffi *x = r->program->ffi;
    sd_status st = NULL;

    for (int i = 0; i < x->n && !st; i++)
        if (x->site[i].stage && x->site[i].stage[stage])
            st = call_stage(x, &x->site[i], stage, r);
    return st;
}

sd_status xpu_ffi_begin(const xpu_run *r)
{
    xpu_ffi *x = r->program->ffi;
    sd_status st;

    if (!x->prepares)
        return NULL;
    for (int i = 0; i < x->n; i++)
        set_addresses(r, &x->site[i]);
    st = call_all(r, XLA_FFI_ExecutionStage_PREPARE);
    return st ? st : call_all(r, XLA_FFI_ExecutionStage_INITIALIZE);
}

void xpu_ffi_end(const xpu_run *r)
{
    xpu_ffi *x = r->program->ffi;

    for (int i = 0; x->prepares && i < x->n; i++) {
        drop_state(&x->site[i], XLA_FFI_ExecutionStage_PREPARE);
        drop_state(&x->site[i], XLA_FFI_ExecutionStage_INITIALIZE);
    }
}

static int by_thunk(const void *key, const void *site)
{
    uintptr_t x = (uintptr_t)key,
              y = (uintptr_t)((const xpu_ffi_site *)site)->t;

    return (x > y) - (x < y);
}

sd_status xpu_run_custom(const xpu_run *r, const thunk *t)
{
    xpu_ffi *x = r->program->ffi;
    xpu_ffi_site *s =
        bsearch(t, x->site, (size_t)x->n, sizeof *x->site, by_thunk);

    if (s->kernel) {
        for (int i = 0, n = 0; i < t->narg; i++)
            if (s->buffer[i].dtype != XLA_FFI_DataType_TOKEN)
                s->kernel_ptr[n++] =
                    r->base[t->arg[i].buffer] + t->arg[i].offset;
        return sd_note(
            x->dev->ops->kernel_launch(x->dev, s->kernel, s->kernel_ptr),
            "kernel %s", s->kernel_name);
    }
    set_addresses(r, s);
    return call_stage(x, s, XLA_FFI_ExecutionStage_EXECUTE, r);
}

/* ---- loading ---- */

static void *get(xpu_ffi *x, size_t n, size_t size)
{
    return sd_arena_try(x->arena, SD_MAX(n, (size_t)1) * size);
}

/* Element types and dimensions, from the numbers of the step. */
static sd_status read_types(xpu_ffi *x, xpu_ffi_site *s)
{
    const int64_t *at = s->t->attr;
    size_t n = (size_t)s->t->narg;

    s->narg = (int)at[0];
    s->nret = s->t->narg - s->narg;
    s->buffer = get(x, n, sizeof *s->buffer);
    s->pointer = get(x, n, sizeof *s->pointer);
    s->arg_type = get(x, n, sizeof *s->arg_type);
    s->ret_type = get(x, n, sizeof *s->ret_type);
    if (!s->buffer || !s->pointer || !s->arg_type || !s->ret_type)
        return sd_no_memory(n * sizeof *s->buffer);
    at++;
    for (size_t i = 0; i < n; i++) {
        s->buffer[i] = (XLA_FFI_Buffer){
            .struct_size = XLA_FFI_Buffer_STRUCT_SIZE,
            .dtype = (XLA_FFI_DataType)at[0],
            .rank = at[1],
            .dims = (int64_t *)(uintptr_t)(at + 2)}; /* not written to */
        s->pointer[i] = &s->buffer[i];
        s->arg_type[i] = XLA_FFI_ArgType_BUFFER;
        s->ret_type[i] = XLA_FFI_RetType_BUFFER;
        at += 2 + at[1];
    }
    return NULL;
}

static bool is_kernel(const xpu_ffi_site *s)
{
    return strcmp(s->t->target,
                  device_custom_table[DEVICE_CUSTOM_KERNEL].name) == 0;
}

static bool find_stages(const xpu_device *d, xpu_ffi *x, xpu_ffi_site *s)
{
    const char *target = s->t->target;
    const xpu_ffi_handler *h;
    XLA_FFI_Handler **own;

    if (is_kernel(s))
        return true;
    if (device_has_custom(d->desc.kind, target)) {
        if ((own = get(x, XPU_FFI_STAGES, sizeof *own)))
            own[XLA_FFI_ExecutionStage_EXECUTE] = xpu_ffi_builtin(target);
        s->stage = own;
        return own != NULL;
    }
    h = xpu_ffi_find(target, d->desc.kind);
    if (!h)
        return false;
    s->stage = h->stage;
    x->prepares |= h->stage[XLA_FFI_ExecutionStage_PREPARE] ||
                   h->stage[XLA_FFI_ExecutionStage_INITIALIZE];
    return true;
}

static int count(const thunk_seq *seq)
{
    int n = 0;

    for (int i = 0; i < seq->n; i++) {
        n += seq->at[i].kind == THUNK_CUSTOM;
        for (int k = 0; k < seq->at[i].nseq; k++)
            n += count(&seq->at[i].seq[k]);
    }
    return n;
}

static void collect(xpu_ffi *x, const thunk_seq *seq)
{
    for (int i = 0; i < seq->n; i++) {
        if (seq->at[i].kind == THUNK_CUSTOM)
            x->site[x->n++].t = &seq->at[i];
        for (int k = 0; k < seq->at[i].nseq; k++)
            collect(x, &seq->at[i].seq[k]);
    }
}

static int compare_sites(const void *a, const void *b)
{
    return by_thunk(((const xpu_ffi_site *)a)->t, b);
}

/* All that are missing, in one message. */
static sd_status find_all(xpu_ffi *x)
{
    bool is_host = x->dev->desc.kind == DEVICE_HOST;
    sd_buf missing = {0}, known = {0};
    sd_status st = NULL;

    for (int i = 0; i < x->n; i++)
        if (!find_stages(x->dev, x, &x->site[i]))
            sd_buf_fmt(&missing, "%s%s", missing.len ? ", " : "",
                       x->site[i].t->target);
    if (missing.len) {
        xpu_ffi_names(&known, x->dev->desc.kind);
        st = sd_error(SD_NOT_FOUND,
                      "no handler for custom-call target %.*s on %s; there "
                      "are: %.*s.  Register it with "
                      "jax.ffi.register_ffi_target(name, capsule, "
                      "platform=\"xpu%s%s\")",
                      (int)missing.len, missing.at, x->dev->desc.name,
                      (int)known.len, known.at ? known.at : "",
                      is_host ? "" : ":",
                      is_host ? "" : device_kind_table[x->dev->desc.kind].name);
    }
    sd_buf_finish(&missing);
    sd_buf_finish(&known);
    return st;
}

/* Frameworks call with subnormals flushed to zero; attributes keep theirs. */
static sd_status read_attrs(xpu_ffi *x, xpu_ffi_site *s)
{
    fenv_t caller;
    sd_status st;

    fegetenv(&caller);
    fesetenv(FE_DFL_ENV);
    st = xpu_ffi_read_attrs(x->arena, s->t->config, &s->attrs);
    fesetenv(&caller);
    return st;
}

static sd_status make_kernel(xpu_ffi *x, xpu_ffi_site *s)
{
    xpu_kernel_source *k;
    int n = 0;
    sd_status st;

    for (int i = 0; i < s->narg + s->nret; i++)
        n += s->buffer[i].dtype != XLA_FFI_DataType_TOKEN;
    if (!x->dev->ops->kernel_make)
        return sd_error(SD_UNIMPLEMENTED,
                        "device %d (%s) takes no kernels by source", x->dev->id,
                        x->dev->desc.name);
    if (!(s->kernel_ptr = get(x, (size_t)n, sizeof *s->kernel_ptr)))
        return sd_no_memory((size_t)n * sizeof *s->kernel_ptr);
    st = xpu_ffi_read_kernel(x->arena, &s->attrs, &x->dev->desc, n,
                             &s->kernel_name, &k);
    if (!st)
        st = x->dev->ops->kernel_make(x->dev, k, &s->kernel);
    return sd_note(st, "kernel %s", s->kernel_name ? s->kernel_name : "?");
}

static sd_status make_site(xpu_ffi *x, xpu_ffi_site *s)
{
    sd_status st;

    if ((st = read_types(x, s)) || (st = read_attrs(x, s)))
        return sd_note(st, "custom-call %s", s->t->target);
    if (is_kernel(s))
        return make_kernel(x, s);
    if (!s->stage[XLA_FFI_ExecutionStage_INSTANTIATE])
        return NULL;
    return call_stage(x, s, XLA_FFI_ExecutionStage_INSTANTIATE, NULL);
}

sd_status xpu_ffi_load(xpu_program *p)
{
    int n = count(&p->thunks->seq);
    sd_arena *a;
    xpu_ffi *x;
    sd_status st;

    if (!n)
        return NULL;
    if (!(a = sd_arena_create_try()) || !(x = sd_arena_try(a, sizeof *x))) {
        sd_arena_destroy(a);
        return sd_no_memory(sizeof *x);
    }
    p->ffi = x;
    x->arena = a;
    x->dev = p->dev;
    if (!(x->site = get(x, (size_t)n, sizeof *x->site)))
        return sd_no_memory((size_t)n * sizeof *x->site);
    collect(x, &p->thunks->seq);
    qsort(x->site, (size_t)n, sizeof *x->site, compare_sites);
    st = find_all(x);
    for (int i = 0; i < n && !st; i++)
        st = make_site(x, &x->site[i]);
    return st;
}

void xpu_ffi_unload(xpu_ffi *x)
{
    if (!x)
        return;
    for (int i = 0; i < x->n; i++) {
        drop_state(&x->site[i], XLA_FFI_ExecutionStage_INSTANTIATE);
        if (x->site[i].kernel)
            x->dev->ops->kernel_drop(x->dev, x->site[i].kernel);
    }
    xpu_ffi_drop_memory(x);
    sd_arena_destroy(x->arena);
}
