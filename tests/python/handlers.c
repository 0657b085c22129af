/* Handlers for test_ffi.py, by the facts of abi/ffi.tsv alone.  MINOR: the FFI
 * that they say they were compiled for. */
#include "ffi_abi.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef MINOR
#define MINOR XLA_FFI_API_MINOR
#endif

/* ---- what every handler needs ---- */

/* True: the caller asked what this handler is, and has been told. */
static int told(XLA_FFI_CallFrame *f)
{
    for (XLA_FFI_InternalExtension *e = f->extension_start; e; e = e->next)
        if (e->type == XLA_FFI_Extension_Metadata) {
            XLA_FFI_Metadata *m = ((XLA_FFI_Metadata_Extension *)e)->metadata;

            m->api_version.major_version = XLA_FFI_API_MAJOR;
            m->api_version.minor_version = MINOR;
            m->traits = 0;
            return 1;
        }
    return 0;
}

static XLA_FFI_Error *error(XLA_FFI_CallFrame *f, XLA_FFI_Error_Code code,
                            const char *text)
{
    XLA_FFI_Error_Create_Args a = {XLA_FFI_Error_Create_Args_STRUCT_SIZE, NULL,
                                   text, code};

    return f->api->XLA_FFI_Error_Create(&a);
}

static XLA_FFI_Buffer *arg(XLA_FFI_CallFrame *f, int i)
{
    return f->args.args[i];
}

static XLA_FFI_Buffer *ret(XLA_FFI_CallFrame *f, int i)
{
    return f->rets.rets[i];
}

static int64_t count(const XLA_FFI_Buffer *b)
{
    int64_t n = 1;

    for (int64_t i = 0; i < b->rank; i++)
        n *= b->dims[i];
    return n;
}

static void *attr(XLA_FFI_CallFrame *f, const char *name)
{
    for (int64_t i = 0; i < f->attrs.size; i++)
        if (f->attrs.names[i]->len == strlen(name) &&
            !memcmp(f->attrs.names[i]->ptr, name, strlen(name)))
            return f->attrs.attrs[i];
    return NULL;
}

/* ---- values ---- */

/* Elements in the order of memory times 1, 2, 3, ... */
XLA_FFI_Error *number(XLA_FFI_CallFrame *f)
{
    if (told(f))
        return NULL;
    for (int64_t i = 0; i < count(arg(f, 0)); i++)
        ((float *)ret(f, 0)->data)[i] =
            ((float *)arg(f, 0)->data)[i] * (float)(i + 1);
    return NULL;
}

/* Addresses of all buffers as u64, into the last result. */
XLA_FFI_Error *addresses(XLA_FFI_CallFrame *f)
{
    int64_t n = 0;

    if (told(f))
        return NULL;
    uint64_t *to = ret(f, (int)f->rets.size - 1)->data;

    for (int i = 0; i < f->args.size; i++)
        to[n++] = (uintptr_t)arg(f, i)->data;
    for (int i = 0; i < f->rets.size; i++)
        to[n++] = (uintptr_t)ret(f, i)->data;
    return NULL;
}

/* One is added in place, where result 0 lies over argument 0. */
XLA_FFI_Error *add_one(XLA_FFI_CallFrame *f)
{
    float *x;

    if (told(f))
        return NULL;
    x = ret(f, 0)->data;
    if (x != arg(f, 0)->data)
        return error(f, XLA_FFI_Error_Code_INTERNAL, "not in place");
    for (int64_t i = 0; i < count(ret(f, 0)); i++)
        x[i]++;
    return NULL;
}

/* Types, dimensions and sizes of everything, as text. */
static char *put_attrs(char *at, const XLA_FFI_Attrs *a)
{
    for (int64_t i = 0; i < a->size; i++) {
        XLA_FFI_Array *x = a->attrs[i];
        XLA_FFI_Scalar *s = a->attrs[i];
        XLA_FFI_ByteSpan *t = a->attrs[i];

        at += sprintf(at, "%.*s", (int)a->names[i]->len, a->names[i]->ptr);
        if (a->types[i] == XLA_FFI_AttrType_SCALAR)
            at += sprintf(at, "=%d;", (int)s->dtype);
        else if (a->types[i] == XLA_FFI_AttrType_STRING)
            at += sprintf(at, "='%.*s';", (int)t->len, t->ptr);
        else if (a->types[i] == XLA_FFI_AttrType_ARRAY)
            at += sprintf(at, "=%d[%zu];", (int)x->dtype, x->size);
        else
            at = put_attrs(at + sprintf(at, "={"), a->attrs[i]) +
                 sprintf(at, "%s", "");
    }
    return at;
}

XLA_FFI_Error *describe(XLA_FFI_CallFrame *f)
{
    char text[4096], *at = text;

    if (told(f))
        return NULL;
    for (int i = 0; i < f->args.size; i++) {
        at += sprintf(at, "%d(", (int)arg(f, i)->dtype);
        for (int64_t k = 0; k < arg(f, i)->rank; k++)
            at += sprintf(at, "%d,", (int)arg(f, i)->dims[k]);
        at += sprintf(at, ")");
    }
    at = put_attrs(at, &f->attrs);
    memset(ret(f, 0)->data, 0, (size_t)count(ret(f, 0)));
    memcpy(ret(f, 0)->data, text, (size_t)(at - text));
    return NULL;
}

