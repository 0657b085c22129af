/* vhlo_import: from an MLIR program to an HLO module.  Operations are imported
 * one by one into the current computation, and each value remembers the
 * instruction that it has become.  Functions and regions become computations of
 * their own. */
#ifndef VHLO_IMPORT_H
#define VHLO_IMPORT_H

#include "mlir.h"

enum {
    VHLO_MAX_REFUSED = 32,        /* things of one message */
    VHLO_GROUP_ENTRIES = 1 << 20, /* of a collective */
};

typedef struct vhlo_func vhlo_func;
struct vhlo_func {
    const char *name;
    mlir_op *op;
    hlo_comp *comp;   /* once imported */
    bool busy, queued;
    bool is_lost;     /* holds what is not supported */
    vhlo_func *chain; /* of equal hash */
};

/* What has been said of the error in r->st. */
typedef enum {
    VHLO_NOT_TOLD, /* there is none, or its message lacks the operation */
    VHLO_TOLD,     /* its message names the operation */
    VHLO_FOLLOWS   /* it follows from what is listed in `refused`, so that it is
                      not listed itself */
} vhlo_error_state;

struct vhlo_import {
    mlir_reader *r;
    sd_arena *a;      /* the module's */
    hlo_module *m;
    hlo_comp *c;      /* the current computation */
    sd_map *func;     /* hash of the name -> vhlo_func */
    int depth, stamp;
    vhlo_error_state error;
    sd_buf refused;   /* the list of what is not supported, of so many things */
    int nrefused;
    mlir_where where; /* of the operation being imported */
};

/* ---- vhlo_import.c ---- */

/* "stablehlo.dot_general (jit(f)/dot, model.py:12): ..." */
void vhlo_fail(vhlo_import *im, const mlir_op *op, sd_code code,
               const char *fmt, ...) SD_PRINTF(4, 5);
/* What is not supported does not end the import: it is listed, what depends
 * on it is passed over, and the list is the error in the end. */
void vhlo_refuse(vhlo_import *im, const char *what);
bool vhlo_is_supported(vhlo_import *im, const mlir_op *op);
/* What there is in a type that HLO cannot say, "tensor of quantized type";
 * NULL: nothing. */
const char *vhlo_odd_type(vhlo_import *im, uint64_t type);
/* The error of an operation that uses a value which was not imported. */
void vhlo_fail_lost(vhlo_import *im);
const char *vhlo_op_name(mlir_reader *r, const mlir_op *op);
/* " (jit(f)/dot, model.py:12)" or empty */
const char *vhlo_place(mlir_reader *r, const mlir_op *op);
bool vhlo_is_return(const mlir_op_name *n);
/* Counts of operands, results and regions against the row. */
bool vhlo_check_form(vhlo_import *im, mlir_op *op, const vhlo_row *row);
bool vhlo_as_many(vhlo_import *im, mlir_op *op); /* results as operands */
bool vhlo_has_operands(vhlo_import *im, mlir_op *op);

/* An instruction in the current computation, with the operation's source. */
hlo_inst *vhlo_emit(vhlo_import *im, hlo_op op, const sd_shape *shape, int n,
                    hlo_inst *const *arg);
/* Checks it; false after an error. */
bool vhlo_check(vhlo_import *im, hlo_inst *in);
/* Checks it and makes it the results: itself, or its elements. */
void vhlo_bind(vhlo_import *im, mlir_op *op, hlo_inst *in);
hlo_inst *vhlo_gte(vhlo_import *im, hlo_inst *in, int64_t i);
hlo_inst *vhlo_tuple(vhlo_import *im, int n, hlo_inst *const *x);
hlo_inst *vhlo_one_or_tuple(vhlo_import *im, int n, hlo_inst *const *x);
hlo_inst *vhlo_convert(vhlo_import *im, hlo_inst *x, sd_dtype t);
/* A dot of the type in which its products are summed, without its dimensions;
 * then the results, of s, which is what was declared. */
hlo_inst *vhlo_product(vhlo_import *im, const sd_shape *s,
                       hlo_inst *const *arg);
void vhlo_bind_product(vhlo_import *im, mlir_op *op, const sd_shape *s,
                       hlo_inst *in);
hlo_inst *vhlo_fill(vhlo_import *im, hlo_inst *scalar, const sd_shape *to);
/* The declared shape of the results, a tuple of them when not one.  NULL
 * after an error. */
const sd_shape *vhlo_shape(vhlo_import *im, const mlir_op *op);
/* {a="b"} of an operation's, argument's or module's dictionary d: its frontend
 * attributes, and Shardy's sharding as one of them.  NULL: none. */
const char *vhlo_frontend_attrs(vhlo_import *im, const mlir_attr *d);
void vhlo_put_frontend_attr(vhlo_import *im, sd_buf *b, const char *key,
                            const mlir_attr *value);

/* The first block of region k.  NULL, after an error, if it has not narg
 * arguments or no operation; narg -1: any number of arguments. */
mlir_block *vhlo_entry(vhlo_import *im, const mlir_op *op, int k, int narg);
/* Imports the operations of that block and gives the nout values that the last
 * one returns; nout -1: any number. */
hlo_inst **vhlo_block(vhlo_import *im, mlir_op *op, int k, int nout);
uint64_t vhlo_func_key(const char *s);
vhlo_func *vhlo_find_func(vhlo_import *im, const char *name);
/* The layout that main's parameter i, or result i of n, is asked to have; mode
 * may be NULL.  vhlo_layout.c */
void vhlo_param_layout(vhlo_import *im, vhlo_func *f, int i, const char *mode);
void vhlo_result_layout(vhlo_import *im, vhlo_func *f, int i, int n,
                        const char *mode);
