/* Accesses whose addresses lie a known distance apart share one address.
 *
 * An unrolled loop computes an index a turn, each from the beginning, and the
 * machine adds a constant to an address for nothing.  So an address is taken
 * apart into a pointer, numbers times values, and a constant; an access before
 * it, on every way to it, whose address differs from it by the constant alone
 * lends it its own.  This has to see what the emitters wrote: that a sum of
 * indices does not wrap is what they know, and what LLVM's passes forget as
 * they rewrite it.  An address that was accessed did not wrap, so its sum is
 * the one that was taken apart.
 *
 * LLVM's own pass for this, slsr, looks at every sum of integers, those of
 * random bits and of rounding, too, and took half of the time of all passes. */
#include "target_room.h"

enum {
    MOST_TERMS = 12, /* a sum of more stays what it is */
    MOST_DEEP = 24,  /* operations between an address and its terms */
    MOST_SEEN = 256, /* operands: a value may be met in both of a sum's */
    MOST_TRIED = 8,  /* addresses with the same terms, the latest first */
    FAR = 1 << 22    /* beyond it a distance is no part of an instruction */
};

typedef struct {
    LLVMValueRef value; /* a pointer, or an integer */
    bool narrow;        /* has less than 64 bits, and its sign */
    uint64_t times;
} term;

typedef struct {
    term term[MOST_TERMS];
    int n, seen;
    uint64_t constant;
} address;

typedef struct known {
    address sum;
    LLVMValueRef pointer;
    int block; /* of its first access */
    struct known *before;
} known;

typedef struct {
    sd_arena *a;
    LLVMContextRef cx;
    LLVMTargetDataRef data; /* borrowed */
    LLVMTypeRef i8, i64;
    sd_map *known; /* of the function at hand, by the sum's hash */
    LLVMBasicBlockRef *block;
    int nblock, *above; /* of each block that which is last on every way to it;
                           the first has itself */
    sd_map *number; /* of a block, from 1 */
} nearer;

/* ---- which blocks are on every way to one ---- */

static int number_of(const nearer *x, LLVMBasicBlockRef bb)
{
    return (int)(uintptr_t)sd_map_get(x->number, sd_key(bb)) - 1;
}

static unsigned successors(LLVMBasicBlockRef bb)
{
    return LLVMGetNumSuccessors(LLVMGetBasicBlockTerminator(bb));
}

/* Puts the blocks that can be reached in an order in which what lies on every
 * way to a block stands before it: each behind all that it leads to, from the
 * last to the first. */
static void order_blocks(nearer *x, LLVMValueRef fn)
{
    int most = (int)LLVMCountBasicBlocks(fn), deep = 0, first = most;
    LLVMBasicBlockRef *way = sd_arena_array(x->a, LLVMBasicBlockRef, most);
    unsigned *next = sd_arena_array(x->a, unsigned, most);
    LLVMBasicBlockRef *order = sd_arena_array(x->a, LLVMBasicBlockRef, most);
    sd_map *seen = sd_map_create(x->a);

    way[deep++] = LLVMGetEntryBasicBlock(fn);
    sd_map_set(seen, sd_key(way[0]), way);
    while (deep) {
        LLVMBasicBlockRef at = way[deep - 1], to;

        if (next[deep - 1] == successors(at)) {
            order[--first] = at;
            next[--deep] = 0;
            continue;
        }
        to =
            LLVMGetSuccessor(LLVMGetBasicBlockTerminator(at), next[deep - 1]++);
        if (sd_map_has(seen, sd_key(to)))
            continue;
        sd_map_set(seen, sd_key(to), way);
        way[deep++] = to;
    }
    x->block = order + first;
    x->nblock = most - first;
    x->number = sd_map_create(x->a);
    for (int i = 0; i < x->nblock; i++)
        sd_map_set(x->number, sd_key(x->block[i]), (void *)(uintptr_t)(i + 1));
}

static int meet(const nearer *x, int i, int j)
{
    while (i != j)
        if (i > j)
            i = x->above[i];
        else
            j = x->above[j];
    return i;
}

/* "A Simple, Fast Dominance Algorithm", Cooper, Harvey and Kennedy, 2001. */
static void find_above(nearer *x)
{
    bool changed = true;

    x->above = sd_arena_array(x->a, int, x->nblock);
    for (int i = 1; i < x->nblock; i++)
        x->above[i] = -1;
    while (changed) {
        changed = false;
        for (int i = 0; i < x->nblock; i++)
            for (unsigned k = 0; k < successors(x->block[i]); k++) {
                int to = number_of(
                    x, LLVMGetSuccessor(
                           LLVMGetBasicBlockTerminator(x->block[i]), k));
                int is = x->above[to] < 0 ? i : meet(x, x->above[to], i);

                changed |= is != x->above[to];
                x->above[to] = is;
            }
    }
}

