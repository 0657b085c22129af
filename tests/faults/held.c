/* What memory running out would lose.  An arena that has no more jumps past
 * every frame of the compile (sd_catch), which frees arenas and errors alone;
 * the same jump ends a compile that its user interrupts.  So whenever an arena
 * is asked inside the compile rooms, nothing else may be held that the frames
 * below would have freed.  Linked to a test, this watches all that the test
 * compiles (-Wl,--wrap=malloc and so on, see meson.build), on its own thread,
 * and ends the process at the first such place, with the stack. */
#include "base.h"
#include "frontend.h"
#include "passes.h"
#include "plan.h"
#include "target.h"

#include <llvm-c/Core.h>

#include <execinfo.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { MOST = 64, DEEP = 24 };

typedef struct {
    const void *at; /* NULL: free */
    void *stack[DEEP];
    int nstack;
} block;

static struct {
    block block[MOST]; /* made inside, by other than arenas and errors */
    int rooms;         /* how deep in the compile rooms */
    int excused;       /* how deep in functions whose memory is known */
    int nbuilder; /* of LLVM, but one of each context, freed as that is */
} watch;

static void tell(void *const *stack, int n, const char *what)
{
    fprintf(stderr, "%s:\n", what);
    backtrace_symbols_fd(stack, n, STDERR_FILENO);
}

static void hold(const void *p)
{
    if (!p || !watch.rooms || watch.excused)
        return;
    for (int i = 0; i < MOST; i++)
        if (!watch.block[i].at) {
            block *b = &watch.block[i];

            b->at = p;
            b->nstack = backtrace(b->stack, DEEP);
            return;
        }
    fprintf(stderr, "more blocks are held than can be watched\n");
    abort();
}

static void let_go(const void *p)
{
    for (int i = 0; p && i < MOST; i++)
        if (watch.block[i].at == p)
            watch.block[i].at = NULL;
}

static void asked(void)
{
    void *stack[DEEP];
    bool lost = false;

    if (!watch.rooms || watch.excused)
        return;
    for (int i = 0; i < MOST; i++)
        if (watch.block[i].at) {
            tell(watch.block[i].stack, watch.block[i].nstack,
                 "this would be lost");
            lost = true;
        }
    if (watch.nbuilder > 0)
        fprintf(stderr, "a builder of LLVM would be lost\n");
    if (!lost && watch.nbuilder <= 0)
        return;
    tell(stack, backtrace(stack, DEEP), "if no more came here");
    abort();
}

/* ---- the heap ---- */

#define REAL(type, name, params) \
    type __real_##name params; \
    type __wrap_##name params; \
    type __wrap_##name params

#define HEAP(type, name, params, args) \
    REAL(type, name, params) \
    { \
        type p = __real_##name args; \
\
        hold(p); \
        return p; \
    }

HEAP(void *, malloc, (size_t n), (n))
HEAP(void *, calloc, (size_t n, size_t size), (n, size))
HEAP(void *, aligned_alloc, (size_t align, size_t n), (align, n))
HEAP(char *, strdup, (const char *s), (s))

REAL(void *, realloc, (void *p, size_t n))
{
    void *q;

    let_go(p);
    q = __real_realloc(p, n);
    hold(q);
    return q;
}

REAL(void, free, (void *p))
{
    let_go(p);
    __real_free(p);
}

/* ---- what sd_catch frees ---- */

#define ASK(type, name, params, args) \
    REAL(type, name, params) \
    { \
        type p; \
\
        asked(); \
        watch.excused++; \
        p = __real_##name args; \
        watch.excused--; \
        return p; \
    }

ASK(sd_arena *, sd_arena_create, (void), ())
ASK(void *, sd_arena_alloc, (sd_arena * a, size_t n), (a, n))
ASK(void *, sd_arena_copy, (sd_arena * a, const void *from, size_t n),
    (a, from, n))
ASK(void *, sd_arena_grow, (sd_arena * a, void *at, size_t had, size_t n),
    (a, at, had, n))
ASK(char *, sd_arena_str, (sd_arena * a, const char *s, size_t n), (a, s, n))
ASK(char *, sd_arena_vfmt, (sd_arena * a, const char *fmt, va_list ap),
    (a, fmt, ap))
ASK(void *, sd_vec_grow, (sd_arena * a, void *at, int n, int *cap, size_t size),
    (a, at, n, cap, size))

REAL(char *, sd_arena_fmt, (sd_arena * a, const char *fmt, ...))
{
    va_list ap;
    char *p;

    va_start(ap, fmt);
    p = __wrap_sd_arena_vfmt(a, fmt, ap);
    va_end(ap);
    return p;
}

#define EXCUSED(type, name, params, args) \
    REAL(type, name, params) \
    { \
        type p; \
\
        watch.excused++; \
        p = __real_##name args; \
        watch.excused--; \
        return p; \
    }

EXCUSED(void *, sd_arena_try, (sd_arena * a, size_t n), (a, n))
EXCUSED(sd_status, sd_status_copy, (const sd_error *st), (st))

/* What takes a list of arguments without end is not called through. */
#define ERROR(name, params, last, ...) \
    REAL(sd_status, name, params) \
    { \
        char text[4096]; \
        sd_status st; \
        va_list ap; \
\
        va_start(ap, last); \
        vsnprintf(text, sizeof text, last, ap); \
        va_end(ap); \
        watch.excused++; \
        st = __real_##name(__VA_ARGS__, "%s", text); \
        watch.excused--; \
        return st; \
    }

ERROR(sd_error_make, (const char *where, sd_code code, const char *fmt, ...),
      fmt, where, code)
ERROR(sd_note, (sd_status old, const char *fmt, ...), fmt, old)

/* ---- the compile rooms ---- */

#define ROOM(name, params, args) \
    REAL(sd_status, name, params) \
    { \
        sd_status st; \
\
        watch.rooms++; \
        st = __real_##name args; \
        watch.rooms--; \
        return st; \
    }

ROOM(frontend_read,
     (sd_arena * a, const char *format, size_t len, sd_bytes program,
      hlo_module **out),
     (a, format, len, program, out))
ROOM(hlo_optimize,
     (hlo_module * m, const device_desc *dev, const sd_options *o,
      hlo_pass_hook hook, void *ctx),
     (m, dev, o, hook, ctx))
ROOM(plan_make,
     (sd_arena * a, hlo_module *m, const device_desc *dev, const sd_options *o,
      plan **out),
     (a, m, dev, o, out))
ROOM(target_check, (const plan *p), (p))
ROOM(target_build,
     (plan * p, const sd_options *o, sd_shelf *shelf, sd_pool *pool,
      target_hook hook, void *ctx),
     (p, o, shelf, pool, hook, ctx))

/* ---- LLVM ---- */

REAL(LLVMContextRef, LLVMContextCreate, (void))
{
    watch.nbuilder--;
    return __real_LLVMContextCreate();
}

REAL(void, LLVMContextDispose, (LLVMContextRef cx))
{
    watch.nbuilder++;
    __real_LLVMContextDispose(cx);
}

REAL(LLVMBuilderRef, LLVMCreateBuilderInContext, (LLVMContextRef cx))
{
    watch.nbuilder++;
    return __real_LLVMCreateBuilderInContext(cx);
}

REAL(void, LLVMDisposeBuilder, (LLVMBuilderRef b))
{
    watch.nbuilder--;
    __real_LLVMDisposeBuilder(b);
}
