/* Print, parse, print is the identity, and so is the way through protobuf, of
 * every program given: as read, and after the passes.  How many of them hold
 * what no device runs, which the passes say by name, is counted too.
 *
 * usage: roundtrip [--judge=DIR] FILE ...
 * FILE: .mlirbc, .hlo, .pb (HloModuleProto) or .pbc (with its config)
 * --judge: texts and protobufs are left in DIR for another reader to judge. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device_desc.h"
#include "frontend.h"
#include "passes.h"

typedef struct {
    const char *dir; /* NULL: nobody judges */
    int read, passed, refused, failed;
} tally;

typedef struct { /* one form of a module */
    sd_buf text, proto;
} form;

static void forms(const hlo_module *m, form *f)
{
    hlo_print(&f->text, m);
    hlo_proto_write(&f->proto, m, true, INT64_MAX);
    if (f->text.oom || f->proto.oom)
        sd_oom(f->text.len + f->proto.len);
}

static bool same(const sd_buf *x, const sd_buf *y)
{
    return x->len == y->len && memcmp(x->at, y->at, x->len) == 0;
}

static void finish(form *f)
{
    sd_buf_finish(&f->text);
    sd_buf_finish(&f->proto);
}

/* Where two texts part, for the message. */
static sd_status differ(const char *how, const sd_buf *x, const sd_buf *y)
{
    size_t i = 0, from;

    while (i < x->len && i < y->len && x->at[i] == y->at[i])
        i++;
    from = i > 60 ? i - 60 : 0;
    return sd_error(SD_INTERNAL,
                    "%s differs at byte %zu: \"%.*s\" is now \"%.*s\"", how, i,
                    (int)SD_MIN(x->len - from, (size_t)120), x->at + from,
                    (int)SD_MIN(y->len - from, (size_t)120), y->at + from);
}

/* m through text (or protobuf) and back has the same two forms. */
static sd_status check_back(const form *f, bool proto)
{
    sd_arena *a = sd_arena_create();
    form g = {{0}, {0}};
    hlo_module *m;
    sd_status st;

    st = proto
             ? hlo_proto_read(a,
                              (sd_bytes){(uint8_t *)f->proto.at, f->proto.len},
                              true, &m)
             : hlo_parse(a, f->text.at, f->text.len, &m);
    if (!st && !(st = hlo_verify(m))) {
        forms(m, &g);
        if (!same(&f->text, &g.text))
            st = differ("text", &f->text, &g.text);
        else if (proto && !same(&f->proto, &g.proto))
            st = sd_error(SD_INTERNAL, "protobuf differs: %zu and %zu bytes",
                          f->proto.len, g.proto.len);
    }
    finish(&g);
    sd_arena_destroy(a);
    return sd_note(st, proto ? "through protobuf" : "through text");
}

static sd_status leave(const tally *t, const char *file, const char *when,
                       const form *f)
{
    const char *slash = strrchr(file, '/'), *name = slash ? slash + 1 : file;
    char path[4096];
    sd_status st;

    if (!t->dir)
        return NULL;
    snprintf(path, sizeof path, "%s/%s.%s.hlo", t->dir, name, when);
    if ((st = sd_file_write(path, f->text.at, f->text.len)))
        return st;
    snprintf(path, sizeof path, "%s/%s.%s.pbc", t->dir, name, when);
    return sd_file_write(path, f->proto.at, f->proto.len);
}

static sd_status check(const tally *t, const char *file, const char *when,
                       const hlo_module *m)
{
    form f = {{0}, {0}};
    sd_status st;

    forms(m, &f);
    if (!(st = check_back(&f, false)) && !(st = check_back(&f, true)))
        st = leave(t, file, when, &f);
    finish(&f);
    return sd_note(st, "%s passes", when);
}

static const char *format_of(const char *file)
{
    const char *dot = strrchr(file, '.');

    return !dot || !strcmp(dot, ".hlo") ? "hlo_text"
           : !strcmp(dot, ".pb")        ? "hlo"
           : !strcmp(dot, ".pbc")       ? "hlo_with_config"
                                        : "mlir";
}

static sd_status check_program(tally *t, const char *file, sd_bytes bytes)
{
    const char *format = format_of(file);
    const device_desc *dev = device_desc_at(0);
    sd_arena *a = sd_arena_create();
    sd_options o = {0};
    hlo_module *m;
    sd_status st;

    st = frontend_read(a, format, strlen(format), bytes, &m);
    if (!st && !(st = check(t, file, "before", m))) {
        t->read++;
        st = hlo_optimize(m, dev, &o, NULL, NULL);
        if (st && st->code == SD_UNIMPLEMENTED) { /* behind the last pass */
            t->refused++;
            sd_status_free(st);
            st = NULL;
        }
        if (!st && !(st = check(t, file, "after", m)))
            t->passed++;
    }
    sd_arena_destroy(a);
    return st;
}

static void check_file(tally *t, const char *file)
{
    sd_buf bytes = {0};
    sd_status st = sd_file_read(file, &bytes);

    if (!st)
        st = check_program(t, file, (sd_bytes){(uint8_t *)bytes.at, bytes.len});
    if (st) {
        t->failed++;
        printf("%s: %s\n", file, st->message);
        sd_status_free(st);
    }
    sd_buf_finish(&bytes);
}

int main(int argc, char **argv)
{
    tally t = {0};
    int first = 1;

    if (argc > 1 && !strncmp(argv[1], "--judge=", 8)) {
        t.dir = argv[1] + 8;
        first = 2;
    }
    if (first >= argc) {
        fprintf(stderr, "usage: roundtrip [--judge=DIR] FILE ...\n");
        return 2;
    }
    for (int i = first; i < argc; i++)
        check_file(&t, argv[i]);
    printf("%d programs: %d the same before passes, %d after; %d with what "
           "does not run; %d failed\n",
           argc - first, t.read, t.passed, t.refused, t.failed);
    return t.failed > 0;
}