hlo_comp *vhlo_func_comp(vhlo_import *im, mlir_op *caller, const char *name);

/* ---- attributes of the operation: vhlo_attr.c ---- */

#define vhlo_attr(im, op, name) mlir_inherent((im)->r, (op), (name))
/* The attribute of that name, which must be there; the functions below want it
 * to be an integer, a string and so on, as their names say. */
const mlir_attr *vhlo_need(vhlo_import *im, const mlir_op *op,
                           const char *name);
/* "NAME: an integer where WHAT should be" */
void vhlo_want(vhlo_import *im, const mlir_op *op, const char *name,
               const mlir_attr *at, const char *what);
int64_t vhlo_int(vhlo_import *im, mlir_op *op, const char *name);
/* The number of an enum's value, which must be from low to high. */
int vhlo_choice(vhlo_import *im, mlir_op *op, const char *name, int low,
                int high);
double vhlo_float(vhlo_import *im, mlir_op *op, const char *name);
const char *vhlo_string(vhlo_import *im, const mlir_op *op, const char *name);
hlo_dims vhlo_ints(vhlo_import *im, mlir_op *op, const char *name, int max);
/* Exactly n of them. */
const int64_t *vhlo_ints_of(vhlo_import *im, mlir_op *op, const char *name,
                            int n);
/* The integers of operand k, which must be a constant. */
hlo_dims vhlo_const_ints(vhlo_import *im, mlir_op *op, int k, int max);

/* Sets in's attributes from the operation's, for all rows that hlo_attr.c has
 * of in's op.  vhlo_ops.c */
void vhlo_set_attributes(vhlo_import *im, mlir_op *op, hlo_inst *in);
/* precision_config, of two operands.  vhlo_structured.c */
void vhlo_precision(vhlo_import *im, mlir_op *op, hlo_prec *prec);
/* x broadcast to the shape `to`, its dimension i becoming dimension bd.at[i].
 * vhlo_ops.c */
hlo_inst *vhlo_broadcast_to(vhlo_import *im, mlir_op *op, hlo_inst *x,
                            hlo_dims bd, const sd_shape *to);

/* Wraps a result of main in a mark that says how it is sharded, by Shardy's
 * text or XLA's by tiles (NULL: not given), and returns the value that main
 * then returns.  vhlo_sharding.c */
hlo_inst *vhlo_shard_result(vhlo_import *im, hlo_inst *in, const char *sdy,
                            const char *tiles);

/* ---- vhlo_control.c ---- */

/* Region k as a computation.  Its parameters are the block's arguments, then
 * the values outside that the region uses; *all is arg with these values
 * behind it: what a caller passes.  NULL after an error. */
hlo_comp *vhlo_body(vhlo_import *im, mlir_op *op, int k, const char *name,
                    hlo_inst *const *arg, hlo_inst ***all, int *nall);

/* A region of scalars: parameters are the block's arguments. */
hlo_comp *vhlo_reducer(vhlo_import *im, mlir_op *op, int k, const char *name);

/* ---- vhlo_call.c, vhlo_async.c ---- */

/* The functions that a custom call names; n: how many. */
hlo_comp **vhlo_called(vhlo_import *im, mlir_op *op, int *n);
/* Makes a collective with the attributes c and the shape s, and binds it to the
 * operation's results.  body: what it reduces by, or NULL; join: the dimension
 * that an all-to-all concatenates. */
void vhlo_collective(vhlo_import *im, mlir_op *op, hlo_op to,
                     hlo_collective *c, int64_t join, const sd_shape *s,
                     hlo_comp *body, hlo_inst **arg);
/* Is `target` a custom call that is an asynchronous collective?  vhlo_async
 * imports it as that collective, of a result of shape s. */
bool vhlo_is_async(const char *target);
void vhlo_async(vhlo_import *im, mlir_op *op, hlo_inst **arg,
                const char *target, const sd_shape *s);

typedef void vhlo_fn_t(vhlo_import *im, mlir_op *op, hlo_inst **arg);
vhlo_fn_t op_simple, op_scalars, op_compare, op_constant,
    op_broadcast, op_broadcast_in_dim, op_by_dim, op_rng, op_attributes,
    op_reduce_precision, op_barrier, op_get_dimension_size,
    op_set_dimension_size;                        /* vhlo_ops.c */
vhlo_fn_t op_dynamic_iota, op_dynamic_reshape;    /* vhlo_ops.c */
vhlo_fn_t op_gather, op_scatter, op_reduce, op_reduce_window,
    op_select_and_scatter, op_sort, op_map, op_dot,
    op_convolution;                               /* vhlo_structured.c */
vhlo_fn_t op_einsum, op_unary_einsum, op_index_select; /* vhlo_legacy.c */
vhlo_fn_t op_while, op_case, op_call, op_composite; /* vhlo_control.c */
vhlo_fn_t op_identity;                              /* vhlo_import.c */
vhlo_fn_t op_sharding, op_group, op_manual;         /* vhlo_sharding.c */
vhlo_fn_t op_async_start, op_async_done;            /* vhlo_call.c */
vhlo_fn_t op_custom_call, op_send, op_recv, op_infeed, op_outfeed,
    op_collective;                                  /* vhlo_call.c */
vhlo_fn_t op_square, op_conj, op_top_k, op_constant_like, op_chlo_broadcast,
    op_chlo_compare, op_is_inf, op_mulhi,
    op_next_after;                                  /* vhlo_chlo.c */
vhlo_fn_t op_chlo_unary, op_chlo_binary;            /* vhlo_chlo_math.c */
vhlo_fn_t op_ragged_dot;                            /* vhlo_chlo_ragged.c */

#endif
