/* Runs a fuzz target over the files of a folder: what was found once stays
 * found, without libFuzzer. */
#include "base.h"

#include <dirent.h>
#include <stdio.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int main(int argc, char **argv)
{
    int n = 0;

    for (int i = 1; i < argc; i++) {
        DIR *d = opendir(argv[i]);
        struct dirent *e;

        while (d && (e = readdir(d))) {
            char path[4096];
            sd_buf b = {0};
            sd_status st;

            if (e->d_name[0] == '.')
                continue;
            snprintf(path, sizeof path, "%s/%s", argv[i], e->d_name);
            if ((st = sd_file_read(path, &b))) {
                fprintf(stderr, "%s\n", st->message);
                return 1;
            }
            LLVMFuzzerTestOneInput((const uint8_t *)b.at, b.len);
            sd_buf_finish(&b);
            n++;
        }
        if (d)
            closedir(d);
    }
    printf("%d inputs\n", n);
    return n ? 0 : 77; /* nothing to run: skipped, says Meson */
}
