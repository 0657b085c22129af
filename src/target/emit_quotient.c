/* Divisions of f32 by a number that is the same for several copies, as a
 * softmax has them.  Where a division is a dozen instructions and a branch, its
 * reciprocal is taken once and each quotient is four instructions, rounded as
 * a division is.
 *
 * 1 / s is y + rest, with y rounded and rest what is missing, and q = x y + x
 * rest, rounded once but for what rest lacks: less than an ulp of x / s away.
 * x - s q is exact then, and q + (x - s q) y is rounded once from a value that
 * is nearer to x / s than half of an ulp times 2^-24 and a little.  No quotient
 * lies as near to where rounding changes: x / s differs from the middle m of
 * two numbers by |x - s m| / s, and x - s m is no less than the product of the
 * last places of s and m.  That holds with room for all s but those whose
 * digits are nearly all ones, which are left out, and while nothing overflows
 * or is below the normal numbers on the way: what is not within bounds is
 * divided.
 *
 * A quotient that is only ever rounded to bf16 (plan_node.rounded) is x y: less
 * than two places of an f32 away from x / s rounded to one, also where it is
 * subnormal, infinite or a NaN.  Both are rounded to the same bf16 but where
 * the middle of two of these is within two places. */
#include "emit.h"

#include <math.h>

enum { BATCH = 16 }; /* divisions that are tried together */
enum {
    LEAST_BY = 0x30800000, /* bits of 2^-30 */
    MOST_BY = 0x53800000, /* of 2^40: s is less */
    ONES = 0x7ffff0, /* digits, the first without those */
    LEAST = 0x21800000, /* of 2^-60: |x| is not less, or x is 0 */
    MIDDLE = 0x8000, /* the lower half of an f32 between two bf16 */
    NEAR = 2
};

typedef struct {
    LLVMValueRef by, y, rest, bad;
} inverse;

static LLVMValueRef bits_of(emit *e, LLVMValueRef x)
{
    return emit_as(e, x, e->i32);
}

static LLVMValueRef word(emit *e, unsigned v)
{
    return LLVMConstInt(e->i32, v, 0);
}

static LLVMValueRef fma_of(emit *e, LLVMValueRef x, LLVMValueRef y,
                           LLVMValueRef z)
{
    LLVMValueRef arg[3] = {x, y, z};

    return emit_intrinsic(e, "llvm.fma", LLVMTypeOf(x), arg, 3);
}

/* Once for all that is divided by it. */
static inverse inverse_of(emit *e, LLVMValueRef by)
{
    LLVMValueRef one = LLVMConstReal(e->f32, 1), i = bits_of(e, by), far, ones;
    inverse v = {.by = by};

    v.y = LLVMBuildFDiv(e->b, one, by, "");
    v.rest = fma_of(e, LLVMBuildFNeg(e->b, by, ""), v.y, one);
    v.rest = LLVMBuildFMul(e->b, v.rest, v.y, "");
    far = emit_minus(e, i, word(e, LEAST_BY));
    far = emit_uge(e, far, word(e, MOST_BY - LEAST_BY));
    ones = emit_and(e, i, word(e, 0x7fffff));
    ones = emit_uge(e, ones, word(e, ONES));
    v.bad = emit_or(e, far, ones);
    return v;
}

static LLVMValueRef quotient(emit *e, const inverse *v, LLVMValueRef x)
{
    LLVMValueRef q = fma_of(e, x, v->y, LLVMBuildFMul(e->b, x, v->rest, ""));
    LLVMValueRef left = fma_of(e, LLVMBuildFNeg(e->b, v->by, ""), q, x);

    return fma_of(e, left, v->y, q);
}

/* Is one of q so near to where its rounding to bf16 changes that x / s may be
 * behind that?  Their lower halves are counted from the first such one. */
