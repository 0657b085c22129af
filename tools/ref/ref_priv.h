/* What the files of the reference share. */
#ifndef REF_PRIV_H
#define REF_PRIV_H

#include "hlo_eval.h"
#include "ref.h"

extern const hlo_evaluator ref_evaluator; /* ref.c */

typedef struct { /* n participants at one instruction; arrays are by participant */
    int64_t n;
    const bool *here;     /* does it run the instruction? */
    hlo_value *const *in; /* its operands' values */
    hlo_value *out;       /* its result, made if it is here */
} hlo_gang;
/* Participants at a collective, or at a custom-call that needs the values of
 * all of them (ref_is_joint): the border of a manual computation, or a ragged
 * all-to-all.  ref_join.c */
sd_status ref_join(hlo_ev *e, const hlo_inst *in, const hlo_gang *g);
bool ref_is_joint(const hlo_inst *in);
sd_status ref_joint(hlo_ev *e, const hlo_inst *in, const hlo_gang *g);

/* A computation on scalars, run many times. */
typedef struct ref_region ref_region;
ref_region *ref_region_open(hlo_ev *e, const hlo_comp *c);
/* arg: elements; result: where to put them, not among the arguments. */
sd_status ref_region_run(hlo_ev *e, ref_region *r, const void *const *arg,
                         void *const *result);
/* True if the region is one op on its two parameters, as a sum is: *op. */
bool ref_region_op(const ref_region *r, hlo_op *op);

/* Sorts the lines of n arrays along dimension d by `less` (NULL: the largest
 * first), and keeps of each line as many elements as out has room for. */
sd_status ref_sort_lines(hlo_ev *e, const hlo_comp *less, int n,
                         const hlo_value *x, int64_t d, hlo_value *out);

hlo_eval_fn ref_reduce, ref_window, ref_scan, ref_map,
    ref_sort;             /* ref_region.c */
hlo_eval_fn ref_dot, ref_conv, ref_fft, ref_norm,
    ref_fft_lines;        /* ref_math.c */
hlo_eval_fn ref_control;  /* ref_run.c */
hlo_eval_fn ref_scatter;  /* ref_elements.c */
hlo_eval_fn ref_rng;      /* ref_rng.c */
hlo_eval_fn ref_custom;   /* ref_custom.c */
hlo_eval_fn ref_attend;   /* ref_attend.c */
/* The operations; the calls of hlo_linalg.def; XLA's custom-calls:
 * Householder's vectors and factors, and their product.  ref_linalg.c */
hlo_eval_fn ref_linalg, ref_linalg_call, ref_qr, ref_householder;
/* The error of a custom-call whose operands, results or configuration do not
 * fit its target. */
sd_status ref_misfit(const hlo_inst *in);

#endif
