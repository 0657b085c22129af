/* .npy files, format 1.0: a Python dictionary of three keys, then the data. */
#include <stdio.h>
#include <stdlib.h>

#include "sundog.h"

static const struct {
    sd_dtype dtype;
    const char *descr;
} types[] = {
    {SD_PRED, "|b1"}, {SD_S8, "|i1"},    {SD_S16, "<i2"},  {SD_S32, "<i4"},
    {SD_S64, "<i8"},  {SD_U8, "|u1"},    {SD_U16, "<u2"},  {SD_U32, "<u4"},
    {SD_U64, "<u8"},  {SD_F16, "<f2"},   {SD_F32, "<f4"},  {SD_F64, "<f8"},
    {SD_C64, "<c8"},  {SD_C128, "<c16"}, {SD_BF16, "<V2"},
};

sd_status npy_write(const char *path, sd_dtype t, int rank, const int64_t *dim,
                    const void *data, size_t bytes)
{
    const char *descr = NULL;
    sd_buf b = {0}, head = {0};
    sd_status st;

    for (size_t i = 0; i < SD_COUNTOF(types); i++)
        if (types[i].dtype == t)
            descr = types[i].descr;
    if (!descr)
        return sd_error(SD_UNIMPLEMENTED, "%s: NumPy has no %s", path,
                        sd_dtype_name(t));
    sd_buf_fmt(&head, "{'descr': '%s', 'fortran_order': False, 'shape': (",
               descr);
    for (int i = 0; i < rank; i++)
        sd_buf_fmt(&head, "%" PRId64 ",", dim[i]);
    sd_buf_str(&head, ")}");
    while ((head.len + 11) % 64)
        sd_buf_u8(&head, ' ');
    sd_buf_u8(&head, '\n');
    sd_buf_add(&b, "\x93NUMPY\x01\x00", 8);
    sd_buf_u8(&b, (uint8_t)head.len);
    sd_buf_u8(&b, (uint8_t)(head.len >> 8));
    sd_buf_add(&b, head.at, head.len);
    sd_buf_add(&b, data, bytes);
    st = sd_file_write(path, b.at, b.len);
    sd_buf_finish(&head);
    sd_buf_finish(&b);
    return st;
}

static const char *after_key(const char *head, const char *key)
{
    const char *p = strstr(head, key);

    return p ? p + strlen(key) : "";
}

static bool read_header(const char *head, sd_dtype *t, int *rank, int64_t *dim)
{
    const char *descr = after_key(head, "'descr': '");
    const char *shape = after_key(head, "'shape': (");
    bool found = false;

    for (size_t i = 0; i < SD_COUNTOF(types); i++)
        if (!strncmp(descr, types[i].descr, strlen(types[i].descr)) &&
            descr[strlen(types[i].descr)] == '\'') {
            *t = types[i].dtype;
            found = true;
        }
    *rank = 0;
    while (*shape && *shape != ')') {
        char *end;
        int64_t v = strtoll(shape, &end, 10);

        if (end == shape || *rank == SD_MAX_RANK)
            return false;
        dim[(*rank)++] = v;
        shape = end + strspn(end, ", ");
    }
    return found && *shape == ')' &&
           !strncmp(after_key(head, "'fortran_order': "), "False", 5);
}

sd_status npy_read(const char *path, sd_buf *file, size_t *at, sd_dtype *t,
                   int *rank, int64_t *dim)
{
    sd_status st = sd_file_read(path, file);
    const uint8_t *p = (const uint8_t *)file->at;
    char *head;
    size_t n;
    bool ok;

    if (st)
        return st;
    n = file->len < 10 ? 0 : (size_t)(p[8] | p[9] << 8);
    if (!n || memcmp(p, "\x93NUMPY\x01", 7) || n + 10 > file->len)
        return sd_error(SD_INVALID, "%s is not a .npy file of version 1", path);
    head = strndup(file->at + 10, n);
    ok = head && read_header(head, t, rank, dim) &&
         !(st = sd_shape_check(*t, *rank, dim));
    free(head);
    if (!ok)
        return st ? st
                  : sd_error(SD_INVALID, "%s: a header that we cannot use",
                             path);
    *at = n + 10;
    n = sd_dtype_bytes(*t);
    for (int i = 0; i < *rank; i++)
        n *= (size_t)dim[i];
    if (file->len - *at < n)
        return sd_error(SD_INVALID,
                        "%s holds %zu bytes of data, its shape "
                        "needs %zu",
                        path, file->len - *at, n);
    return NULL;
}
