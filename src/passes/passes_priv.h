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
/* Result i of x, which may be a tuple; and the other way, the value of shape s
 * whose results are x[]. */
static inline hlo_inst *pass_result(hlo_at p, hlo_inst *x, int i)
{
    return x->shape->dtype == SD_TUPLE ? hlo_make_gte(p, x, i) : x;
}
static inline hlo_inst *pass_results(hlo_at p, const sd_shape *s, hlo_inst **x)
{
    return s->dtype == SD_TUPLE ? hlo_make_tuple(p, s->nelem, x) : x[0];
}
static inline bool pass_may_round(const device_desc *dev, const hlo_inst *in)
{
    return dev->features & DEVICE_HAS_TF32 && hlo_may_round(in);
}
/* Floats that are computed in f32. */
static inline bool pass_is_narrow(sd_dtype t)
{
    return sd_is_float(t) && t != SD_F32 && t != SD_F64;
}
/* In which sums of t's are made. */
static inline sd_dtype pass_sum_type(sd_dtype t)
{
    return pass_is_narrow(t) ? SD_F32 : t;
}

/* Calls draw, which is to replace it, for each instruction that draws random
 * numbers.  turn: a u64 that is different each time the instruction runs, made
 * of the counters of the loops around it, so that every turn draws other
 * numbers; NULL if it runs once.  rng_turn.c */
typedef void pass_draw(hlo_inst *in, hlo_inst *turn, void *ctx);
bool pass_for_each_draw(hlo_module *m, pass_draw *draw, void *ctx);
/* Gives all users of `in` the value `with` instead, and removes `in` if it can
 * be. */
void pass_replace(hlo_inst *in, hlo_inst *with);
/* Replaces every instruction of that op (HLO_OP_COUNT: of any) by rule(in),
 * unless that is NULL. */
bool pass_rewrite(hlo_module *m, hlo_op op, hlo_inst *(*rule)(hlo_inst *in));
/* Of any op, by a rule that asks what the device is. */
bool pass_rewrite_for(hlo_module *m, const device_desc *dev,
                      hlo_inst *(*rule)(hlo_inst *in, const device_desc *dev));
/* A copy of c's instructions before p.before, its parameters being arg;
 * returns the copy of its root. */
hlo_inst *pass_splice(hlo_at p, hlo_comp *c, hlo_inst *const *arg);
/* The same for a computation of scalars that is to work on arrays, element by
 * element: pass_can_vectorize says whether all its instructions are elementwise
 * or constants.  The result has the dimensions of arg[0], or of `like`. */
bool pass_can_vectorize(const hlo_comp *c);
hlo_inst *pass_vectorize(hlo_at p, hlo_comp *c, hlo_inst *const *arg,
                         const sd_shape *like);
/* May the operands of a reduction's function change places?  Some numbers are
 * tried; true where they show nothing else.  pass_try.c */
bool pass_commutes(const hlo_comp *c);
/* Is a function of two scalars associative, and the constant `init` its
 * identity?  True where nothing that is tried shows otherwise.  pass_try.c */
bool pass_is_monoid(const hlo_comp *c, const hlo_inst *init);
/* A function of (x, y) that is c of (y, x). */
hlo_comp *pass_swapped(hlo_comp *c);
/* The scalar e with op(e, x) = x for all x of type t, e.g. 0 for add; NULL when
 * there is none. */
hlo_inst *pass_identity(hlo_at p, hlo_op op, sd_dtype t);
bool pass_has_identity(hlo_op op, sd_dtype t);
/* x compared with the number v. */
hlo_inst *pass_compare_num(hlo_at p, hlo_cmp_dir d, hlo_inst *x, double v);
/* x converted to the type t; x itself if it is of that type. */
hlo_inst *pass_convert(hlo_at p, sd_dtype t, hlo_inst *x);
/* Copies those of in's computations that others call, too, so that in may
 * change them.  False: there were none. */