static LLVMValueRef any_near(emit *e, const inverse *v, const LLVMValueRef *q,
                             int n)
{
    LLVMValueRef least = word(e, UINT32_MAX), sixteen = word(e, 16);

    for (int i = 0; i < n; i++) {
        LLVMValueRef arg[2] = {bits_of(e, q[i]), least};

        arg[0] = emit_shl(e, arg[0], sixteen);
        arg[0] =
            emit_minus(e, arg[0], word(e, (unsigned)(MIDDLE - NEAR) << 16));
        least = emit_intrinsic(e, "llvm.umin", e->i32, arg, 2);
    }
    return emit_or(e, v->bad,
                   emit_ult(e, least, word(e, (2 * NEAR + 1) << 16)));
}

/* Is one of x not within bounds?  Those of bits 2 |x| are counted from 1, with
 * the sign last, so that +0 is above all and -0 below.  What overflows,
 * infinity and NaN make q a NaN. */
static LLVMValueRef any_bad(emit *e, const inverse *v, const LLVMValueRef *x,
                            const LLVMValueRef *q, int n)
{
    LLVMValueRef zero = LLVMConstReal(e->f32, 0), sum = zero;
    LLVMValueRef least = word(e, UINT32_MAX), bad = v->bad;

    for (int i = 0; i < n; i++) {
        LLVMValueRef b = bits_of(e, x[i]), arg[3] = {b, b, word(e, 1)};

        arg[0] = emit_intrinsic(e, "llvm.fshl", e->i32, arg, 3);
        arg[0] = emit_minus(e, arg[0], word(e, 1));
        arg[1] = least;
        least = emit_intrinsic(e, "llvm.umin", e->i32, arg, 2);
        sum = fma_of(e, q[i], zero, sum);
    }
    bad = emit_or(e, bad, emit_ult(e, least, word(e, 2 * LEAST - 1)));
    return emit_or(e, bad, LLVMBuildFCmp(e->b, LLVMRealUNO, sum, sum, ""));
}

/* So many are divided at once: a turn of the loop below. */
static int divided_at_once(int n)
{
    return n % 4 == 0 ? 4 : n % 2 == 0 ? 2 : 1;
}

/* q becomes what division gives where one of them may not be right.  That is
 * seldom, and a division is twenty instructions, which ptxas takes its time
 * for: so a few are written, in a loop in which the numbers go round. */
static void divide_if(emit *e, LLVMValueRef bad, LLVMValueRef by,
                      const LLVMValueRef *x, LLVMValueRef *q, int n)
{
    LLVMValueRef at[BATCH], v[BATCH];
    int few = divided_at_once(n);
    LLVMBasicBlockRef no;
    emit_loop l;

    for (int i = 0; i < n; i++)
        at[i] = emit_variable(e, q[i]);
    no = emit_when(e, bad);
    for (int i = 0; i < n; i++)
        LLVMBuildStore(e->b, x[i], at[i]);
    emit_loop_open(e, &l, emit_si(e, 0), emit_si(e, n), few);
    l.rolled = true;
    for (int i = 0; i < n; i++)
        v[i] = LLVMBuildLoad2(e->b, e->f32, at[i], "");
    for (int i = 0; i < few; i++)
        v[i] = LLVMBuildFDiv(e->b, v[i], by, "");
    for (int i = 0; i < n; i++)
        LLVMBuildStore(e->b, v[(i + few) % n], at[i]);
    emit_loop_close(e, &l);
    emit_when_end(e, no);
    for (int i = 0; i < n; i++)
        q[i] = LLVMBuildLoad2(e->b, e->f32, at[i], "");
}

/* ---- copies ---- */

static emit_slot *slot_of(emit *e, const plan_node *n, int copy)
{
    return &e->value[n->id * e->ncopy + copy];
}

static bool is_wanted(emit *e, const plan_node *n, int copy)
{
    return emit_is_copy(e, copy, n->varies) && !slot_of(e, n, copy)->set;
}

/* Is n, a value at `level`, one that several copies have by the same number,
 * and may code that branches be written here? */
