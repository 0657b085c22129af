/* What multiplies and adds in blocks: the table of engines (engines.def), and
 * which operands and products they take. */
#include "plan_blocks.h"

const plan_engine_info plan_engine_table[PLAN_ENGINE_COUNT] = {
#define ENGINE(id, needs_, ...) \
    [PLAN_ENGINE_##id] = {.needs = needs_, __VA_ARGS__},
#include "engines.def"
#undef ENGINE
};

/* ---- operands ---- */

const plan_node *plan_narrow(const plan_node *n, sd_dtype t)
{
    const plan_node *x = n->narg == 1 ? n->arg[0] : NULL;

    if (n->dtype == t)
        return n;
    return x && n->kind == PN_ELT && n->op == HLO_CONVERT && x->dtype == t
               ? x
               : NULL;
}

static bool is_integer(sd_dtype t)
{
    return sd_dtype_kind(t) == SD_K_SINT || sd_dtype_kind(t) == SD_K_UINT;
}

/* What becomes the CONTRACT's operand n, where that is a wider integer. */
static const plan_node *narrow_integer(const plan_node *n)
{
    const plan_node *x = n->narg == 1 ? n->arg[0] : NULL;

    return x && n->kind == PN_ELT && n->op == HLO_CONVERT &&
                   is_integer(n->dtype) && is_integer(x->dtype) &&
                   sd_dtype_table[x->dtype].bits >= 8
               ? x
               : NULL;
}

/* An operand as the engine has it: s16 holds all of s8, u8 and s16. */
static bool fits_engine(const plan_node *n, const plan_engine_info *engine)
{
    int bits = sd_dtype_table[n->dtype].bits;

    return bits < engine->bits ||
           (bits == engine->bits &&
            (bits == 8 || sd_dtype_kind(n->dtype) == SD_K_SINT));
}

/* Does an engine of the host add floats, in an order of its own? */
static bool rounds_sums(const plan_engine_info *e)
{
    return !e->m && e->sum == SD_F32;
}

const plan_node *plan_taken_by(const plan_engine_info *e, const plan_node *n)
{
    const plan_node *x;

    if (rounds_sums(e))
        return plan_narrow(n, e->part);
    x = narrow_integer(n);
    return x && fits_engine(x, e) ? x : NULL;
}

/* ---- precision ---- */

bool plan_is_trimmed(const plan_node *c, const plan_node *n)
{
    return hlo_prec_of(c->in)[n != c->arg[0]] == HLO_PREC_TF32;
}

/* Products of f32 stay what they are, also where what they are made of would
 * fit. */
bool plan_may_multiply(const plan_node *c, sd_dtype t)
{
    return sd_dtype_kind(t) != SD_K_FLOAT ||
           (c->in->arg[0]->shape->dtype == t &&
            c->in->arg[1]->shape->dtype == t &&
            (t != SD_F32 || hlo_may_round(c->in)));
}
