/* A saved program's body from nowhere, under a header whose sum is right: a
 * status, or a program that verifies, prints, and saves to the same again. */
#include "thunk.h"

#include <stdio.h>
#include <stdlib.h>

static void fail(const char *what)
{
    fprintf(stderr, "%s\n", what);
    abort();
}

static sd_bytes bytes(const sd_buf *b)
{
    return (sd_bytes){(const uint8_t *)b->at, b->len};
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    sd_buf file = {0}, text = {0}, saved = {0}, again = {0};
    thunk_program *p, *q;
    sd_status st;

    sd_buf_add(&file, "SDTHUNK", 8);
    sd_buf_u32(&file, 1);
    sd_buf_u64(&file, size);
    sd_buf_u64(&file, sd_hash(data, size, 1));
    sd_buf_add(&file, data, size);
    st = thunk_load(bytes(&file), &p);
    sd_buf_finish(&file);
    if (st) {
        sd_status_free(st);
        return 0;
    }
    if (thunk_verify(p))
        fail("a loaded program does not verify");
    thunk_print(&text, p);
    if (thunk_save(p, &saved) || thunk_load(bytes(&saved), &q))
        fail("a loaded program does not save and load");
    if (thunk_save(q, &again) || again.len != saved.len ||
        memcmp(again.at, saved.at, saved.len))
        fail("a program changes by being saved and loaded");
    thunk_program_release(p);
    thunk_program_release(q);
    sd_buf_finish(&text);
    sd_buf_finish(&saved);
    sd_buf_finish(&again);
    return 0;
}
