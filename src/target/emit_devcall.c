/* A kernel that is calls of one device function, item after item: on the host
 * machine code that the build made; on GPUs C that is linked in, called by a
 * work item an item, or by a group of them. */
#include "emit.h"

enum { MOST_ARGUMENTS = 64 + HLO_CALL_INTS + 3 };

typedef struct {
    emit *e;
    const hlo_call *c;
    LLVMTypeRef type[MOST_ARGUMENTS];
    LLVMValueRef arg[MOST_ARGUMENTS];
    int narg;
} caller;

static void pass(caller *c, LLVMValueRef v)
{
    assert(c->narg < MOST_ARGUMENTS); /* plans have 64 slots at most */
    c->type[c->narg] = LLVMTypeOf(v);
    c->arg[c->narg++] = v;
}

static LLVMValueRef part(emit *e, LLVMValueRef p, LLVMValueRef item,
                         int64_t bytes)
{
    return emit_behind(e, e->i8, p, emit_product(e, item, emit_i64(e, bytes)));
}

/* The work space of an item: the thread's or the group's own, or a part of the
 * last slot. */
static LLVMValueRef work_of(caller *c, LLVMValueRef item)
{
    emit *e = c->e;

    if (!e->gpu || c->c->in_local)
        return e->local;
    return part(e, e->slot[e->k->nslot - 1], item, (int64_t)c->c->work);
}

static void call_item(caller *c, LLVMValueRef item, LLVMValueRef lid)
{
    emit *e = c->e;
    const plan_kernel *k = e->k;
    int nslot = k->nslot - (e->gpu && c->c->work && !c->c->in_local);
    LLVMValueRef fn;
    LLVMTypeRef t;

    c->narg = 0;
    for (int i = 0; i < nslot; i++) {
        int64_t bytes =
            k->slot[i].count * (int64_t)sd_dtype_bytes(k->slot[i].dtype);

        pass(c, c->c->whole ? e->slot[i]
                            : part(e, e->slot[i], item, bytes / c->c->items));
    }
    if (c->c->work)
        pass(c, work_of(c, item));
    if (c->c->whole) {
        pass(c, item);
        pass(c, lid);
    } else if (c->c->each > 1) {
        LLVMValueRef left = emit_minus(e, emit_i64(e, c->c->items), item);
        LLVMValueRef each = emit_i64(e, c->c->each);

        pass(c, emit_smaller(e, left, each));
    }
    for (int i = 0; i < c->c->nint; i++)
        pass(c, emit_i64(e, c->c->at[i]));
    t = LLVMFunctionType(LLVMVoidTypeInContext(e->cx), c->type,
                         (unsigned)c->narg, 0);
    fn = emit_devlib_kernel(e, c->c->fn, t);
    if (!fn)
        return;
    LLVMSetInstructionCallConv(
        LLVMBuildCall2(e->b, t, fn, c->arg, (unsigned)c->narg, ""),
        LLVMGetFunctionCallConv(fn));
}

static LLVMValueRef wide(emit *e, LLVMValueRef v)
{
    return LLVMBuildZExtOrBitCast(e->b, v, e->i64, "");
}

static void gpu_call(caller *c)
{
    emit *e = c->e;
    LLVMValueRef group = wide(e, e->first), lid = wide(e, e->lid), item;
    LLVMBasicBlockRef work, done;

    if (c->c->whole || c->c->grouped) {
        call_item(c, group, lid);
        return;
    }
    item = emit_product(e, group, emit_i64(e, e->k->group));
    item = emit_sum(e, item, lid);
    work = emit_block(e, "item");
    done = emit_block(e, "done");
    LLVMBuildCondBr(e->b, emit_below(e, item, emit_i64(e, c->c->items)), work,
                    done);
    LLVMPositionBuilderAtEnd(e->b, work);
    call_item(c, item, lid);
    LLVMBuildBr(e->b, done);
    LLVMPositionBuilderAtEnd(e->b, done);
}

void emit_device_call(emit *e)
{
    caller c = {.e = e, .c = e->k->call};
    emit_loop l;

    if (e->gpu) {
        gpu_call(&c);
        return;
    }
    emit_loop_open(e, &l, e->first, e->last, 1);
    call_item(&c, emit_product(e, wide(e, l.at), emit_i64(e, c.c->each)),
              emit_i64(e, 0));
    emit_loop_close(e, &l);
}