static bool is_above(const nearer *x, int i, int of)
{
    while (of > i)
        of = x->above[of];
    return of == i;
}

/* ---- an address, taken apart ---- */

static bool add_term(address *s, LLVMValueRef v, bool narrow, uint64_t times)
{
    for (int i = 0; i < s->n; i++)
        if (s->term[i].value == v && s->term[i].narrow == narrow) {
            s->term[i].times += times;
            return true;
        }
    if (s->n == MOST_TERMS)
        return false;
    s->term[s->n++] = (term){v, narrow, times};
    return true;
}

/* Does a narrow one's sign go on where its operands' do? */
static bool keeps_sign(LLVMValueRef v, LLVMOpcode op)
{
    return op == LLVMOr ? LLVMGetIsDisjoint(v) : LLVMGetNSW(v);
}

/* The operand that a constant multiplies in v, which op makes; NULL: none. */
static LLVMValueRef multiplied(LLVMValueRef v, LLVMOpcode op, uint64_t *by)
{
    LLVMValueRef a = LLVMGetOperand(v, 0), c = LLVMGetOperand(v, 1);

    if (op == LLVMMul && LLVMIsAConstantInt(a)) {
        a = c;
        c = LLVMGetOperand(v, 0);
    }
    if (!LLVMIsAConstantInt(c))
        return NULL;
    *by = (uint64_t)LLVMConstIntGetSExtValue(c);
    if (op == LLVMShl) {
        if (*by >= LLVMGetIntTypeWidth(LLVMTypeOf(v)))
            return NULL;
        *by = UINT64_C(1) << *by;
    }
    return a;
}

/* v, or what its sign extends it to, so many times; false: too much of it. */
static bool add_index(address *s, LLVMValueRef v, uint64_t times, int deep)
{
    bool narrow = LLVMGetIntTypeWidth(LLVMTypeOf(v)) < 64;
    LLVMOpcode op;
    LLVMValueRef a;
    uint64_t by;

    if (++s->seen > MOST_SEEN)
        return false;
    if (LLVMIsAConstantInt(v)) {
        s->constant += (uint64_t)LLVMConstIntGetSExtValue(v) * times;
        return true;
    }
    if (!LLVMIsAInstruction(v) || deep == MOST_DEEP)
        return add_term(s, v, narrow, times);
    switch ((op = LLVMGetInstructionOpcode(v))) {
    case LLVMSExt:
        return add_index(s, LLVMGetOperand(v, 0), times, deep + 1);
    case LLVMAdd:
    case LLVMSub:
    case LLVMOr:
        if ((narrow || op == LLVMOr) && !keeps_sign(v, op))
            break;
        return add_index(s, LLVMGetOperand(v, 0), times, deep + 1) &&
               add_index(s, LLVMGetOperand(v, 1),
                         op == LLVMSub ? -times : times, deep + 1);
    case LLVMMul:
    case LLVMShl:
        if ((narrow && !keeps_sign(v, op)) || !(a = multiplied(v, op, &by)))
            break;
        return add_index(s, a, times * by, deep + 1);
    default:
        break;
    }
    return add_term(s, v, narrow, times);
}

static bool is_gep(LLVMValueRef v)
{
    return LLVMIsAGetElementPtrInst(v) ||
           (LLVMIsAConstantExpr(v) &&
            LLVMGetConstOpcode(v) == LLVMGetElementPtr);
}

static bool take_apart(const nearer *x, LLVMValueRef p, address *s)
{
    for (int deep = 0; is_gep(p) && LLVMGetNumOperands(p) == 2; deep++) {
        LLVMValueRef index = LLVMGetOperand(p, 1);
        uint64_t size =
            LLVMABISizeOfType(x->data, LLVMGetGEPSourceElementType(p));

        if (LLVMGetTypeKind(LLVMTypeOf(index)) != LLVMIntegerTypeKind ||
            LLVMGetIntTypeWidth(LLVMTypeOf(index)) > 64 || deep == MOST_DEEP ||
            !add_index(s, index, size, deep))
            return false;
        p = LLVMGetOperand(p, 0);
    }
    return add_term(s, p, false, 1);
}

/* ---- addresses that were accessed ---- */

/* The same for any order of terms. */
static uint64_t hash(const address *s)
{
    uint64_t sum = 0;

    for (int i = 0; i < s->n; i++) {
        uint64_t key[] = {sd_key(s->term[i].value), s->term[i].times};

        sum += sd_hash(key, sizeof key, s->term[i].narrow);
    }
    return sum;
}

static bool has_term(const address *s, const term *t)
{
    for (int i = 0; i < s->n; i++)
        if (s->term[i].value == t->value && s->term[i].narrow == t->narrow)
            return s->term[i].times == t->times;
    return false;
}

static bool same_terms(const address *s, const address *t)
{
    for (int i = 0; i < s->n; i++)
        if (!has_term(t, &s->term[i]))
            return false;
    return s->n == t->n;
}

