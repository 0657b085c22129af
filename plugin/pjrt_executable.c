/* Executables: a program and the answers about it.  Handles are references to
 * one object, whose answers live as long as the last of them. */
#include "pjrt.h"

#include <stdio.h>

#define MAGIC     "SDEXECUT"
#define VERSION   1u
#define COST_NAME 32

/* Estimates of the steps, a loop as often as it is known to run. */
static void add_cost(const thunk_seq *s, double times, double *flops,
                     double *bytes)
{
    for (int i = 0; i < s->n; i++) {
        const thunk *t = &s->at[i];
        double n = t->kind == THUNK_WHILE && t->trip > 0 ? (double)t->trip : 1;

        *flops += times * t->flops;
        *bytes += times * t->bytes;
        for (int k = 0; k < t->nseq; k++)
            add_cost(&t->seq[k], times * n, flops, bytes);
    }
}

/* Outputs first, then parameters. */
static const thunk_type *type_at(const thunk_program *p, int i)
{
    return i < p->noutput ? &p->output[i] : &p->param[i - p->noutput];
}

static const char *memory_of(const thunk_type *t)
{
    return t->memory ? t->memory : xpu_memory_name[XPU_MEM_DEVICE];
}

/* Section "layouts": a byte a dimension, of the outputs, then of the
 * parameters; without it all are row-major.  The bytes may be anybody's. */
static sd_status read_layouts(PJRT_Executable *e)
{
    const thunk_program *p = e->p;
    const thunk_section *s = thunk_find_section(p, "layouts");
    int n = p->noutput + p->nparam;
    size_t at = 0, total = 0;

    if (!s)
        return NULL;
    for (int i = 0; i < n; i++)
        total += (size_t)type_at(p, i)->rank;
    if (s->bytes != total)
        return sd_error(SD_INVALID, "%s: layouts of %zu dimensions, not %zu",
                        p->name, s->bytes, total);
    e->order = calloc((size_t)n + 1, sizeof *e->order);
    e->orders = calloc(total + 1, sizeof *e->orders);
    if (!e->order || !e->orders)
        return sd_no_memory(total * sizeof *e->orders);
    for (int i = 0; i < n; i++) {
        int rank = type_at(p, i)->rank;
        uint32_t seen = 0;

        for (int k = 0; k < rank; k++) {
            int d = s->data[at + (size_t)k];

            if (d >= rank || (seen & 1u << d))
                return sd_error(SD_INVALID,
                                "%s: a layout that is no "
                                "permutation",
                                p->name);
            seen |= 1u << d;
            e->orders[at + (size_t)k] = d;
        }
        if (!pjrt_layout_same(e->orders + at, NULL, rank))
            e->order[i] = e->orders + at;
        at += (size_t)rank;
    }
    return NULL;
}

/* Section "shardings": OpSharding of the outputs, then of the parameters, each
 * after its length.  Without it arrays are whole, where one device has them. */
static sd_status read_shardings(PJRT_Executable *e)
{
    const thunk_program *p = e->p;
    const thunk_section *s = thunk_find_section(p, "shardings");
    int n = p->noutput + p->nparam;
    sd_cursor c;

    e->is_cut = s != NULL;
    if (!s)
        return NULL;
    c = sd_cursor_of((sd_bytes){s->data, s->bytes});
    for (int i = 0; i < n; i++) {
        sd_bytes b = sd_read_bytes(&c, sd_read_u32(&c));

        e->shardings[i] = (const char *)b.at;
        e->sharding_sizes[i] = b.len;
    }
    if (sd_cursor_left(&c))
        sd_cursor_fail(&c, "the end");
    return sd_cursor_status(&c, "shardings");
}

