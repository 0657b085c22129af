/* mlir: programs as StableHLO text in generic form, many at a time. */
#include <stdio.h>

#include "mlir_write.h"
#include "sundog.h"

/* What a dump of XLA's, or of ours, begins with. */
static bool is_hlo_text(const sd_buf *b)
{
    static const char word[] = "HloModule ";

    return b->len >= sizeof word && !memcmp(b->at, word, sizeof word - 1);
}

static sd_status write_one(const char *path, const char *dir)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    sd_buf bytes = {0}, text = {0}, out = {0};
    sd_status st = sd_file_read(path, &bytes);

    if (!st && is_hlo_text(&bytes))
        st = sd_error(SD_INVALID, "this is HLO text; MLIR is wanted");
    else if (!st)
        st = mlir_write((sd_bytes){(uint8_t *)bytes.at, bytes.len}, &text);
    if (!st && dir) {
        sd_buf_fmt(&out, "%s/%s.mlir", dir, name);
        sd_buf_u8(&out, 0);
        st = sd_file_write(out.at, text.at, text.len);
    } else if (!st) {
        fwrite(text.at, 1, text.len, stdout);
    }
    sd_buf_finish(&bytes);
    sd_buf_finish(&text);
    sd_buf_finish(&out);
    return st;
}

/* All are tried; each that fails has its line. */
sd_status tool_mlir(const tool_args *t)
{
    int bad = 0;

    for (int i = 0; i < t->nfile; i++) {
        sd_status st = write_one(t->file[i], t->out);

        if (!st)
            continue;
        fprintf(stderr, "%s: %s\n", t->file[i], st->message);
        sd_status_free(st);
        bad++;
    }
    return bad ? sd_error(SD_INVALID, "%d of %d programs not written", bad,
                          t->nfile)
               : NULL;
}