/* The bytes of attribute `x`, an array or a scalar. */
XLA_FFI_Error *bytes(XLA_FFI_CallFrame *f)
{
    if (told(f))
        return NULL;
    if (f->attrs.types[0] == XLA_FFI_AttrType_SCALAR)
        memcpy(ret(f, 0)->data, ((XLA_FFI_Scalar *)attr(f, "x"))->value,
               (size_t)count(ret(f, 0)));
    else
        memcpy(ret(f, 0)->data, ((XLA_FFI_Array *)attr(f, "x"))->data,
               (size_t)count(ret(f, 0)));
    return NULL;
}

XLA_FFI_Error *fail(XLA_FFI_CallFrame *f)
{
    XLA_FFI_ByteSpan *text;
    char copy[100];

    if (told(f))
        return NULL;
    text = attr(f, "text");
    snprintf(copy, sizeof copy, "%.*s", (int)text->len, text->ptr);
    return error(f, XLA_FFI_Error_Code_DATA_LOSS, copy);
}

/* ---- stages ---- */

typedef struct {
    int64_t factor, executed;
} state;

static XLA_FFI_TypeId state_type, run_type;
_Atomic int64_t alive; /* states that were not deleted yet */

static void free_state(void *p)
{
    alive--;
    free(p);
}

static XLA_FFI_TypeInfo info = {XLA_FFI_TypeInfo_STRUCT_SIZE, NULL, free_state};
XLA_FFI_TypeId *state_type_id(void)
{
    return &state_type;
}
XLA_FFI_TypeId *run_type_id(void)
{
    return &run_type;
}
XLA_FFI_TypeInfo *state_type_info(void)
{
    return &info;
}
int64_t states_alive(void)
{
    return alive;
}

static XLA_FFI_Error *set(XLA_FFI_CallFrame *f, XLA_FFI_ExecutionStage stage,
                          XLA_FFI_TypeId *type, int64_t factor)
{
    state *s = calloc(1, sizeof *s);
    XLA_FFI_State_Set_Args a = {
        XLA_FFI_State_Set_Args_STRUCT_SIZE, NULL, f->ctx, stage, type, s};

    s->factor = factor;
    alive++;
    return f->api->XLA_FFI_State_Set(&a);
}

static state *get(XLA_FFI_CallFrame *f, XLA_FFI_ExecutionStage stage,
                  XLA_FFI_TypeId *type)
{
    XLA_FFI_State_Get_Args a = {
        XLA_FFI_State_Get_Args_STRUCT_SIZE, NULL, f->ctx, stage, type, NULL};
    XLA_FFI_Error *e = f->api->XLA_FFI_State_Get(&a);
    XLA_FFI_Error_Destroy_Args d = {XLA_FFI_Error_Destroy_Args_STRUCT_SIZE,
                                    NULL, e};

    if (!e)
        return a.state;
    f->api->XLA_FFI_Error_Destroy(&d);
    return NULL;
}

XLA_FFI_Error *instantiate(XLA_FFI_CallFrame *f)
{
    int64_t factor;

    if (told(f))
        return NULL;
    factor = *(int64_t *)((XLA_FFI_Scalar *)attr(f, "factor"))->value;
    if (factor < 0)
        return error(f, XLA_FFI_Error_Code_INVALID_ARGUMENT, "factor below 0");
    return set(f, XLA_FFI_ExecutionStage_INSTANTIATE, &state_type, factor);
}

XLA_FFI_Error *prepare(XLA_FFI_CallFrame *f)
{
    return told(f) ? NULL
                   : set(f, XLA_FFI_ExecutionStage_PREPARE, &run_type, 10);
}

XLA_FFI_Error *initialize(XLA_FFI_CallFrame *f)
{
    return told(f) ? NULL
                   : set(f, XLA_FFI_ExecutionStage_INITIALIZE, &run_type, 100);
}

/* s64[4]: how often this site ran, then the factors of the stages. */
XLA_FFI_Error *stages(XLA_FFI_CallFrame *f)
{
    state *s, *p, *i;
    int64_t *to;

    if (told(f))
        return NULL;
    s = get(f, XLA_FFI_ExecutionStage_INSTANTIATE, &state_type);
    p = get(f, XLA_FFI_ExecutionStage_PREPARE, &run_type);
    i = get(f, XLA_FFI_ExecutionStage_INITIALIZE, &run_type);
    if (!s || !p || !i || get(f, XLA_FFI_ExecutionStage_INSTANTIATE, &run_type))
        return error(f, XLA_FFI_Error_Code_INTERNAL, "states");
    to = ret(f, 0)->data;
    to[0] = ++s->executed;
    to[1] = s->factor;
    to[2] = p->factor + p->executed++;
    to[3] = i->factor;
    return NULL;
}

/* ---- context: memory, threads, futures ---- */