static bool fill_types(PJRT_Executable *e)
{
    const thunk_program *p = e->p;
    size_t no = (size_t)p->noutput, np = (size_t)p->nparam, ndim = 0;

    for (int i = 0; i < p->noutput; i++)
        ndim += (size_t)p->output[i].rank;
    e->types = calloc(no + 1, sizeof *e->types);
    e->dim_sizes = calloc(no + 1, sizeof *e->dim_sizes);
    e->dims = calloc(ndim + 1, sizeof *e->dims);
    e->kinds = calloc(no + np + 1, sizeof *e->kinds);
    e->kind_sizes = calloc(no + np + 1, sizeof *e->kind_sizes);
    e->layout = calloc(no + np + 1, sizeof *e->layout);
    e->layouts = calloc(no + np + 1, sizeof *e->layouts);
    e->shardings = calloc(no + np + 1, sizeof *e->shardings);
    e->sharding_sizes = calloc(no + np + 1, sizeof *e->sharding_sizes);
    if (!e->types || !e->dim_sizes || !e->dims || !e->kinds || !e->kind_sizes ||
        !e->layout || !e->layouts || !e->shardings || !e->sharding_sizes)
        return false;
    ndim = 0;
    for (size_t i = 0; i < no; i++) {
        const thunk_type *t = &p->output[i];

        e->types[i] = (PJRT_Buffer_Type)sd_dtype_table[t->dtype].pjrt;
        e->dim_sizes[i] = (size_t)t->rank;
        for (int k = 0; k < t->rank; k++)
            e->dims[ndim++] = t->dim[k];
    }
    for (size_t i = 0; i < no + np; i++) {
        const thunk_type *t = type_at(p, (int)i);

        e->kinds[i] = memory_of(t);
        e->kind_sizes[i] = strlen(e->kinds[i]);
        pjrt_layout_write(&e->layout[i], t->rank,
                          e->order ? e->order[i] : NULL);
        e->layouts[i] = &e->layout[i];
        e->shardings[i] = "";
    }
    return true;
}

/* By the names that frameworks know; {} stands for the whole of a value. */
static bool fill_cost(PJRT_Executable *e)
{
    const thunk_program *p = e->p;
    size_t n = (size_t)p->nparam + 3;
    double flops = 0, bytes = 0, out = 0;

    e->cost = calloc(n, sizeof *e->cost + COST_NAME);
    if (!e->cost)
        return false;
    add_cost(&p->seq, 1, &flops, &bytes);
    for (int i = 0; i < p->noutput; i++)
        out += (double)p->output[i].bytes;
    e->cost[0] = pjrt_named_float("flops", flops);
    e->cost[1] = pjrt_named_float("bytes accessed", bytes);
    e->cost[2] = pjrt_named_float("bytes accessedout{}", out);
    for (int i = 0; i < p->nparam; i++) {
        char *name = (char *)(e->cost + n) + i * COST_NAME;

        snprintf(name, COST_NAME, "bytes accessed%d{}", i);
        e->cost[3 + i] = pjrt_named_float(name, (double)p->param[i].bytes);
    }
    e->ncost = (int)n;
    return true;
}

sd_status pjrt_executable_make(thunk_program *p, sd_bytes options,
                               PJRT_Executable **out)
{
    PJRT_Executable *e = PJRT_NEW(PJRT_Executable);
    sd_status st;

    if (!e) {
        thunk_program_release(p);
        return sd_no_memory(sizeof *e);
    }
    e->refs = 1;
    e->p = p;
    sd_buf_add(&e->options, options.at, options.len);
    snprintf(e->fingerprint, sizeof e->fingerprint, "%016" PRIx64,
             p->fingerprint);
    for (int i = 0; i < p->nbinary; i++)
        e->code_bytes += (int64_t)p->binary[i].bytes;
    st = read_layouts(e);
    if (!st && (!fill_types(e) || !fill_cost(e) || e->options.oom))
        st = sd_no_memory(sizeof *e);
    if (!st)
        st = read_shardings(e);
    if (st) {
        pjrt_executable_release(e);
        return st;
    }
    *out = e;
    return NULL;
}

static PJRT_Executable *retain(PJRT_Executable *e)
{
    atomic_fetch_add_explicit(&e->refs, 1, memory_order_relaxed);
    return e;
}

void pjrt_executable_release(PJRT_Executable *e)
{
    if (!e || atomic_fetch_sub_explicit(&e->refs, 1, memory_order_acq_rel) != 1)
        return;
    thunk_program_release(e->p);
    sd_buf_finish(&e->options);
    free(e->cost);
    free(e->types);
    free(e->dims);
    free(e->dim_sizes);
    free(e->kinds);
    free(e->kind_sizes);
    free(e->layout);
    free(e->layouts);
    free((void *)e->order);
    free(e->orders);
    free(e->shardings);
    free(e->sharding_sizes);
    free(e);
}

/* ---- saved: magic, version, compile options, their sum, the program ---- */

sd_status pjrt_executable_save(const PJRT_Executable *e, sd_buf *out)
{
    sd_buf program = {0}, b = {0};
    sd_status st = thunk_save(e->p, &program);

    if (st)
        return st;
    sd_buf_add(&b, MAGIC, 8);
    sd_buf_u32(&b, VERSION);
    sd_buf_u64(&b, e->options.len);
    sd_buf_u64(&b, sd_hash(e->options.at, e->options.len, VERSION));
    sd_buf_add(&b, e->options.at, e->options.len);
    sd_buf_add(&b, program.at, program.len);
    sd_buf_finish(&program);
    if (b.oom) {
        sd_buf_finish(&b);
        return sd_no_memory(e->options.len);
    }
    *out = b;
    return NULL;
}

