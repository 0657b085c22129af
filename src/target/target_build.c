/* Kernels become binaries in batches: a batch is one LLVM context, one module
 * and one binary, made by one worker.  Batches are cut by the kernels alone
 * and their binaries added in order, so a program has the same bytes for any
 * number of threads. */
#include <stdio.h>

#include "target_module.h"

typedef struct {
    const plan *p;
    const int *kernel; /* numbers */
    int count;
    bool quick;
    bool large; /* plan_kernel's, of all of them */
    target_module mod;
    sd_status st;
    const sd_stop *stop; /* of the compile; borrowed */
} batch;

/* ---- where the time goes ---- */

static void log_ns(const char *what, const uint64_t *ns)
{
    const double ms = 1e-6;

    sd_log(SD_LOG_DEBUG, "%s: IR %.2f ms, passes %.2f ms, machine code %.2f ms",
           what, (double)ns[T_EMIT] * ms, (double)ns[T_CLEAN] * ms,
           (double)ns[T_CODE] * ms);
}

/* Each batch, then quick and careful ones together: processor time. */
static void log_times(const plan *p, const batch *b, int n)
{
    uint64_t sum[2][T_COUNT] = {{0}};
    int kernels[2] = {0};
    char what[160];

    for (int i = 0; i < n; i++) {
        const plan_kernel *k = p->kernel[b[i].kernel[0]];

        snprintf(what, sizeof what, "%s and %d more, %s", k->name,
                 b[i].count - 1, b[i].quick ? "quick" : "careful");
        log_ns(what, b[i].mod.ns);
        kernels[b[i].quick] += b[i].count;
        for (int t = 0; t < T_COUNT; t++)
            sum[b[i].quick][t] += b[i].mod.ns[t];
    }
    for (int q = 0; q < 2; q++) {
        snprintf(what, sizeof what, "%d %s kernels", kernels[q],
                 q ? "quick" : "careful");
        log_ns(what, sum[q]);
    }
}

/* ---- a batch ---- */

static void emit_types(emit *e, const target_module *mod)
{
    LLVMContextRef cx = e->cx;

    e->i1 = LLVMInt1TypeInContext(cx);
    e->i8 = LLVMInt8TypeInContext(cx);
    e->i16 = LLVMInt16TypeInContext(cx);
    e->i32 = LLVMInt32TypeInContext(cx);
    e->i64 = LLVMInt64TypeInContext(cx);
    e->f32 = LLVMFloatTypeInContext(cx);
    e->f64 = LLVMDoubleTypeInContext(cx);
    e->global_as = mod->ops->global_as;
    e->local_as = mod->ops->local_as;
    e->ptr = LLVMPointerTypeInContext(cx, e->global_as);
}

static sd_status check_type(const device_desc *dev, sd_dtype t)
{
    if (sd_dtype_part(t) == SD_F64 && !(dev->features & DEVICE_HAS_F64))
        return sd_error(SD_UNIMPLEMENTED,
                        "f64 on %s, which has none: use f32 (JAX without "
                        "jax_enable_x64) or SUNDOG_DEVICE=host",
                        dev->name);
    return NULL;
}

static sd_status check_types(const device_desc *dev, const plan_kernel *k)
{
    sd_status st = NULL;

    for (int i = 0; i < k->nnode && !st; i++)
        st = check_type(dev, k->node[i]->dtype);
    for (int i = 0; k->call && i < k->nslot && !st; i++)
        st = check_type(dev, k->slot[i].dtype);
    return sd_note(st, "kernel %s", k->name);
}

/* To IR.  What emitters know of the device beside what the plan says is in
 * these fields, its device library and the address spaces. */
static sd_status emit_batch(batch *b)
{
    const device_desc *dev = &b->p->program->device;
    target_module *mod = &b->mod;
    emit e = {.device = dev->name,
              .vector_bits = 32 * (unsigned)dev->lanes,
              .gpu = dev->kind != DEVICE_HOST,
              .quick = b->quick};
    sd_status st;

    target_module_init(mod, dev);
    e.devlib = mod->ops->devlib(dev);
    e.abi = mod->ops->abi;
    e.a = sd_arena_create();
    e.cx = mod->cx;
    e.m = mod->m =
        LLVMModuleCreateWithNameInContext(b->p->program->name, mod->cx);
    e.b = mod->b = LLVMCreateBuilderInContext(mod->cx);
    st = target_module_machine(mod, b->quick);
    if (b->quick)
        target_module_flag_quick(mod);
    if (mod->ops->prepare)
        mod->ops->prepare(mod->m, mod->cx);
    emit_types(&e, mod);
    for (int i = 0; i < b->count && !st; i++) {
        const plan_kernel *k = b->p->kernel[b->kernel[i]];

        st = check_types(dev, k);
        if (!st)
            st = emit_kernel(&e, k);
    }
    mod->clean = b->quick         ? TARGET_PLAIN
                 : e.loops        ? TARGET_LOOPS
                 : e.calls_devlib ? TARGET_CALLS
                                  : TARGET_PLAIN;
    sd_arena_destroy(e.a);
    return st;
}

