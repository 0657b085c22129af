/* What the files of the evaluator share. */
#ifndef HLO_EVAL_H
#define HLO_EVAL_H

#include "hlo_scalar.h"

typedef struct {
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

/* ---- running computations: hlo_eval.c, hlo_eval_run.c ---- */

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
/* An error if an instruction, or one more turn of a loop, would take more steps
 * or bytes than an evaluation may. */
sd_status hlo_afford(hlo_ev *e, const hlo_inst *in, const hlo_value *arg);
sd_status hlo_afford_turn(hlo_ev *e);
hlo_value hlo_value_copy(sd_arena *a, const hlo_value *v);

/* ---- several participants: hlo_eval_join.c ---- */

typedef struct { /* n participants at one instruction; arrays are by participant */
    int64_t n;
    const bool *here;     /* does it run the instruction? */
    hlo_value *const *in; /* its operands' values */
    hlo_value *out;       /* its result, made if it is here */
} hlo_gang;
sd_status hlo_eval_join(hlo_ev *e, const hlo_inst *in, const hlo_gang *g);
/* Is in a custom-call that needs the values of all participants: the border of
 * a manual computation, or a ragged all-to-all?  hlo_eval_joint evaluates
 * it. */
bool hlo_is_joint(const hlo_inst *in);
sd_status hlo_eval_joint(hlo_ev *e, const hlo_inst *in, const hlo_gang *g);

/* A computation on scalars, run many times. */
typedef struct hlo_region hlo_region;
hlo_region *hlo_region_open(hlo_ev *e, const hlo_comp *c);
/* arg: elements; result: where to put them, not among the arguments. */
sd_status hlo_region_run(hlo_ev *e, hlo_region *r, const void *const *arg,
                         void *const *result);
/* True if the region is one op on its two parameters, as a sum is: *op. */
bool hlo_region_op(const hlo_region *r, hlo_op *op);

static inline char *hlo_at_elem(const hlo_value *v, int64_t i)
{
    return (char *)v->data + (size_t)i * sd_dtype_bytes(v->shape->dtype);
}
void hlo_strides(const sd_shape *s, int64_t *stride);     /* row-major */
bool hlo_step(int rank, const int64_t *dim, int64_t *ix); /* false: done */
/* value k of n results: out itself when there is one */
static inline hlo_value *hlo_result_at(hlo_value *out, int k)
{
    return out->shape->dtype == SD_TUPLE ? &out->elem[k] : out;
}

/* Sorts the lines of n arrays along dimension d by `less` (NULL: the largest
 * first), and keeps of each line as many elements as out has room for. */
sd_status hlo_sort_lines(hlo_ev *e, const hlo_comp *less, int n,
                         const hlo_value *x, int64_t d, hlo_value *out);

hlo_eval_fn hlo_eval_unary_or_binary, hlo_eval_ternary, hlo_eval_compare,
    hlo_eval_convert, hlo_eval_bitcast_convert; /* hlo_eval_element.c */
hlo_eval_fn hlo_eval_leaf, hlo_eval_shape, hlo_eval_indexed,
    hlo_eval_scatter;                           /* hlo_eval_shape.c */
hlo_eval_fn hlo_eval_reduce, hlo_eval_window, hlo_eval_scan, hlo_eval_map,
    hlo_eval_sort;                              /* hlo_eval_region.c */
hlo_eval_fn hlo_eval_dot, hlo_eval_conv, hlo_eval_fft, hlo_eval_norm,
    hlo_eval_fft_lines;                         /* hlo_eval_math.c */
hlo_eval_fn hlo_eval_rng;                       /* hlo_eval_rng.c */
hlo_eval_fn hlo_eval_control;                   /* hlo_eval_run.c */
hlo_eval_fn hlo_eval_custom;                    /* hlo_eval_custom.c */
hlo_eval_fn hlo_eval_attend;                    /* hlo_attend.c */
/* The operations; the calls of hlo_linalg.def; XLA's custom-calls:
 * Householder's vectors and factors, and their product.  hlo_eval_linalg.c */
hlo_eval_fn hlo_eval_linalg, hlo_eval_linalg_call, hlo_eval_qr,
    hlo_eval_householder;
/* The error of a custom-call whose operands, results or configuration do not
 * fit its target. */
sd_status hlo_misfit(const hlo_inst *in);

#endif