typedef struct {
    pthread_mutex_t lock;
    pthread_cond_t all;
    int left;
    float *at;
    _Atomic int next;
} sum;

static void part(void *p)
{
    sum *s = p;
    int i = s->next++;

    s->at[i] = (float)i;
    pthread_mutex_lock(&s->lock);
    if (!--s->left)
        pthread_cond_signal(&s->all);
    pthread_mutex_unlock(&s->lock);
}

/* 64 tasks write into scratch memory; f32[64] gets it, s64[3] what else. */
XLA_FFI_Error *tasks(XLA_FFI_CallFrame *f)
{
    sum s = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 64, NULL, 0};
    XLA_FFI_DeviceMemory_Allocate_Args m = {
        XLA_FFI_DeviceMemory_Allocate_Args_STRUCT_SIZE,
        NULL,
        f->ctx,
        64 * 4,
        4096,
        NULL};
    XLA_FFI_ThreadPool_Schedule_Args t = {
        XLA_FFI_ThreadPool_Schedule_Args_STRUCT_SIZE, NULL, f->ctx, part, &s};
    int64_t threads = 0, *more;
    XLA_FFI_ThreadPool_NumThreads_Args n = {
        XLA_FFI_ThreadPool_NumThreads_Args_STRUCT_SIZE, NULL, f->ctx, &threads};
    XLA_FFI_RunId_Get_Args r = {XLA_FFI_RunId_Get_Args_STRUCT_SIZE, NULL,
                                f->ctx, 0};
    XLA_FFI_DeviceOrdinal_Get_Args d = {
        XLA_FFI_DeviceOrdinal_Get_Args_STRUCT_SIZE, NULL, f->ctx, -1};
    XLA_FFI_Error *e;

    if (told(f))
        return NULL;
    if ((e = f->api->XLA_FFI_DeviceMemory_Allocate(&m)) ||
        (e = f->api->XLA_FFI_ThreadPool_NumThreads(&n)) ||
        (e = f->api->XLA_FFI_RunId_Get(&r)) ||
        (e = f->api->XLA_FFI_DeviceOrdinal_Get(&d)))
        return e;
    if ((uintptr_t)m.data % 4096)
        return error(f, XLA_FFI_Error_Code_INTERNAL, "alignment");
    s.at = m.data;
    for (int i = 0; i < 64; i++)
        if ((e = f->api->XLA_FFI_ThreadPool_Schedule(&t)))
            return e;
    pthread_mutex_lock(&s.lock);
    while (s.left)
        pthread_cond_wait(&s.all, &s.lock);
    pthread_mutex_unlock(&s.lock);
    memcpy(ret(f, 0)->data, s.at, 64 * 4);
    more = ret(f, 1)->data;
    more[0] = threads;
    more[1] = r.run_id;
    more[2] = d.device_ordinal;
    XLA_FFI_DeviceMemory_Free_Args back = {
        XLA_FFI_DeviceMemory_Free_Args_STRUCT_SIZE, NULL, f->ctx, 64 * 4,
        m.data};

    return f->api->XLA_FFI_DeviceMemory_Free(&back);
}

typedef struct {
    const XLA_FFI_Api *api;
    XLA_FFI_Future *future;
    XLA_FFI_Error *error;
    float *to;
} promise;

static void *keep_promise(void *p)
{
    promise *x = p;
    XLA_FFI_Future_SetAvailable_Args good = {
        XLA_FFI_Future_SetAvailable_Args_STRUCT_SIZE, NULL, x->future};
    XLA_FFI_Future_SetError_Args bad = {
        XLA_FFI_Future_SetError_Args_STRUCT_SIZE, NULL, x->future, x->error};

    if (x->error) {
        x->api->XLA_FFI_Future_SetError(&bad);
    } else {
        *x->to = 42;
        x->api->XLA_FFI_Future_SetAvailable(&good);
    }
    free(x);
    return NULL;
}

/* f32[] comes later, or an error when there is an attribute. */
XLA_FFI_Error *later(XLA_FFI_CallFrame *f)
{
    XLA_FFI_Future_Create_Args a = {XLA_FFI_Future_Create_Args_STRUCT_SIZE,
                                    NULL, NULL};
    XLA_FFI_Error *e;
    promise *p;
    pthread_t t;

    if (told(f))
        return NULL;
    if ((e = f->api->XLA_FFI_Future_Create(&a)))
        return e;
    p = calloc(1, sizeof *p);
    p->api = f->api;
    p->future = f->future = a.future;
    p->to = ret(f, 0)->data;
    if (f->attrs.size)
        p->error = error(f, XLA_FFI_Error_Code_ABORTED, "broken promise");
    pthread_create(&t, NULL, keep_promise, p);
    pthread_detach(t);
    return NULL;
}

/* What the host has no answer for. */
XLA_FFI_Error *stream(XLA_FFI_CallFrame *f)
{
    XLA_FFI_Stream_Get_Args a = {XLA_FFI_Stream_Get_Args_STRUCT_SIZE, NULL,
                                 f->ctx, NULL};

    return told(f) ? NULL : f->api->XLA_FFI_Stream_Get(&a);
}