static bool divides_alike(emit *e, const plan_node *n, int level)
{
    const plan_node *by = n->narg == 2 ? n->arg[1] : NULL;
    int wanted = 0;

    if (n->op != HLO_DIVIDE || n->dtype != SD_F32 || !e->gpu ||
        !e->abi->dear_division || level != e->depth ||
        e->standing != e->depth || emit_node_level(e, by) >= level)
        return false;
    for (int c = 0; c < e->ncopy; c++) {
        if (!emit_is_copy(e, c, n->varies))
            continue;
        if (emit_canon(e, c, by->varies) != 0)
            return false;
        wanted++;
    }
    return wanted > 1;
}

bool emit_quotients(emit *e, const plan_node *n, int copy, int level,
                    emit_value *out)
{
    LLVMValueRef x[BATCH], q[BATCH], s;
    const plan_node *by;
    int at[BATCH], m = 0;
    emit_mark mark;
    inverse v;

    if (!divides_alike(e, n, level))
        return false;
    by = n->arg[1];
    s = emit_node_value(e, by, 0).re;
    for (int c = copy; c < e->ncopy && m < BATCH; c++)
        if (is_wanted(e, n, c)) {
            int from = emit_canon(e, c, n->arg[0]->varies);

            at[m] = c;
            x[m++] = emit_node_value(e, n->arg[0], from).re;
        }
    mark = emit_go_to(e, emit_node_level(e, by));
    v = inverse_of(e, s);
    emit_back(e, mark);
    for (int i = 0; i < m; i++)
        q[i] = n->rounded ? LLVMBuildFMul(e->b, x[i], v.y, "")
                          : quotient(e, &v, x[i]);
    divide_if(e, n->rounded ? any_near(e, &v, q, m) : any_bad(e, &v, x, q, m),
              s, x, q, m);
    for (int i = 1; i < m; i++)
        emit_remember(e, slot_of(e, n, at[i]), (emit_value){q[i], NULL}, level);
    *out = (emit_value){q[0], NULL};
    return true;
}

/* ---- bytes by a constant ---- */

/* q of x by d, with y the reciprocal of d, and what q lacks. */
static float byte_quotient(float x, float d, float y)
{
    float q = x * y;

    return fmaf(fmaf(-d, q, x), y, q);
}

static uint32_t float_bits(float x)
{
    uint32_t bits;

    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/* Is that each byte's quotient, with or without a sign? */
static bool is_of_bytes(float d)
{
    for (int x = INT8_MIN; x <= UINT8_MAX; x++) {
        float q = (float)x / d, p = byte_quotient((float)x, d, 1 / d);

        if (float_bits(p) != float_bits(q))
            return false;
    }
    return true;
}

/* A picture's bytes become floats from 0 to 1: three instructions a vector,
 * where a division has 5 to 16 cycles.  All 384 are tried. */
bool emit_divides_bytes(emit *e, const plan_node *n, const emit_value *x,
                        emit_value *out)
{
    const plan_node *c = n->arg[0];
    LLVMTypeRef t = LLVMTypeOf(x[0].re);
    LLVMValueRef q, left, y;
    float d;

    if (n->op != HLO_DIVIDE || n->dtype != SD_F32 || c->kind != PN_ELT ||
        c->op != HLO_CONVERT || !sd_is_int(c->arg[0]->dtype) ||
        sd_dtype_bytes(c->arg[0]->dtype) != 1 || n->arg[1]->kind != PN_CONST)
        return false;
    memcpy(&d, n->arg[1]->value, sizeof d);
    if (!is_of_bytes(d))
        return false;
    y = LLVMConstReal(t, 1 / d);
    q = LLVMBuildFMul(e->b, x[0].re, y, "");
    left = fma_of(e, LLVMConstReal(t, -d), q, x[0].re);
    *out = (emit_value){fma_of(e, left, y, q), NULL};
    return true;
}
