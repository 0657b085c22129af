/* Programs that are refused, and what is said of them.  FOLDER holds *.hlo and
 * *.mlir, each any number of cases with a line "// -----" between them:
 *
 *   // error: expected a shape      the message has this; several: all of them
 *   // code: UNIMPLEMENTED          optional; else INVALID_ARGUMENT
 *   // stage: compile               optional: how far it goes; else read
 *   // partitions: 4                optional: the compile's own options say so
 *   HloModule ...
 *
 * read: read, made HLO and verified.  evaluate: then evaluated, without
 * arguments; evaluate all: all its participants at once.  compile: the whole
 * road for the described device host:v3. Lines are counted from the first of
 * the program.
 *
 *   test_errors FOLDER [NAME]       all files, or those whose names hold NAME
 *   test_errors --print FOLDER ...  also what each case says */
#include "compile.h"
#include "frontend.h"
#include "ref.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

enum { MAX_WANTED = 8 };

typedef enum {
    STAGE_READ,
    STAGE_EVALUATE,
    STAGE_EVALUATE_ALL,
    STAGE_COMPILE,
    STAGE_COUNT
} stage;
static const char *const stage_name[STAGE_COUNT] = {
    [STAGE_READ] = "read",
    [STAGE_EVALUATE] = "evaluate",
    [STAGE_EVALUATE_ALL] = "evaluate all",
    [STAGE_COMPILE] = "compile",
};

static const char *const code_name[] = {
    [SD_OK] = "no error",
    [SD_CANCELLED] = "CANCELLED",
    [SD_UNKNOWN] = "UNKNOWN",
    [SD_INVALID] = "INVALID_ARGUMENT",
    [SD_DEADLINE] = "DEADLINE_EXCEEDED",
    [SD_NOT_FOUND] = "NOT_FOUND",
    [SD_ALREADY_EXISTS] = "ALREADY_EXISTS",
    [SD_PERMISSION] = "PERMISSION_DENIED",
    [SD_EXHAUSTED] = "RESOURCE_EXHAUSTED",
    [SD_PRECONDITION] = "FAILED_PRECONDITION",
    [SD_ABORTED] = "ABORTED",
    [SD_OUT_OF_RANGE] = "OUT_OF_RANGE",
    [SD_UNIMPLEMENTED] = "UNIMPLEMENTED",
    [SD_INTERNAL] = "INTERNAL",
    [SD_UNAVAILABLE] = "UNAVAILABLE",
    [SD_DATA_LOSS] = "DATA_LOSS",
};

typedef struct {
    const char *path, *format;
    int line; /* of its first line */
    sd_bytes want[MAX_WANTED];
    int nwant;
    int code, stage, npartition; /* 0: the options do not say */
    sd_bytes program;
} test_case;

typedef struct {
    int ran, failed;
    bool print;
} tally;

static void fail(tally *t, const test_case *c, const char *what, sd_status st)
{
    t->failed++;
    printf("FAIL %s:%d: %s\n", c->path, c->line, what);
    if (st)
        printf("  %s: %s\n", code_name[st->code], st->message);
}

/* ---- one case ---- */

static sd_status evaluate(sd_arena *a, const hlo_module *m)
{
    hlo_value out;

    return ref_eval(a, m->entry, NULL, 0, &out);
}

static sd_status evaluate_all(sd_arena *a, const hlo_module *m)
{
    int64_t n = hlo_participants(m);
    const hlo_value **none = sd_arena_array(a, const hlo_value *, n);

    return ref_eval_all(a, m->entry, none, 0, sd_arena_array(a, hlo_value, n));
}

static sd_status compile(const test_case *c)
{
    /* CompileOptionsProto's build options: replicas, partitions */
    const uint8_t counts[] = {3 << 3 | 2, 4,      4 << 3,
                              1,          5 << 3, (uint8_t)c->npartition};
    sd_options o = {0};
    device_desc dev;
    thunk_program *p = NULL;
    compile_services sv = {.env = &o};
    compile_request rq = {.program = c->program,
                          .format = c->format,
                          .format_len = strlen(c->format),
                          .device = &dev};
    sd_status st;

    if (c->npartition)
        rq.options = (sd_bytes){counts, sizeof counts};
    if (!device_desc_of_name("host:v3", &dev))
        return sd_error(SD_INTERNAL, "no device is called host:v3");
    st = sundog_compile(&rq, &sv, &p);
    thunk_program_release(p);
    return st;
}

static sd_status run(const test_case *c)
{
    sd_arena *a;
    hlo_module *m;
    sd_status st;

    if (c->stage == STAGE_COMPILE)
        return compile(c);
    a = sd_arena_create();
    st = frontend_read(a, c->format, strlen(c->format), c->program, &m);
    if (!st)
        st = hlo_verify(m);
    if (!st && c->stage == STAGE_EVALUATE)
        st = evaluate(a, m);
    if (!st && c->stage == STAGE_EVALUATE_ALL)
        st = evaluate_all(a, m);
    sd_arena_destroy(a);
    return st;
}

