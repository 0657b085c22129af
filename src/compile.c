/* The road of a program, one call a stage.  Start reading here. */
#include "compile.h"

#include "compile_dump.h"
#include "compile_partition.h"
#include "frontend.h"
#include "hlo_sharding.h"
#include "interface.h"
#include "passes.h"
#include "plan.h"
#include "target.h"

#include <fenv.h>

const char sundog_interface[] = SUNDOG_INTERFACE;

/* The options say how many run it; a module may say so, too, and is cut as it
 * says: its meshes are of so many. */
static sd_status take_participants(hlo_module *m, const frontend_options *fo)
{
    if ((int64_t)fo->nreplica * fo->npartition <= 1)
        return NULL;
    if (fo->open_param.n)
        m->open_param = fo->open_param;
    if (fo->open_output.n)
        m->open_output = fo->open_output;
    if (fo->nreplica == m->nreplica && fo->npartition == m->npartition)
        return NULL;
    if (hlo_participants(m) > 1)
        return sd_error(SD_INVALID,
                        "%s is of %d replicas and %d partitions, the options "
                        "are for %d and %d",
                        m->name, m->nreplica, m->npartition, fo->nreplica,
                        fo->npartition);
    m->nreplica = fo->nreplica;
    m->npartition = fo->npartition;
    m->mesh = NULL;
    return NULL;
}

/* Orders of dimensions, minor to major, a byte each: of the outputs, then of
 * the parameters.  Nothing when all are row-major. */
static void add_layouts(const plan *p)
{
    const thunk_program *t = p->program;
    int n = t->noutput + t->nparam;
    sd_buf b = {.arena = p->m->arena};
    bool any = false;

    for (int i = 0; i < n; i++) {
        const hlo_dims *list =
            i < t->noutput ? p->m->output_layout : p->m->param_layout;
        int k = i < t->noutput ? i : i - t->noutput;
        int rank = i < t->noutput ? t->output[k].rank : t->param[k].rank;

        for (int j = 0; j < rank; j++)
            sd_buf_u8(&b, (uint8_t)(list && list[k].n ? list[k].at[j]
                                                      : rank - 1 - j));
        any |= list && list[k].n;
    }
    if (any)
        thunk_add_section(p->program, "layouts", b.at, b.len);
}

/* OpSharding of the outputs, then of the parameters, each after its length: of
 * a program that was cut. */
static void add_shardings(const plan *p)
{
    const hlo_module *m = p->m;
    const thunk_program *t = p->program;
    sd_buf b = {.arena = m->arena};

    if (!m->param_sharding || !m->output_sharding)
        return;
    for (int i = 0; i < t->noutput + t->nparam; i++) {
        const hlo_sharding *s = i < t->noutput
                                    ? m->output_sharding[i]
                                    : m->param_sharding[i - t->noutput];
        sd_buf one = {.arena = m->arena};

        hlo_sharding_proto(&one, s);
        sd_buf_u32(&b, (uint32_t)one.len);
        sd_buf_add(&b, one.at, one.len);
    }
    thunk_add_section(p->program, "shardings", b.at, b.len);
}

/* What PJRT is asked about later travels with the program, opaque to thunk:
 * the options, and the optimized module, without the elements of big constants
 * (weights would be megabytes).  Writing it takes less than 1 % of a compile.
 */
static void add_sections(const plan *p, const compile_request *rq)
{
    const hlo_module *m = p->m;
    thunk_program *t = p->program;
    sd_buf proto = {.arena = m->arena};

    thunk_add_section(t, "options", rq->options.at, rq->options.len);
    add_layouts(p);
    add_shardings(p);
    hlo_proto_write(&proto, m->shown ? m->shown : m, true, 64);
    thunk_add_section(t, "hlo_proto", proto.at, proto.len);
}

static void pass_hook(void *ctx, const char *pass, const hlo_module *m)
{
    compile_dump_pass(ctx, pass, m);
}

static void target_text(void *ctx, const char *kind, const void *data,
                        size_t bytes)
{
    compile_dump_bytes(ctx, kind, data, bytes);
}

static sd_options environment(const compile_services *sv)
{
    sd_options o = {0};

    if (sv->env)
        return *sv->env;
    sd_options_from_env(&o);
    return o;
}

/* One for the same program, device and settings that change code. */
static uint64_t fingerprint(const compile_request *rq, const sd_options *o)
{
    uint64_t h = sd_hash(rq->device, sizeof *rq->device, sd_options_key(o));

    return sd_hash(rq->program.at, rq->program.len, h);
}

/* ---- where the time goes ---- */

typedef enum { T_READ, T_PASSES, T_PLAN, T_CODE, T_COUNT } stage;

typedef struct {
    uint64_t last, ns[T_COUNT];
} stage_times;

