/* MLIR bytecode from nowhere: a status, or a module that verifies and prints
 * as text that reads back. */
#include "frontend.h"

#include <stdio.h>
#include <stdlib.h>

static void fail(const char *what, sd_status st)
{
    fprintf(stderr, "%s: %s\n", what, st->message);
    abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    sd_arena *a = sd_arena_create();
    hlo_module *m, *back;
    sd_buf text = {0};
    sd_status st = frontend_read(a, "mlir", 4, (sd_bytes){data, size}, &m);

    if (st) {
        sd_status_free(st);
        goto done;
    }
    if ((st = hlo_verify(m)))
        fail("an imported module does not verify", st);
    hlo_print(&text, m);
    if (text.len < 1 << 20 && (st = hlo_parse(a, text.at, text.len, &back)))
        fail("a printed module does not parse", st);
    sd_buf_finish(&text);
done:
    sd_arena_destroy(a);
    return 0;
}
