/* MLIR from nowhere, bytecode or text: a status, or StableHLO text that reads
 * back as itself. */
#include "mlir_write.h"

#include <stdio.h>
#include <stdlib.h>

static void fail(const char *what, const char *why)
{
    fprintf(stderr, "%s: %s\n", what, why);
    abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    sd_buf once = {0}, twice = {0};
    sd_status st = mlir_write((sd_bytes){data, size}, &once);

    if (st) {
        sd_status_free(st);
        goto done;
    }
    sd_bytes text = {(const uint8_t *)once.at, once.len};

    if ((st = mlir_write(text, &twice)))
        fail("our own text does not read", st->message);
    if (once.len != twice.len || memcmp(once.at, twice.at, once.len) != 0)
        fail("our own text reads as another program", once.at);
done:
    sd_buf_finish(&once);
    sd_buf_finish(&twice);
    return 0;
}
