/* The passes speak of instructions and shardings, frameworks of protobuf's and
 * MLIR's bytes. */
#include "compile_partition.h"

#include "frontend.h"

typedef struct {
    const hlo_inst *in;
    const hlo_sharding **arg, **result;
    hlo_module **out;
    const compile_parted *answer;
} question;

static sd_bytes bytes_of(sd_buf *b)
{
    size_t len = b->len;

    return (sd_bytes){(const uint8_t *)sd_buf_take(b), len};
}

static compile_aval aval_of(sd_arena *a, const sd_shape *shape,
                            const hlo_sharding *const *s)
{
    bool tuple = shape->dtype == SD_TUPLE;
    sd_buf b = {.arena = a};
    compile_aval to;

    hlo_shape_proto(&b, shape);
    to.shape = bytes_of(&b);
    hlo_shardings_proto(&b, s, tuple ? shape->nelem : 1, tuple);
    to.sharding = bytes_of(&b);
    return to;
}

/* What a participant runs, and how its values are cut. */
static sd_status read_answer(void *ctx)
{
    const question *q = ctx;
    const compile_parted *p = q->answer;
    hlo_module *m = q->in->parent->module;
    const sd_shape *s = q->in->shape;
    bool tuple = s->dtype == SD_TUPLE;
    int n = tuple ? s->nelem : 1;
    int *rank = sd_arena_array(m->arena, int, n + 1);
    sd_status st;

    for (int i = 0; i < q->in->narg; i++)
        if ((st = hlo_shardings_of_proto(
                 m, p->arg[i], 1, &q->in->arg[i]->shape->rank, &q->arg[i])))
            return st;
    for (int i = 0; i < n; i++)
        rank[i] = tuple ? s->elem[i]->rank : s->rank;
    if ((st = hlo_shardings_of_proto(m, p->result, n, rank, q->result)) ||
        (st = frontend_read_part(m->arena, p->body, m, q->out)))
        return st;
    return hlo_verify(*q->out);
}

/* A lack of memory must not jump over the framework that calls this. */
static sd_status take(void *ctx, const compile_parted *p)
{
    question *q = ctx;

    q->answer = p;
    return sd_catch_oom(read_answer, q);
}

static sd_status partition(void *ctx, const hlo_inst *in,
                           const hlo_sharding **arg,
                           const hlo_sharding **result, hlo_module **out)
{
    const compile_partitioner *p = ctx;
    sd_arena *a = in->parent->module->arena;
    compile_aval *aval = sd_arena_array(a, compile_aval, in->narg + 1);
    compile_partition c = {.target = in->u.custom->target,
                           .config = {(const uint8_t *)in->u.custom->config,
                                      in->u.custom->config_len},
                           .narg = in->narg,
                           .arg = aval,
                           .result = aval_of(a, in->shape, result)};
    question q = {in, arg, result, out, NULL};

    for (int i = 0; i < in->narg; i++)
        aval[i] = aval_of(a, in->arg[i]->shape, &arg[i]);
    return p->partition(&c, take, &q);
}

static bool knows(void *ctx, const char *target)
{
    const compile_partitioner *p = ctx;

    return p->knows(target);
}

hlo_partitioner compile_partitioner_of(const compile_partitioner *p)
{
    return (hlo_partitioner){(void *)(uintptr_t)p, knows, partition};
}