static sd_status build_batch(void *ctx)
{
    batch *b = ctx;
    sd_status st;

    b->mod.since = sd_thread_ns();
    if ((st = sd_stopped()) || (st = emit_batch(b)) || (st = sd_stopped()))
        return st;
    target_part_ends(&b->mod, T_EMIT);
    return target_module_compile(&b->mod);
}

/* On any thread: memory that runs out is this batch's error. */
static void run_batch(void *ctx, int64_t i, int worker)
{
    batch *b = (batch *)ctx + i;

    (void)worker;
    b->st = sd_catch(b->stop, 0, build_batch, b);
    target_module_put_machine(&b->mod); /* before the next batch wants one */
}

typedef struct {
    plan *p;
    const batch *b;
    int n;
    target_hook hook;
    void *ctx;
} taking;

/* Text, or n bytes; of the kernels that have more registers by another name. */
static void give(const taking *t, const batch *b, const char *kind,
                 const char *data, size_t n)
{
    char name[32];

    if (!t->hook || !data)
        return;
    snprintf(name, sizeof name, "%s%s", b->large ? "large." : "", kind);
    t->hook(t->ctx, name, data, n);
}

static void give_text(const taking *t, const batch *b, const char *kind,
                      const char *text)
{
    if (text)
        give(t, b, kind, text, strlen(text));
}

static void take_batch(const taking *t, const batch *b)
{
    plan *p = t->p;
    const target_module *mod = &b->mod;
    const char *data = LLVMGetBufferStart(mod->binary);
    size_t bytes = LLVMGetBufferSize(mod->binary);
    int binary = thunk_add_binary(
        p->program, b->large ? mod->ops->large_kind : mod->ops->kind, data,
        bytes);

    for (int i = 0; i < b->count; i++)
        p->program->kernel[b->kernel[i]].binary = binary;
    give_text(t, b, "ir-no-opt.ll", mod->no_opt);
    give_text(t, b, "ir-with-opt.ll", mod->with_opt);
    if (mod->asm_text)
        give(t, b, "s", LLVMGetBufferStart(mod->asm_text),
             LLVMGetBufferSize(mod->asm_text));
    if (mod->ops->dump)
        give(t, b, mod->ops->dump, data, bytes);
}

static sd_status take_all(void *ctx)
{
    const taking *t = ctx;

    for (int i = 0; i < t->n; i++)
        take_batch(t, &t->b[i]);
    return NULL;
}

/* ---- quick code ---- */

/* By an estimate that is far too high for vectors.  Quick code keeps little in
 * registers.  Of loops the estimate is of steps that are inlined and kept
 * there: 10,000 turns of two scalars take 71 us in quick code, 22 in careful
 * code. Products in blocks keep their sums there: 32 x 64 x 64, for which the
 * estimate is 33 us, takes 11 us in quick code and 3 in careful code, which
 * takes 2 ms more to compile.  The updates of a scatter are no vectors: 50,000
 * sums, for which the estimate is 34 us, take 63 us and 28. */
enum {
    QUICK_NS = 50000,
    QUICK_BLOCKS_NS = 8000,
    QUICK_SCATTER_NS = 8000,
    QUICK_LOOP_NS = 2000
};

static double most_quick_ns(const plan_kernel *k)
{
    if (k->loop)
        return QUICK_LOOP_NS;
    if (k->cls == PLAN_SCATTERING)
        return QUICK_SCATTER_NS;
    return k->blocks ? QUICK_BLOCKS_NS : QUICK_NS;
}

/* How often the loops around a kernel turn in one run. */
static void note_turns(const thunk_seq *s, double now, double *turns)
{
    for (int i = 0; i < s->n; i++) {
        const thunk *t = &s->at[i];
        double inner =
            t->kind == THUNK_WHILE ? thunk_turns_inside(t->trip, now) : now;

        if (t->kernel >= 0)
            turns[t->kernel] = SD_MAX(turns[t->kernel], now);
        for (int j = 0; j < t->nseq; j++)
            note_turns(&t->seq[j], inner, turns);
    }
}

/* It does not run for long, all turns of one run together. */
static bool is_quick(const target_ops *ops, const plan_kernel *k, double turns)
{
    if (!ops->on_host)
        return false;
    if (k->call) /* its work is in code that the build made */
        return true;
    if (k->loop && (!k->loop->counted || k->loop->sorts))
        return false;
    /* a sort by keys is machine code of the build */
    return !(k->sort && !k->sort->keys) &&
           turns * target_guess_ns(k) <= most_quick_ns(k);
}

/* ---- batches ---- */

typedef struct {
    int *kernel; /* numbers: those that are quick to compile come first */
    batch *b;
    int n;
} batches;

/* A batch costs some 0.4 ms beside its kernels.  Of a few kernels each thread
 * should still get some; a careful kernel takes several milliseconds. */
static int batch_size(int nkernel, bool quick)
{
    return quick ? SD_MAX(2, SD_MIN(nkernel / 4, 8))
                 : SD_MAX(1, SD_MIN(nkernel / 8, 4));
}

