/* What the files of the evaluator share. */
#ifndef HLO_EVAL_H
#define HLO_EVAL_H

#include "hlo_scalar.h"

typedef struct hlo_evaluator hlo_evaluator;
typedef struct {
    const hlo_evaluator *more; /* NULL: folding, which needs no more */
    sd_arena *arena; /* of the values of the computation that runs, which has
                        one of its own */
    sd_arena *keep;  /* of frames, which last as long as the evaluation */
    sd_map *frames;  /* computation -> its frame */
    double bytes;    /* of the values that now exist */
    double steps;    /* so far, of innermost loops */
    uint64_t drawn;  /* random blocks that rng took */
} hlo_ev;

/* arg: the operands' values.  out: made for in->shape, zeroed, except where
 * the op only passes values on. */
typedef sd_status hlo_eval_fn(hlo_ev *e, const hlo_inst *in,
                              const hlo_value *arg, hlo_value *out);

/* ---- running computations: hlo_eval.c ---- */

typedef struct { /* a computation with operands as numbers */
    const hlo_comp *c;
    int n, root, most; /* most: operands of one instruction */
    const hlo_inst **inst;
    const int **arg;
} hlo_frame;
hlo_frame *hlo_open_frame(hlo_ev *e, const hlo_comp *c);
/* Does in only hand on a value that exists, as a get-tuple-element does? */
bool hlo_passes_on(const hlo_inst *in);
sd_status hlo_eval_one(hlo_ev *e, const hlo_inst *in, const hlo_value *arg,
                       hlo_value *out);
sd_status hlo_unevaluated(const hlo_inst *in); /* the error of such */
/* An error if an instruction, or so many steps, would be more of them, or of
 * bytes, than an evaluation may take. */
sd_status hlo_spend(hlo_ev *e, double steps);
sd_status hlo_afford(hlo_ev *e, const hlo_inst *in, const hlo_value *arg);
hlo_value hlo_value_copy(sd_arena *a, const hlo_value *v);

/* ---- more than folding needs: tools/ref ---- */

struct hlo_evaluator {
    /* Of these classes: instead of hlo_eval.c's. */
    hlo_eval_fn *of_class[HLO_CLASS_COUNT];
    /* How many steps an instruction takes, n being the elements of the largest
     * of its arrays. */
    double (*steps)(const hlo_inst *in, const hlo_value *arg, double n);
};
sd_status hlo_eval_inst_more(const hlo_evaluator *more, sd_arena *a,
                             const hlo_inst *in, const hlo_value *arg,
                             hlo_value *out);

static inline char *hlo_at_elem(const hlo_value *v, int64_t i)
{
    return (char *)v->data + (size_t)i * sd_dtype_bytes(v->shape->dtype);
}
bool hlo_step(int rank, const int64_t *dim, int64_t *ix); /* false: done */
/* value k of n results: out itself when there is one */
static inline hlo_value *hlo_result_at(hlo_value *out, int k)
{
    return out->shape->dtype == SD_TUPLE ? &out->elem[k] : out;
}

hlo_eval_fn hlo_eval_unary_or_binary, hlo_eval_ternary, hlo_eval_compare,
    hlo_eval_convert, hlo_eval_bitcast_convert; /* hlo_eval_element.c */
hlo_eval_fn hlo_eval_leaf, hlo_eval_shape,
    hlo_eval_indexed;                           /* hlo_eval_shape.c */
/* For the batch position b of the indices (all dimensions but the index
 * vector's): the window's first element in the operand, not clamped. */
void hlo_window_start(const hlo_gather *g, const hlo_value *ix,
                      const int64_t *b, int rank, int64_t *start);
/* Splits an index of result or updates into batch position and offset. */
void hlo_split_index(const hlo_gather *g, int rank_out, int rank_in,
                     const int64_t *ix, int64_t *batch, int64_t *offset);

#endif