static uint64_t distance(const address *s, const known *k)
{
    uint64_t d = s->constant - k->sum.constant;

    return (int64_t)d < 0 ? -d : d;
}

/* The nearest of the latest ones that were accessed before block `at`, or in
 * it; NULL: none was. */
static const known *find_known(const nearer *x, const known *k,
                               const address *s, int at)
{
    const known *best = NULL;

    for (int i = 0; k && i < MOST_TRIED; k = k->before, i++)
        if (is_above(x, k->block, at) && same_terms(s, &k->sum) &&
            (!best || distance(s, k) < distance(s, best)))
            best = k;
    return best;
}

static void note(nearer *x, uint64_t key, const address *s, LLVMValueRef p,
                 int at)
{
    known *k = sd_arena_new(x->a, known);

    *k = (known){*s, p, at, sd_map_get(x->known, key)};
    sd_map_set(x->known, key, k);
}

/* An address so far from p, for `in`.  No arena is asked while there is a
 * builder: where memory runs out, sd_catch frees what arenas have, and nothing
 * else. */
static LLVMValueRef beside(const nearer *x, LLVMValueRef in, LLVMValueRef p,
                           uint64_t far)
{
    LLVMBuilderRef b;
    LLVMValueRef d = LLVMConstInt(x->i64, far, 0);

    if (!far)
        return p;
    b = LLVMCreateBuilderInContext(x->cx);
    LLVMPositionBuilderBefore(b, in);
    p = LLVMBuildGEP2(b, x->i8, p, &d, 1, "");
    LLVMDisposeBuilder(b);
    return p;
}

/* Operand i of `in` is accessed in block `at`, for certain or perhaps. */
static void draw_near(nearer *x, LLVMValueRef in, unsigned i, int at,
                      bool certain)
{
    LLVMValueRef p = LLVMGetOperand(in, i);
    address s = {.n = 0};
    const known *k;
    uint64_t key;

    if (!LLVMIsAGetElementPtrInst(p) || !take_apart(x, p, &s) || s.n < 2)
        return;
    key = hash(&s);
    k = find_known(x, sd_map_get(x->known, key), &s, at);
    if (k && k->pointer != p) {
        p = beside(x, in, k->pointer, s.constant - k->sum.constant);
        LLVMSetOperand(in, i, p);
    }
    if (certain && (!k || distance(&s, k) >= FAR))
        note(x, key, &s, p, at);
}

/* ---- a module ---- */

/* Those of instructions that have no other name: copies into local memory,
 * reads of tiles.  A copy of as many bytes as its last operand says may be of
 * none. */
static void visit_call(nearer *x, LLVMValueRef in, int at)
{
    static const char copy[] = "llvm.nvvm.cp.async.";
    LLVMValueRef f = LLVMGetCalledValue(in);
    unsigned n = LLVMGetNumArgOperands(in);
    size_t len;
    const char *name;
    bool may_skip;

    if (!LLVMIsAFunction(f) || !LLVMGetIntrinsicID(f))
        return;
    name = LLVMGetValueName2(f, &len);
    may_skip = n > 2 && !strncmp(name, copy, sizeof copy - 1);
    for (unsigned i = 0; i < n; i++)
        if (LLVMGetTypeKind(LLVMTypeOf(LLVMGetOperand(in, i))) ==
            LLVMPointerTypeKind)
            draw_near(x, in, i, at, !may_skip || i == 0);
}

static void visit(nearer *x, LLVMValueRef in, int at)
{
    switch (LLVMGetInstructionOpcode(in)) {
    case LLVMLoad:
        draw_near(x, in, 0, at, true);
        break;
    case LLVMStore:
        draw_near(x, in, 1, at, true);
        break;
    case LLVMCall:
        visit_call(x, in, at);
        break;
    default:
        break;
    }
}

static void visit_function(nearer *x, LLVMValueRef fn)
{
    x->known = sd_map_create(x->a);
    order_blocks(x, fn);
    find_above(x);
    for (int i = 0; i < x->nblock; i++)
        for (LLVMValueRef in = LLVMGetFirstInstruction(x->block[i]); in;
             in = LLVMGetNextInstruction(in))
            visit(x, in, i);
}

void target_near(LLVMModuleRef m, LLVMContextRef cx)
{
    nearer x = {.a = sd_arena_create(),
                .cx = cx,
                .data = LLVMGetModuleDataLayout(m),
                .i8 = LLVMInt8TypeInContext(cx),
                .i64 = LLVMInt64TypeInContext(cx)};

    for (LLVMValueRef fn = LLVMGetFirstFunction(m); fn;
         fn = LLVMGetNextFunction(fn))
        if (!LLVMIsDeclaration(fn))
            visit_function(&x, fn);
    sd_arena_destroy(x.a);
}