static bool has_all(const test_case *c, const char *message)
{
    for (int i = 0; i < c->nwant; i++)
        if (!memmem(message, strlen(message), c->want[i].at, c->want[i].len))
            return false;
    return true;
}

static void judge(tally *t, const test_case *c)
{
    sd_status st;

    t->ran++;
    if (!c->nwant) {
        fail(t, c, "a case without an \"// error: \" line", NULL);
        return;
    }
    if (!(st = run(c))) {
        fail(t, c, "no error", NULL);
        return;
    }
    if (st->code != (sd_code)c->code)
        fail(t, c, "another code", st);
    else if (!has_all(c, st->message))
        fail(t, c, "another message", st);
    else if (t->print)
        printf("%s:%d: %s: %s\n", c->path, c->line, code_name[st->code],
               st->message);
    sd_status_free(st);
}

/* ---- files ---- */

static sd_bytes take_line(sd_bytes *rest)
{
    const uint8_t *end = memchr(rest->at, '\n', rest->len);
    sd_bytes line = {rest->at, end ? (size_t)(end - rest->at) : rest->len};
    size_t used = line.len + (end ? 1 : 0);

    *rest = (sd_bytes){rest->at + used, rest->len - used};
    return line;
}

/* Is the line "// KEY: VALUE"? */
static bool has_key(sd_bytes line, const char *key, sd_bytes *value)
{
    size_t n = strlen(key);

    if (line.len < n || memcmp(line.at, key, n))
        return false;
    *value = (sd_bytes){line.at + n, line.len - n};
    return true;
}

static int index_of(sd_bytes word, const char *const *name, int n)
{
    for (int i = 0; i < n; i++)
        if (word.len == strlen(name[i]) && !memcmp(word.at, name[i], word.len))
            return i;
    return -1;
}

/* Takes the case's head off its program; false: something unknown in it. */
static bool read_head(test_case *c)
{
    for (;;) {
        sd_bytes rest = c->program, value, line = take_line(&rest);

        if (has_key(line, "// error: ", &value) && value.len &&
            c->nwant < MAX_WANTED)
            c->want[c->nwant++] = value;
        else if (has_key(line, "// code: ", &value))
            c->code = index_of(value, code_name, SD_COUNTOF(code_name));
        else if (has_key(line, "// stage: ", &value))
            c->stage = index_of(value, stage_name, STAGE_COUNT);
        else if (has_key(line, "// partitions: ", &value) && value.len)
            c->npartition = value.at[0] - '0';
        else
            return c->code > 0 && c->stage >= 0;
        c->program = rest;
    }
}

static void run_case(tally *t, test_case *c)
{
    if (read_head(c))
        judge(t, c);
    else
        fail(t, c, "an unknown code or stage", NULL);
}

static void run_file(tally *t, const char *path, const char *format,
                     sd_bytes text)
{
    const uint8_t *start = text.at;
    int line = 1, first = 1;

    while (text.len) {
        sd_bytes value, l = take_line(&text);
        bool cut = has_key(l, "// -----", &value) && !value.len;

        line++;
        if (!cut && text.len)
            continue;
        run_case(t, &(test_case){
                        .path = path,
                        .format = format,
                        .line = first,
                        .code = SD_INVALID,
                        .program = {start,
                                    (size_t)((cut ? l.at : text.at) - start)}});
        start = text.at;
        first = line;
    }
}

static const char *format_of(const char *name)
{
    const char *end = strrchr(name, '.');

    if (end && !strcmp(end, ".hlo"))
        return "hlo_text";
    return end && !strcmp(end, ".mlir") ? "mlir" : NULL;
}

static int is_program(const struct dirent *e)
{
    return format_of(e->d_name) != NULL;
}

static void run_named(tally *t, const char *folder, const char *name)
{
    sd_buf text = {0};
    char path[4096];
    sd_status st;

    snprintf(path, sizeof path, "%s/%s", folder, name);
    if ((st = sd_file_read(path, &text))) {
        t->failed++;
        printf("FAIL %s\n", st->message);
        sd_status_free(st);
    } else {
        run_file(t, path, format_of(name),
                 (sd_bytes){(uint8_t *)text.at, text.len});
    }
    sd_buf_finish(&text);
}

int main(int argc, char **argv)
{
    tally t = {.print = argc > 1 && !strcmp(argv[1], "--print")};
    const char *folder = argv[1 + t.print];
    const char *only = folder ? argv[2 + t.print] : NULL;
    struct dirent **file;
    int n = folder ? scandir(folder, &file, is_program, alphasort) : -1;

    if (n < 0) {
        fprintf(stderr, "usage: test_errors [--print] FOLDER [NAME]\n");
        return 2;
    }
    for (int i = 0; i < n; i++) {
        if (!only || strstr(file[i]->d_name, only))
            run_named(&t, folder, file[i]->d_name);
        free(file[i]);
    }
    free(file);
    printf("%d cases, %d failures\n", t.ran, t.failed);
    return t.failed || !t.ran;
}