sd_status pjrt_executable_restore(sd_bytes b, PJRT_Executable **out)
{
    sd_cursor c = sd_cursor_of(b);
    sd_bytes magic = sd_read_bytes(&c, 8), options;
    uint32_t version = sd_read_u32(&c);
    uint64_t bytes = sd_read_u64(&c), sum = sd_read_u64(&c);
    thunk_program *p;
    sd_status st;

    if (magic.len < 8 || memcmp(magic.at, MAGIC, 8))
        return sd_error(SD_INVALID,
                        "%zu bytes that are no executable of "
                        "sundog",
                        b.len);
    if (version != VERSION)
        return sd_error(SD_INVALID,
                        "an executable of version %u, this library "
                        "reads %u",
                        version, VERSION);
    options = sd_read_bytes(&c, bytes);
    if ((st = sd_cursor_status(&c, "executable")))
        return st;
    if (sd_hash(options.at, options.len, VERSION) != sum)
        return sd_error(SD_DATA_LOSS, "executable: its compile options are "
                                      "damaged");
    if ((st = thunk_load((sd_bytes){c.at, sd_cursor_left(&c)}, &p)))
        return st;
    return pjrt_executable_make(p, options, out);
}

/* ---- answers ---- */

PJRT_Error *pjrt_loaded_executable_get_executable(
    PJRT_LoadedExecutable_GetExecutable_Args *a)
{
    a->executable = retain(a->loaded_executable->exe);
    return NULL;
}

PJRT_Error *
pjrt_executable_output_dimensions(PJRT_Executable_OutputDimensions_Args *a)
{
    a->num_outputs = (size_t)a->executable->p->noutput;
    a->dims = a->executable->dims;
    a->dim_sizes = a->executable->dim_sizes;
    return NULL;
}

PJRT_Error *
pjrt_executable_output_memory_kinds(PJRT_Executable_OutputMemoryKinds_Args *a)
{
    a->num_outputs = (size_t)a->executable->p->noutput;
    a->memory_kinds = a->executable->kinds;
    a->memory_kind_sizes = a->executable->kind_sizes;
    return NULL;
}

PJRT_Error *pjrt_executable_parameter_memory_kinds(
    PJRT_Executable_ParameterMemoryKinds_Args *a)
{
    a->num_parameters = (size_t)a->executable->p->nparam;
    a->memory_kinds = a->executable->kinds + a->executable->p->noutput;
    a->memory_kind_sizes =
        a->executable->kind_sizes + a->executable->p->noutput;
    return NULL;
}

/* On one device every array is whole.  A program of several that was not cut
 * says nothing (NULL), and the framework looks elsewhere. */
static bool has_shardings(const PJRT_Executable *e)
{
    return e->is_cut || e->p->npartition == 1;
}

PJRT_Error *pjrt_shardings_pjrt_executable_parameter_shardings(
    PJRT_Shardings_PJRT_Executable_ParameterShardings_Args *a)
{
    const PJRT_Executable *e = a->executable;
    bool has = has_shardings(e);

    a->num_parameters = has ? (size_t)e->p->nparam : 0;
    a->shardings = has ? e->shardings + e->p->noutput : NULL;
    a->sharding_sizes = has ? e->sharding_sizes + e->p->noutput : NULL;
    return NULL;
}

PJRT_Error *pjrt_shardings_pjrt_executable_output_shardings(
    PJRT_Shardings_PJRT_Executable_OutputShardings_Args *a)
{
    const PJRT_Executable *e = a->executable;
    /* no outputs are one empty tuple to the framework, which wants one entry */
    bool has = has_shardings(e) && e->p->noutput > 0;

    a->num_outputs = has ? (size_t)e->p->noutput : 0;
    a->shardings = has ? e->shardings : NULL;
    a->sharding_sizes = has ? e->sharding_sizes : NULL;
    return NULL;
}

typedef struct {
    int64_t arg[2], out[2], alias[2];
} sizes;

