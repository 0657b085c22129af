/* selftest: does a device compute what it should, and how fast?  A row of
 * classes.def is a class of checks; each runs in a child process under a time
 * limit, so that a device that fails, hangs or kills the process is a line of
 * the report.  What a device gives is held against the evaluator (src/hlo) on
 * this machine's CPU: no framework is needed. */
#ifndef SELFTEST_H
#define SELFTEST_H

#include "compile.h"
#include "hlo.h"
#include "xpu.h"

typedef struct {
    char name[40], unit[16];
    double value;
} selftest_figure;

/* Of one class; in memory that is shared with the child, so that what a child
 * found outlives it. */
typedef struct {
    int done;     /* checks that ended, in their order: the next child goes on
                     behind them */
    int right, wrong, refused, left; /* left: for lack of time */
    bool running; /* the check that `doing` names */
    bool here;    /* this machine compiles or evaluates: no device is asked */
    bool ended;
    bool sick;    /* the child asks for another, with a client of its own */
    char doing[160];
    char device[64], driver[128]; /* what was opened */
    int nfigure, nline;
    selftest_figure figure[24];
    size_t len;
    char text[16 << 10]; /* lines for the report */
} selftest_page;

typedef struct {
    sd_options options;
    compile_fn compile;
    bool quick;
    uint64_t until; /* no check begins after it; sd_now_ns */
    selftest_page *page;
    int at;         /* checks asked for so far */
    xpu_client *client;
    xpu_device *device;
} selftest;

/* ---- classes ---- */

typedef struct {
    const char *name;
    double full, quick; /* seconds that it may take */
    bool opens;         /* begins with a client and its first device */
    void (*run)(selftest *s, const char *programs);
    const char *programs; /* texts, one behind the other; or NULL */
} selftest_class;

#define CLASS(name, full, quick, opens, fn, programs) \
    void selftest_##fn(selftest *s, const char *text);
#include "classes.def"
#undef CLASS

/* ---- checks: selftest_child.c ---- */

/* Whether the check of that name is this child's to do; then it is to end. */
bool selftest_begin(selftest *s, const char *fmt, ...) SD_PRINTF(2, 3);
/* Takes st.  NULL: right; UNIMPLEMENTED: refused; DATA_LOSS: a wrong value;
 * any other: the device is sick, and does not return. */
void selftest_end(selftest *s, sd_status st);
void selftest_say(selftest *s, const char *fmt, ...) SD_PRINTF(2, 3);
void selftest_note_figure(selftest *s, const char *name, const char *unit,
                          double value);
/* A child's whole life; never returns. */
_Noreturn void selftest_child(selftest *s, const selftest_class *c);

/* ---- programs: selftest_run.c ---- */

typedef struct {
    const char *text; /* HLO */
    size_t len;
    bool apart;       /* a kernel for each operation */
    void (*fill)(hlo_value *v, const char *name, int index);
    /* What is wrong with a result goes to why. */
    bool (*differs)(void *ctx, int out, const hlo_value *got,
                    const hlo_value *want, sd_buf *why);
    void *ctx;
} selftest_program;
/* The device's results against the evaluator's. */
sd_status selftest_compare(selftest *s, const selftest_program *p);
sd_status selftest_compile(selftest *s, const char *text, size_t len,
                           bool apart, thunk_program **out);
/* Compiled and loaded. */
sd_status selftest_load(selftest *s, const char *text, xpu_program **out);
sd_status selftest_give(selftest *s, sd_dtype t, int rank, const int64_t *dim,
                        const void *data, xpu_buffer **out);
sd_status selftest_take(xpu_buffer *b, void *to);
/* Executes and waits. */
sd_status selftest_execute(xpu_program *x, int narg, xpu_buffer *const *arg,
                           xpu_buffer **out);
sd_status selftest_wait(xpu_event *done); /* takes it */

#endif
