/* Kernels that come as source: what a call of sundog_kernel says in its
 * attributes, which python/sundog/ffi.py writes.
 *   name      what the user calls it
 *   cl, cuda  for each kind of devices that it has source for: form, code (a
 *             string, or an array of bytes), entry, options, grid and block
 *             (three numbers each), local (bytes)
 *   scalars   parameters by value, in the order of their keys */
#include "xpu_ffi.h"

static const struct {
    const char *name;
    device_kind kind;
} forms[] = {
    [XPU_OPENCL_C] = {"opencl_c", DEVICE_CL},
    [XPU_SPIRV] = {"spirv", DEVICE_CL},
    [XPU_PTX] = {"ptx", DEVICE_CUDA},
    [XPU_CUBIN] = {"cubin", DEVICE_CUDA},
};

/* ---- attributes by name ---- */

static const void *find(const XLA_FFI_Attrs *a, const char *name,
                        XLA_FFI_AttrType type)
{
    for (int64_t i = 0; i < a->size; i++)
        if (a->types[i] == type && a->names[i]->len == strlen(name) &&
            memcmp(a->names[i]->ptr, name, a->names[i]->len) == 0)
            return a->attrs[i];
    return NULL;
}

/* With a NUL behind it; "" when it is not there. */
static const char *text_of(sd_arena *a, const XLA_FFI_Attrs *at,
                           const char *name)
{
    const XLA_FFI_ByteSpan *s = find(at, name, XLA_FFI_AttrType_STRING);
    char *copy;

    if (!s)
        return "";
    if ((copy = sd_arena_try(a, s->len + 1)))
        memcpy(copy, s->ptr, s->len);
    return copy;
}

static bool read_number(const XLA_FFI_Attrs *a, const char *name, uint32_t *out)
{
    const XLA_FFI_Scalar *s = find(a, name, XLA_FFI_AttrType_SCALAR);
    int64_t v;

    if (!s || s->dtype != XLA_FFI_DataType_S64)
        return false;
    v = *(const int64_t *)s->value;
    *out = (uint32_t)v;
    return v >= 0 && v <= INT32_MAX;
}

static bool read_three(const XLA_FFI_Attrs *a, const char *name, uint32_t *out)
{
    const XLA_FFI_Array *x = find(a, name, XLA_FFI_AttrType_ARRAY);
    const int64_t *v;

    if (!x || x->dtype != XLA_FFI_DataType_S64 || x->size != 3)
        return false;
    v = x->data;
    for (int i = 0; i < 3; i++) {
        out[i] = (uint32_t)v[i];
        if (v[i] < 0 || v[i] > INT32_MAX)
            return false;
    }
    return true;
}

/* ---- the parts ---- */

static sd_status no_source(const XLA_FFI_Attrs *a, const device_desc *dev)
{
    sd_buf has = {0};
    sd_status st;

    for (int k = 0; k < DEVICE_KIND_COUNT; k++)
        if (find(a, device_kind_table[k].name, XLA_FFI_AttrType_DICTIONARY))
            sd_buf_fmt(&has, "%s%s", has.len ? ", " : "",
                       device_kind_table[k].name);
    st = sd_error(
        SD_UNIMPLEMENTED, "it has source for %.*s, and this device is %s",
        has.len ? (int)has.len : 7, has.len ? has.at : "nothing", dev->name);
    sd_buf_finish(&has);
    return st;
}

static sd_status read_form(const XLA_FFI_Attrs *a, const device_desc *dev,
                           xpu_source_form *out)
{
    const XLA_FFI_ByteSpan *s = find(a, "form", XLA_FFI_AttrType_STRING);

    for (int i = 0; i < XPU_SOURCE_COUNT && s; i++)
        if (forms[i].kind == dev->kind && s->len == strlen(forms[i].name) &&
            memcmp(forms[i].name, s->ptr, s->len) == 0) {
            *out = (xpu_source_form)i;
            return NULL;
        }
    return sd_error(SD_INVALID, "%s takes no source of form '%.*s'", dev->name,
                    s ? (int)s->len : 0, s ? s->ptr : "");
}