bool pass_own_comps(hlo_inst *in);
/* x converted to f32 if it is of floats narrower than that; else x itself. */
hlo_inst *pass_widened(hlo_at p, hlo_inst *x);
/* x reshaped to these dimensions; x itself if it has them. */
hlo_inst *pass_reshape(hlo_at p, hlo_inst *x, int rank, const int64_t *dim);
/* Elementwise operations on transposes, which may be transposes of elementwise
 * operations: pass_turn_find says whether the first n operands of a reduction
 * are, all by t->perm, and pass_turn_make gives that of which operand x is the
 * transpose.  pass_turn.c */
enum { PASS_TURN_MOST = 64 }; /* instructions */
typedef struct {
    hlo_at p;
    hlo_dims perm;
    hlo_inst *from[PASS_TURN_MOST], *to[PASS_TURN_MOST];
    int n;
} pass_turn;
bool pass_turn_find(pass_turn *t, hlo_inst *in, int n);
hlo_inst *pass_turn_make(pass_turn *t, const hlo_inst *x);
/* Is it the target of a custom-call whose value is its operand's, e.g.
 * "Sharding"? */
bool pass_is_identity_target(const char *target);
/* n positions of dimension dim of x, from position `at` on; and x with `part`
 * at these positions. */
hlo_inst *pass_slice_at(hlo_at p, hlo_inst *x, int dim, hlo_inst *at,
                        int64_t n);
hlo_inst *pass_put_at(hlo_at p, hlo_inst *x, hlo_inst *part, int dim,
                      hlo_inst *at);
/* Is it a scatter in the form that hlo_lower_index.c describes? */
bool pass_is_canonical_scatter(const hlo_inst *in);
/* Is it a bitcast-convert between real numbers (pred is none), which is all
 * that plans take? */
bool pass_is_plain_bitcast(const hlo_inst *in);
/* Do both compute the same, instruction by instruction?  Names do not count. */
bool pass_same_comp(const hlo_comp *x, const hlo_comp *y);
/* The value of an integer constant, or of one that is broadcast or converted
 * between integers; false: it is none. */
bool pass_int_const(const hlo_inst *in, int64_t *v);
/* Between which integers all elements lie, of integers or of floats that are
 * whole numbers; false: not known.  pass_range.c */
typedef struct { int64_t lo, hi; } pass_range;
bool pass_range_of(const hlo_inst *in, pass_range *r);
/* Is it a collective that plans take?  It moves one array between participants,
 * or is the participant's number (hlo_lower_collective.c). */
bool pass_is_move(const hlo_inst *in);
/* The participant's own number, a u32 scalar; and table[that number], an s32
 * scalar. */
hlo_inst *pass_participant(hlo_at p);
hlo_inst *pass_own_entry(hlo_at p, const int32_t *table);
/* A typed custom-call whose operands and results are all row-major, with
 * transposes around it; NULL if in is one already.  pass_foreign.c */
hlo_inst *pass_foreign_row_major(hlo_inst *in);
/* Why nothing runs this custom-call; NULL if a typed handler may.  Whether one
 * is registered is only known when the program is loaded.  pass_foreign.c */
const char *pass_foreign_why_not(const hlo_inst *in, const device_desc *dev);
/* Is it a call of attention that a kernel of the device does? */
bool pass_has_attend_kernel(const hlo_inst *in, const device_desc *dev);
/* Is it the gradient of a window that a kernel of the device does? */
bool pass_has_places_kernel(const hlo_inst *in, const device_desc *dev);
/* Are attention's operands read as matrices, by messages? */
static inline bool pass_attends_matrices(const device_desc *dev)
{
    const uint64_t needs = DEVICE_HAS_DPAS16 | DEVICE_HAS_BLOCK2D;

    return (dev->features & needs) == needs;
}
/* Or does each item bring its own, of v with keys last? */
static inline bool pass_gathers_attention(const device_desc *dev)
{
    return dev->features & DEVICE_HAS_DPAS8;
}

#endif
