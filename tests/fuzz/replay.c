/* Runs a fuzz target over files: those of a folder, written by hand and named
 * for what they hold, and the members of an archive (ustar), which a fuzzer
 * found.  What was found once stays found, without libFuzzer. */
#include "base.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { BLOCK = 512, SIZE_AT = 124, SIZE_DIGITS = 11, MAGIC_AT = 257 };

/* The target gets a copy of its own, so that ASan sees reads past its end. */
static void run_one(const char *data, size_t size)
{
    uint8_t *copy = malloc(size ? size : 1);

    if (!copy)
        abort();
    memcpy(copy, data, size);
    LLVMFuzzerTestOneInput(copy, size);
    free(copy);
}

static int run_archive(const sd_buf *b)
{
    size_t at = 0, size;
    int n = 0;

    for (;; n++) {
        char digits[SIZE_DIGITS + 1] = {0};

        if (at + BLOCK > b->len)
            return -1;
        if (!b->at[at]) /* no name: the end */
            return n;
        memcpy(digits, b->at + at + SIZE_AT, SIZE_DIGITS);
        size = strtoull(digits, NULL, 8);
        at += BLOCK;
        if (memcmp(b->at + at - BLOCK + MAGIC_AT, "ustar", 5) != 0 ||
            size > b->len - at)
            return -1;
        run_one(b->at + at, size);
        at += (size + BLOCK - 1) / BLOCK * BLOCK;
    }
}

static int run(const char *path);

static int run_folder(const char *path, DIR *d)
{
    struct dirent *e;
    int n = 0;

    while (n >= 0 && (e = readdir(d))) {
        char inside[4096];
        int more;

        if (e->d_name[0] == '.')
            continue;
        snprintf(inside, sizeof inside, "%s/%s", path, e->d_name);
        more = run(inside);
        n = more < 0 ? more : n + more;
    }
    closedir(d);
    return n;
}

/* How many inputs path holds; -1: it cannot be read. */
static int run(const char *path)
{
    const char *end = strrchr(path, '.');
    DIR *d = opendir(path);
    sd_buf b = {0};
    sd_status st;
    int n = 1;

    if (d)
        return run_folder(path, d);
    if ((st = sd_file_read(path, &b))) {
        fprintf(stderr, "%s\n", st->message);
        sd_status_free(st);
        return -1;
    }
    if (end && strcmp(end, ".tar") == 0)
        n = run_archive(&b);
    else
        run_one(b.at, b.len);
    sd_buf_finish(&b);
    return n;
}

int main(int argc, char **argv)
{
    int all = 0;

    for (int i = 1; i < argc; i++) {
        int n = run(argv[i]);

        if (n < 0) {
            fprintf(stderr, "%s: not all of it is inputs\n", argv[i]);
            return 1;
        }
        all += n;
    }
    printf("%d inputs\n", all);
    return all ? 0 : 77; /* nothing to run: skipped, says Meson */
}
