/* What the files of inference share.  A rule takes an instruction, checks its
 * operands and attributes, and gives the shape that follows from them.  Where
 * none follows (iota, reshape, convert, ...), the rule checks the declared
 * shape, in->shape, and gives that. */
#ifndef HLO_INFER_H
#define HLO_INFER_H

#include "hlo_priv.h"

typedef sd_status hlo_infer_fn(hlo_module *m, const hlo_inst *in,
                               const sd_shape **out);

/* "add of f32[3], f32[4] (...): what is wrong" */
sd_status hlo_bad(hlo_module *m, const hlo_inst *in, const char *fmt, ...)
    SD_PRINTF(3, 4);

sd_status hlo_want_args(hlo_module *m, const hlo_inst *in, int n);
sd_status hlo_want_array(hlo_module *m, const hlo_inst *in, int arg);
sd_status hlo_want_scalar(hlo_module *m, const hlo_inst *in, int arg,
                          sd_dtype t);
sd_status hlo_want_declared(hlo_module *m, const hlo_inst *in);
sd_status hlo_want_declared_array(hlo_module *m, const hlo_inst *in);
/* Each of dims in [0, rank), none twice; what: "dimensions". */
sd_status hlo_want_dims(hlo_module *m, const hlo_inst *in, const char *what,
                        hlo_dims d, int rank);
/* Dimension i of x is as long as dimension k of y; what: "batch". */
sd_status hlo_want_pair(hlo_module *m, const hlo_inst *in, const char *what,
                        const sd_shape *x, int64_t i, const sd_shape *y,
                        int64_t k);
/* Region k: scalars of these types in, scalars of those out. */
sd_status hlo_want_region(hlo_module *m, const hlo_inst *in, int k, int nparam,
                          const sd_dtype *param, int nresult,
                          const sd_dtype *result);
sd_status hlo_want_comps(hlo_module *m, const hlo_inst *in, int n);
/* A checked array shape. */
sd_status hlo_result(hlo_module *m, const hlo_inst *in, sd_dtype t, int rank,
                     const int64_t *dim, const sd_shape **out);
/* One shape is itself, several are a tuple. */
const sd_shape *hlo_one_or_tuple(hlo_module *m, int n,
                                 const sd_shape *const *s);
/* The extent n with its padding and holes, and how many places a window takes
 * along it; false when a number is out of range. */
bool hlo_window_count(const hlo_window_dim *w, int64_t n, int64_t *padded,
                      int64_t *out);
/* Refuses "<what> more than 2^46 elements". */
sd_status hlo_want_volume(hlo_module *m, const hlo_inst *in, const char *what,
                          const int64_t *n, int rank);

/* The part of gather that scatter has too. */
sd_status hlo_check_index_map(hlo_module *m, const hlo_inst *in,
                              const sd_shape *x, const sd_shape *ix);

hlo_infer_fn hlo_infer_leaf, hlo_infer_shape,
    hlo_infer_indexed;                                 /* hlo_infer_shape.c */
hlo_infer_fn hlo_infer_scatter, hlo_infer_reduce, hlo_infer_window,
    hlo_infer_scan, hlo_infer_map, hlo_infer_sort;     /* hlo_infer_region.c */
hlo_infer_fn hlo_infer_dot, hlo_infer_conv, hlo_infer_rng, hlo_infer_fft,
    hlo_infer_linalg, hlo_infer_norm;                  /* hlo_infer_math.c */
hlo_infer_fn hlo_infer_tuple, hlo_infer_control, hlo_infer_custom,
    hlo_infer_tokens, hlo_infer_dynamic,
    hlo_infer_collective;                              /* hlo_infer_control.c */
hlo_infer_fn hlo_infer_linalg_call;                    /* hlo_linalg.c */

#endif