static void cut(batches *all, const plan *p, const int *kernel, int n,
                bool quick, int each)
{
    for (int i = 0; i < n; i += each) {
        batch *b = &all->b[all->n++];

        b->p = p;
        b->kernel = kernel + i;
        b->count = SD_MIN(each, n - i);
        b->quick = quick;
    }
}

/* What makes machine code of a GPU's text takes 50 to 300 ms for a product in
 * blocks or an attention, 10 to 40 for most others, and works on as many texts
 * as there are threads. */
static bool is_long(const target_ops *ops, const plan_kernel *k)
{
    return !ops->on_host && (k->blocks || k->attend);
}

/* The long ones first and each alone: threads end together. */
static void cut_careful(batches *all, const plan *p, const target_ops *ops,
                        int *kernel, int n)
{
    int *rest = sd_arena_array(p->arena, int, n + 1), nlong = 0, nrest = 0;
    int each = batch_size(n, false);

    for (int i = 0; i < n; i++)
        if (is_long(ops, p->kernel[kernel[i]]))
            kernel[nlong++] = kernel[i];
        else
            rest[nrest++] = kernel[i];
    memcpy(kernel + nlong, rest, (size_t)nrest * sizeof *rest);
    cut(all, p, kernel, nlong, false, 1);
    cut(all, p, kernel + nlong, nrest, false, each);
}

/* One module, and one of the kernels that have more registers. */
static void cut_by_registers(batches *all, const plan *p, bool quick)
{
    int n = 0, large = 0;

    for (int i = 0; i < p->nkernel; i++)
        if (!p->kernel[i]->large)
            all->kernel[n++] = i;
    for (int i = 0; i < p->nkernel; i++)
        if (p->kernel[i]->large)
            all->kernel[n + large++] = i;
    cut(all, p, all->kernel, n, quick, SD_MAX(n, 1));
    if (large) {
        cut(all, p, all->kernel + n, large, quick, large);
        all->b[all->n - 1].large = true;
    }
}

/* quick: some may be.  together: as one module, with care unless all are
 * quick. */
static batches make_batches(const plan *p, const target_ops *ops, bool quick,
                            bool together)
{
    int n = p->nkernel, nquick = 0, ncareful = 0;
    batches all = {sd_arena_array(p->arena, int, n + 1),
                   sd_arena_array(p->arena, batch, n + 1), 0};
    int *careful = sd_arena_array(p->arena, int, n + 1);
    double *turns = sd_arena_array(p->arena, double, n + 1);

    for (int i = 0; i < n; i++)
        turns[i] = 1;
    note_turns(&p->program->seq, 1, turns);
    for (int i = 0; i < n; i++)
        if (quick && is_quick(ops, p->kernel[i], turns[i]))
            all.kernel[nquick++] = i;
        else
            careful[ncareful++] = i;
    memcpy(all.kernel + nquick, careful, (size_t)ncareful * sizeof *careful);
    if (together) {
        cut_by_registers(&all, p, !ncareful);
        return all;
    }
    cut_careful(&all, p, ops, all.kernel + nquick, ncareful);
    cut(&all, p, all.kernel, nquick, true, batch_size(nquick, true));
    return all;
}

/* Where each operation is to have a kernel of its own, loops and branches stay
 * steps. */
static const target_ops *loops_first(plan *p, const sd_options *opt)
{
    const target_ops *ops = target_ops_of(p->program->device.kind);

    if (!opt || sd_opt_bool(opt, SD_OPT_FUSE))
        target_loops(p);
    return ops;
}

sd_status target_build(plan *p, const sd_options *opt, sd_shelf *shelf,
                       sd_pool *pool, target_hook hook, void *ctx)
{
    const target_ops *ops = loops_first(p, opt);
    bool quick = !opt || sd_opt_bool(opt, SD_OPT_QUICK);
    batches all = make_batches(p, ops, quick, hook || ops->one_module);
    taking t = {p, all.b, all.n, hook, ctx};
    batch *b = all.b;
    int n = all.n;
    sd_status st = NULL;

    for (int i = 0; i < n; i++) {
        b[i].mod.want_text = hook != NULL;
        b[i].mod.shelf = shelf;
        b[i].stop = sd_stop_current();
    }
    if (pool && n > 1)
        sd_pool_run(pool, n, run_batch, b);
    else
        for (int i = 0; i < n; i++)
            run_batch(b, i, 0);
    for (int i = 0; i < n; i++) {
        if (b[i].st && !st)
            st = b[i].st;
        else
            sd_status_free(b[i].st);
    }
    log_times(p, b, n);
    if (!st) /* caught here: LLVM's objects are no arena's */
        st = sd_catch_oom(take_all, &t);
    for (int i = 0; i < n; i++)
        target_module_finish(&b[i].mod);
    return st;
}

sd_status target_check(const plan *p)
{
    batches all =
        make_batches(p, target_ops_of(p->program->device.kind), true, false);
    sd_status st = NULL;

    for (int i = 0; i < all.n && !st; i++) {
        st = emit_batch(&all.b[i]);
        if (!st)
            st = target_module_verify(&all.b[i].mod);
        target_module_finish(&all.b[i].mod);
    }
    return st;
}