static sd_status read_code(sd_arena *a, const XLA_FFI_Attrs *at,
                           xpu_kernel_source *k)
{
    const XLA_FFI_ByteSpan *s = find(at, "code", XLA_FFI_AttrType_STRING);
    const XLA_FFI_Array *x = find(at, "code", XLA_FFI_AttrType_ARRAY);
    const void *from = s ? s->ptr : NULL;
    char *copy;

    if (!s && x && x->dtype == XLA_FFI_DataType_U8)
        from = x->data;
    if (!from)
        return sd_error(SD_INVALID, "its code is no text and no bytes");
    k->bytes = s ? s->len : (size_t)x->size;
    if (!(copy = sd_arena_try(a, k->bytes + 1)))
        return sd_no_memory(k->bytes + 1);
    memcpy(copy, from, k->bytes);
    copy[k->bytes] = 0;
    k->code = copy;
    return NULL;
}

static sd_status read_launch(sd_arena *a, const XLA_FFI_Attrs *at,
                             xpu_kernel_source *k)
{
    k->entry = text_of(a, at, "entry");
    k->options = text_of(a, at, "options");
    if (!k->entry || !k->options)
        return sd_no_memory(1);
    if (!read_three(at, "grid", k->grid) || !read_three(at, "block", k->block))
        return sd_error(SD_INVALID, "its grid and block are not three numbers "
                                    "of 0 to 2147483647 each");
    if (!read_number(at, "local", &k->local))
        return sd_error(SD_INVALID,
                        "its local memory is no number of 0 to 2147483647");
    if (!k->block[0] || !k->block[1] || !k->block[2])
        return sd_error(SD_INVALID, "a block of %u x %u x %u items",
                        k->block[0], k->block[1], k->block[2]);
    return NULL;
}

static size_t scalar_bytes(XLA_FFI_DataType t)
{
    sd_dtype own;

    return sd_dtype_of_xla((int)t, &own) ? sd_dtype_table[own].bytes : 0;
}

static sd_status read_scalars(sd_arena *a, const XLA_FFI_Attrs *all,
                              xpu_kernel_source *k)
{
    const XLA_FFI_Attrs *at = find(all, "scalars", XLA_FFI_AttrType_DICTIONARY);
    xpu_scalar *s;

    if (!at || !at->size)
        return NULL;
    if (!(s = sd_arena_try(a, (size_t)at->size * sizeof *s)))
        return sd_no_memory((size_t)at->size * sizeof *s);
    for (int64_t i = 0; i < at->size; i++) {
        const XLA_FFI_Scalar *v = at->attrs[i];

        if (at->types[i] != XLA_FFI_AttrType_SCALAR)
            return sd_error(SD_INVALID,
                            "parameter %" PRId64 " by value is no number", i);
        s[i] = (xpu_scalar){v->value, scalar_bytes(v->dtype)};
    }
    k->scalar = s;
    k->nscalar = (int)at->size;
    return NULL;
}

sd_status xpu_ffi_read_kernel(sd_arena *a, const XLA_FFI_Attrs *attrs,
                              const device_desc *dev, int npointer,
                              const char **name, xpu_kernel_source **out)
{
    const XLA_FFI_Attrs *at = find(attrs, device_kind_table[dev->kind].name,
                                   XLA_FFI_AttrType_DICTIONARY);
    xpu_kernel_source *k = sd_arena_try(a, sizeof *k);
    sd_status st;

    if (!k || !(*name = text_of(a, attrs, "name")))
        return sd_no_memory(sizeof *k);
    if (!at)
        return no_source(attrs, dev);
    k->npointer = npointer;
    if ((st = read_form(at, dev, &k->form)) || (st = read_code(a, at, k)) ||
        (st = read_launch(a, at, k)) || (st = read_scalars(a, attrs, k)))
        return st;
    *out = k;
    return NULL;
}
