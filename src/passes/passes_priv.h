/* What the passes share and nobody else needs. */
#ifndef PASSES_PRIV_H
#define PASSES_PRIV_H

#include "passes.h"

#define RULE(id, op, name, needed, help) hlo_inst *hlo_##id(hlo_inst *in);
#define PASS(id, name, needed, help) bool hlo_##id(hlo_module *m);
#define DEVICE_PASS(id, name, needed, help) \
    bool hlo_##id(hlo_module *m, const device_desc *dev);
#include "passes.def"

/* New instructions go in front of `in` and carry its source. */
static inline hlo_at pass_at(hlo_inst *in)
{
    return (hlo_at){in->parent, in, in};
}
static inline sd_dtype pass_dtype(const hlo_inst *in)
{
    return in->shape->dtype;
}
/* Result i of x, and a value of the shape s that has these results. */
static inline hlo_inst *pass_result(hlo_at p, hlo_inst *x, int i)
{
    return x->shape->dtype == SD_TUPLE ? hlo_make_gte(p, x, i) : x;
}
static inline hlo_inst *pass_results(hlo_at p, const sd_shape *s, hlo_inst **x)
{
    return s->dtype == SD_TUPLE ? hlo_make_tuple(p, s->nelem, x) : x[0];
}
/* Floats that are computed in f32. */
static inline bool pass_is_narrow(sd_dtype t)
{
    return sd_is_float(t) && t != SD_F32 && t != SD_F64;
}

/* rng_turn.c.  Calls draw with each rng that can be told apart from itself in
 * another turn of a loop: by turn, a u64 that no two runs of it share; NULL:
 * it runs once.  draw replaces it. */
typedef void pass_draw(hlo_inst *in, hlo_inst *turn, void *ctx);
bool pass_for_each_draw(hlo_module *m, pass_draw *draw, void *ctx);
/* All uses go to `with`; `in` goes when nothing needs it. */
void pass_replace(hlo_inst *in, hlo_inst *with);
/* Puts rule(in), where that is one, in the place of every instruction of op;
 * of every instruction when op is HLO_OP_COUNT. */
bool pass_rewrite(hlo_module *m, hlo_op op, hlo_inst *(*rule)(hlo_inst *in));
/* A copy of c's instructions before p.before, its parameters being arg;
 * returns the copy of its root. */
hlo_inst *pass_splice(hlo_at p, hlo_comp *c, hlo_inst *const *arg);
/* The same with scalars made arrays: every instruction of c is elementwise or
 * a constant, and the result has the dimensions of arg[0] (or of `like`). */
bool pass_can_vectorize(const hlo_comp *c);
hlo_inst *pass_vectorize(hlo_at p, hlo_comp *c, hlo_inst *const *arg,
                         const sd_shape *like);
/* Scalar that leaves x as it is under op; NULL when there is none. */
hlo_inst *pass_identity(hlo_at p, hlo_op op, sd_dtype t);
bool pass_has_identity(hlo_op op, sd_dtype t);
/* An array of the scalar x, with the dimensions of s. */
hlo_inst *pass_spread(hlo_at p, hlo_inst *x, const sd_shape *s);
/* The same of the number v in the type t. */
hlo_inst *pass_fill_s64(hlo_at p, const sd_shape *s, sd_dtype t, int64_t v);
/* Comparison with the number v. */
hlo_inst *pass_compare_num(hlo_at p, hlo_cmp_dir d, hlo_inst *x, double v);
/* Convert that is left out when the type is the same. */
hlo_inst *pass_convert(hlo_at p, sd_dtype t, hlo_inst *x);
/* A caller's computations become its own: those that others call, too, are
 * copied.  False: they were. */
bool pass_own_comps(hlo_inst *in);
/* Narrow floats as f32, which they are computed in. */
hlo_inst *pass_widened(hlo_at p, hlo_inst *x);
/* Reshape that is left out when the dimensions are the same. */
hlo_inst *pass_reshape(hlo_at p, hlo_inst *x, int rank, const int64_t *dim);
/* A custom-call that is its operand, as far as values go. */
bool pass_is_identity_target(const char *target);
/* Positions [from, to) of dimension dim of x; x where that is all. */
hlo_inst *pass_cut(hlo_at p, hlo_inst *x, int64_t dim, int64_t from,
                   int64_t to);
/* n positions of dimension dim of x, from `at` on; and such a part put there. */
hlo_inst *pass_slice_at(hlo_at p, hlo_inst *x, int dim, hlo_inst *at,
                        int64_t n);
hlo_inst *pass_put_at(hlo_at p, hlo_inst *x, hlo_inst *part, int dim,
                      hlo_inst *at);
/* A scatter in the form of hlo_lower_index.c. */
bool pass_is_canonical_scatter(const hlo_inst *in);
/* A bitcast-convert between reals, pred being none: all that plans take. */
bool pass_is_plain_bitcast(const hlo_inst *in);
/* Equal up to names, by content; both closed. */
bool pass_same_comp(const hlo_comp *x, const hlo_comp *y);
/* Integer constant (through broadcasts and converts of integers). */
bool pass_int_const(const hlo_inst *in, int64_t *v);
/* A collective that moves one array between participants, or the number of one:
 * all that plans take (hlo_lower_collective.c). */
bool pass_is_move(const hlo_inst *in);
/* The participant's own number, a u32 scalar; its own entry of a table of all
 * participants, an s32 scalar. */
hlo_inst *pass_participant(hlo_at p);
hlo_inst *pass_own_entry(hlo_at p, const int32_t *table);
/* pass_foreign.c.  A typed custom-call of operands and results in other
 * layouts as one of row-major ones; NULL: it is that already. */
hlo_inst *pass_foreign_row_major(hlo_inst *in);
/* Why nothing runs a custom-call; NULL: a typed handler does.  Whether that
 * is registered shows when the program is loaded. */
const char *pass_foreign_why_not(const hlo_inst *in, const device_desc *dev);

#endif