static void ends(stage_times *t, stage s)
{
    uint64_t now = sd_now_ns();

    t->ns[s] += now - t->last;
    t->last = now;
}

static double ms_of(const stage_times *t, stage s)
{
    return (double)t->ns[s] * 1e-6;
}

static void log_times(const stage_times *t, const char *name)
{
    sd_log(SD_LOG_DEBUG,
           "%s: reading %.2f ms, passes %.2f ms, plan %.2f ms, code %.2f ms",
           name, ms_of(t, T_READ), ms_of(t, T_PASSES), ms_of(t, T_PLAN),
           ms_of(t, T_CODE));
}

typedef struct {
    const compile_request *rq;
    const compile_services *sv;
    compile_dump dump;
    thunk_program *out;
    bool told; /* its error says what was compiled */
} job;

static sd_status compile(sd_arena *a, job *j, plan **p)
{
    const compile_request *rq = j->rq;
    const compile_services *sv = j->sv;
    compile_dump *dump = &j->dump;
    frontend_options fo = {.options = environment(sv)};
    stage_times times = {.last = sd_now_ns()};
    hlo_partitioner by = compile_partitioner_of(sv->partitioner);
    hlo_module *m;
    sd_status st;

    if ((st = frontend_read_options(a, rq->options, &fo)))
        return st;
    if ((st = frontend_read(a, rq->format, rq->format_len, rq->program, &m)))
        return st;
    if ((st = take_participants(m, &fo)))
        return sd_note(st, "compiling %s for %s", m->name, rq->device->name);
    m->partitioner = sv->partitioner ? &by : NULL;
    compile_dump_open(dump, &fo.options, m->name);
    compile_dump_module(dump, "before_optimizations", m);
    ends(&times, T_READ);
    if ((st = hlo_optimize(m, rq->device, &fo.options,
                           dump->on ? pass_hook : NULL, dump)))
        goto done;
    ends(&times, T_PASSES);
    if ((st = plan_make(a, m, rq->device, &fo.options, p)))
        goto done;
    compile_dump_module(dump, "after_optimizations", m);
    compile_dump_plan(dump, *p);
    add_sections(*p, rq);
    ends(&times, T_PLAN);
    if ((st = target_build(*p, &fo.options, sv->shelf, sv->pool,
                           dump->on ? target_text : NULL, dump)))
        goto done;
    ends(&times, T_CODE);
    compile_dump_thunks(dump, (*p)->program);
    log_times(&times, m->name);
    (*p)->program->fingerprint = fingerprint(rq, &fo.options);
done:
    return sd_note(st, "compiling %s for %s", m->name, rq->device->name);
}

static sd_status run(void *ctx)
{
    job *j = ctx;
    const compile_request *rq = j->rq;
    /* all but the result lives and dies here */
    sd_arena *a = sd_arena_create();
    uint64_t start = sd_now_ns();
    plan *p = NULL;
    sd_status st = compile(a, j, &p);

    j->told = true;
    if (!st) {
        j->out = p->program;
        p->program = NULL;
        sd_log(SD_LOG_INFO, "compiled %s for %s in %.2f ms: %d kernels",
               j->out->name, rq->device->name,
               (double)(sd_now_ns() - start) * 1e-6, j->out->nkernel);
    }
    plan_destroy(p);
    sd_arena_destroy(a);
    return st;
}

static size_t most_memory(const compile_services *sv)
{
    sd_options o = environment(sv);
    int64_t most = sd_opt_int(&o, SD_OPT_COMPILE_MEMORY);

    if (most)
        return (size_t)most << 20;
    return (size_t)(sv->memory ? sv->memory : sd_memory_size()) / 2;
}

/* A program that asks for more than there is ends here, not the process. */
sd_status sundog_compile(const compile_request *rq, const compile_services *sv,
                         thunk_program **out)
{
    job j = {.rq = rq, .sv = sv};
    fenv_t caller;
    sd_status st;

    /* jaxlib calls with subnormals flushed to zero: not in our constants */
    fegetenv(&caller);
    fesetenv(FE_DFL_ENV);
    st = sd_catch(sv->stop.asked ? &sv->stop : NULL, most_memory(sv), run, &j);
    fesetenv(&caller);
    if (sv->undumped)
        *sv->undumped = j.dump.failed;
    compile_dump_close(&j.dump);
    if (!st)
        *out = j.out;
    else if (st->code == SD_CANCELLED && !j.told)
        st = sd_note(st, "compiling for %s", rq->device->name);
    else if (st->code == SD_EXHAUSTED)
        st = sd_note(st,
                     "compiling for %s (SUNDOG_COMPILE_MEMORY sets the "
                     "limit in MiB)",
                     rq->device->name);
    return st;
}