/* [0] on the device, [1] in host memory. */
static sizes count_bytes(const thunk_program *p)
{
    sizes s = {0};

    for (int i = 0; i < p->nparam; i++)
        s.arg[!!strcmp(memory_of(&p->param[i]), "device")] +=
            (int64_t)p->param[i].bytes;
    for (int i = 0; i < p->noutput; i++)
        s.out[!!strcmp(memory_of(&p->output[i]), "device")] +=
            (int64_t)p->output[i].bytes;
    for (int i = 0; i < p->nbuffer; i++)
        if (p->buffer[i].kind == THUNK_B_OUTPUT && p->buffer[i].alias >= 0)
            s.alias[!!strcmp(memory_of(&p->output[p->buffer[i].index]),
                             "device")] += (int64_t)p->buffer[i].bytes;
    return s;
}

PJRT_Error *pjrt_executable_get_compiled_memory_stats(
    PJRT_Executable_GetCompiledMemoryStats_Args *a)
{
    const thunk_program *p = a->executable->p;
    sizes s = count_bytes(p);
    bool host = p->device.kind == DEVICE_HOST;
    int64_t constants = (int64_t)p->constant_bytes;
    int64_t temp = (int64_t)p->temp_bytes;
    int64_t total = s.arg[0] + s.out[0] - s.alias[0] + temp + constants;

    a->generated_code_size_in_bytes = host ? 0 : a->executable->code_bytes;
    a->argument_size_in_bytes = s.arg[0];
    a->output_size_in_bytes = s.out[0];
    a->alias_size_in_bytes = s.alias[0];
    a->temp_size_in_bytes = temp;
    a->host_generated_code_size_in_bytes = host ? a->executable->code_bytes : 0;
    a->host_argument_size_in_bytes = s.arg[1];
    a->host_output_size_in_bytes = s.out[1];
    a->host_alias_size_in_bytes = s.alias[1];
    a->host_temp_size_in_bytes = 0;
    if (PJRT_HAS(a, peak_memory_in_bytes))
        a->peak_memory_in_bytes = total;
    if (PJRT_HAS(a, total_size_in_bytes))
        a->total_size_in_bytes = total;
    if (PJRT_HAS(a, total_allocation_bytes))
        a->total_allocation_bytes = total;
    if (PJRT_HAS(a, indefinite_allocations))
        a->indefinite_allocations = constants;
    if (PJRT_HAS(a, peak_unpadded_heap_bytes))
        a->peak_unpadded_heap_bytes = temp;
    return NULL;
}

/* Asked twice: for the size, then for the bytes. */
PJRT_Error *
pjrt_executable_optimized_program(PJRT_Executable_OptimizedProgram_Args *a)
{
    static const char format[] = "hlo_with_config";
    const thunk_section *s = thunk_find_section(a->executable->p, "hlo_proto");
    PJRT_Program *p = a->program;

    if (!s)
        return pjrt_return(sd_error(SD_UNIMPLEMENTED,
                                    "%s carries no HLO "
                                    "protobuf",
                                    a->executable->p->name));
    if (p->code) {
        if (p->code_size < s->bytes)
            return pjrt_return(sd_error(SD_INVALID,
                                        "%zu bytes of room for "
                                        "%zu",
                                        p->code_size, s->bytes));
        memcpy(p->code, s->data, s->bytes);
    }
    p->code_size = s->bytes;
    p->format = format;
    p->format_size = sizeof format - 1;
    return NULL;
}

static void free_serialized(PJRT_SerializedExecutable *s)
{
    pjrt_bytes_free((pjrt_bytes *)s);
}

PJRT_Error *pjrt_executable_serialize(PJRT_Executable_Serialize_Args *a)
{
    sd_buf b = {0};
    sd_status st = pjrt_executable_save(a->executable, &b);
    pjrt_bytes *holder;
    PJRT_Error *e = pjrt_bytes_hand(st, &b, &a->serialized_bytes,
                                    &a->serialized_bytes_size, &holder);

    if (e)
        return e;
    a->serialized_executable = (PJRT_SerializedExecutable *)holder;
    a->serialized_executable_deleter = free_serialized;
    return NULL;
}

struct PJRT_SerializedCompileOptions {
    PJRT_Executable *exe; /* a reference: the bytes are its own */
};

static void free_options(PJRT_SerializedCompileOptions *s)
{
    pjrt_executable_release(s->exe);
    free(s);
}

PJRT_Error *
pjrt_executable_get_compile_options(PJRT_Executable_GetCompileOptions_Args *a)
{
    PJRT_SerializedCompileOptions *s = PJRT_NEW(PJRT_SerializedCompileOptions);

    if (!s)
        return pjrt_no_memory();
    s->exe = retain(a->executable);
    a->serialized_bytes = s->exe->options.at ? s->exe->options.at : "";
    a->serialized_bytes_size = s->exe->options.len;
    a->serialized_compile_options = s;
    a->serialized_compile_options_deleter = free_options;
    return NULL;
}
