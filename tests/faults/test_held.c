/* What held.c watches, over the programs of a folder: all the way to the code
 * of some devices, and to the IR of others.
 *
 *   test_held FOLDER [NAME]         all programs, or those whose names hold
 * NAME
 */
#include "frontend.h"
#include "passes.h"
#include "plan.h"
#include "target.h"

#include <dirent.h>
#include <stdio.h>

static const struct {
    const char *device;
    bool whole; /* what comes behind the emitters as well */
} row[] = {{"host:v3", true},
           {"cuda:sm_90", true},
           {"cuda:sm_80", false},
           {"cl:pvc", true},
           {"cl:dg2-g10", false}};

static sd_status compile(sd_arena *a, sd_bytes program, const device_desc *dev,
                         bool whole)
{
    const sd_options none = {0};
    hlo_module *m;
    plan *p = NULL;
    sd_status st;

    if ((st = frontend_read(a, "hlo_text", strlen("hlo_text"), program, &m)) ||
        (st = hlo_optimize(m, dev, &none, NULL, NULL)) ||
        (st = plan_make(a, m, dev, &none, &p)))
        return st;
    st =
        whole ? target_build(p, NULL, NULL, NULL, NULL, NULL) : target_check(p);
    plan_destroy(p);
    return st;
}

static bool run(const char *path)
{
    sd_buf text = {0};
    bool ok = true;
    sd_status st;

    if ((st = sd_file_read(path, &text))) {
        fprintf(stderr, "%s\n", st->message);
        sd_status_free(st);
        return false;
    }
    for (size_t i = 0; i < SD_COUNTOF(row); i++) {
        sd_bytes program = {(const uint8_t *)text.at, text.len};
        sd_arena *a = sd_arena_create();
        device_desc dev;

        ok = ok && device_desc_of_name(row[i].device, &dev);
        if (ok) /* refused is watched, too */
            sd_status_free(compile(a, program, &dev, row[i].whole));
        sd_arena_destroy(a);
    }
    sd_buf_finish(&text);
    return ok;
}

int main(int argc, char **argv)
{
    DIR *d = argc > 1 ? opendir(argv[1]) : NULL;
    struct dirent *e;
    char path[4096];
    bool ok = d;
    int n = 0;

    while (ok && (e = readdir(d))) {
        if (!strstr(e->d_name, ".hlo") ||
            (argc > 2 && !strstr(e->d_name, argv[2])))
            continue;
        snprintf(path, sizeof path, "%s/%s", argv[1], e->d_name);
        ok = run(path);
        n++;
    }
    if (d)
        closedir(d);
    printf("%d programs\n", n);
    return !ok || !n;
}
