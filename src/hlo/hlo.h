/* hlo: the graph.  A module owns computations; a computation owns instructions,
 * in an order in which operands come before their users.  Everything lives in
 * the module's arena.  Structs are open to read, but operands, computations and
 * roots are changed only through the functions here, which keep the use lists
 * right.  One thread at a time.
 *
 * As in XLA: several results are a tuple, taken apart by get-tuple-element;
 * while and its computations have one (tuple) parameter; a conditional's
 * branches take one operand each; regions capture nothing. */
#ifndef HLO_H
#define HLO_H

#include "base.h"

typedef enum {
#define OP(id, name, cls, types, props, ulp, fn, element) HLO_##id,
#include "hlo_ops.def"
#undef OP
    HLO_OP_COUNT
} hlo_op;

typedef enum {
    HLO_C_UNARY, HLO_C_BINARY, HLO_C_TERNARY, HLO_C_COMPARE, HLO_C_CONVERT,
    HLO_C_BITCAST, HLO_C_LEAF, HLO_C_SHAPE, HLO_C_INDEXED, HLO_C_SCATTER,
    HLO_C_REDUCE, HLO_C_WINDOW, HLO_C_SCAN, HLO_C_MAP, HLO_C_SORT, HLO_C_DOT,
    HLO_C_CONV, HLO_C_RNG, HLO_C_FFT, HLO_C_LINALG, HLO_C_NORM, HLO_C_TUPLE,
    HLO_C_CONTROL, HLO_C_CUSTOM, HLO_C_TOKENS, HLO_C_DYNAMIC,
    HLO_C_COLLECTIVE, HLO_CLASS_COUNT
} hlo_class;

enum { /* element types an op takes: a mask of 1 << sd_kind, signed split */
    HLO_T_PRED = 1, HLO_T_SINT = 2, HLO_T_UINT = 4, HLO_T_FLOAT = 8,
    HLO_T_CPLX = 16,
    HLO_T_INT = HLO_T_SINT | HLO_T_UINT,
    HLO_T_LOGIC = HLO_T_INT | HLO_T_PRED,
    HLO_T_SIGNED = HLO_T_SINT | HLO_T_FLOAT | HLO_T_CPLX,
    HLO_T_NUM = HLO_T_INT | HLO_T_FLOAT | HLO_T_CPLX,
    HLO_T_ANY = HLO_T_NUM | HLO_T_PRED
};
int hlo_type_bit(sd_dtype t); /* one of the first five; 0: tuples, tokens */

enum { HLO_P_COMM = 1, HLO_P_ASSOC = 2, HLO_P_REGION = 4, HLO_P_EFFECT = 8,
       HLO_P_CHEAP = 16, HLO_P_HEAVY = 32 };

typedef struct {
    const char *name;
    uint8_t cls, types, props, ulp;
    const char *fn; /* dl_<fn>_f32, dl_<fn>_f64 compute it; or NULL */
} hlo_op_info;
extern const hlo_op_info hlo_op_table[HLO_OP_COUNT];
bool hlo_op_of_name(const char *s, size_t len, hlo_op *out);

typedef struct hlo_inst hlo_inst;
typedef struct hlo_comp hlo_comp;
typedef struct hlo_module hlo_module;
typedef struct hlo_sharding hlo_sharding; /* hlo_sharding.h */
typedef struct hlo_meshes hlo_meshes;
typedef struct hlo_partitioner hlo_partitioner; /* hlo_sharding.h, too */

typedef struct { const int64_t *at; int n; } hlo_dims;

typedef enum { HLO_EQ, HLO_NE, HLO_GE, HLO_GT, HLO_LE, HLO_LT } hlo_cmp_dir;
typedef enum { HLO_CMP_FLOAT, HLO_CMP_TOTAL, HLO_CMP_SIGNED, HLO_CMP_UNSIGNED }
    hlo_cmp_type;

typedef struct { /* one dimension of a window, pooling or convolution */
    int64_t size, stride, pad_low, pad_high, base_dilation, window_dilation;
    int64_t reversal; /* 0 or 1 */
} hlo_window_dim;

/* The last one is no program's: the operand has tf32's digits already
 * (hlo_opt_operands.c). */
typedef enum {
    HLO_PREC_DEFAULT,
    HLO_PREC_HIGH,
    HLO_PREC_HIGHEST,
    HLO_PREC_TF32
} hlo_prec;
/* How a dot is to be computed: a row by XLA's number, row 0 being "as its types
 * say".  Operands are rounded to the type `operand`, products are summed in the
 * type `sum`; either may be HLO_AS_IS, the type that is there. */
enum { HLO_AS_IS = SD_DTYPE_COUNT, HLO_ALGORITHM_COUNT = 14 };
typedef struct {
    const char *name;
    int operand, sum;
    bool tf32; /* operands are f32 of 10 bits of mantissa */
} hlo_algorithm;
extern const hlo_algorithm hlo_algorithm_table[HLO_ALGORITHM_COUNT];
const hlo_algorithm *hlo_algorithm_of(const char *name); /* NULL: no such */

/* So many terms of a dot of f32 or f64 are added as rounded products are, on all
 * devices and whatever computes it but for a library.  Of bf16 its engines add
 * otherwise, and its blocks take subnormal sums for 0. */
enum { HLO_FEW_TERMS = 8 };

typedef struct { /* result: batch dims, lhs free, rhs free */
    hlo_dims lhs_batch, rhs_batch, lhs_contract, rhs_contract;
    hlo_prec prec[2];
    const char *algorithm; /* "dot_bf16_bf16_f32_x3"; NULL: none */
} hlo_dot;

typedef struct {
    int nspatial;
    int64_t in_batch, in_feature, out_batch, out_feature, k_in, k_out;
    hlo_dims in_spatial, k_spatial, out_spatial;
    hlo_window_dim *win; /* nspatial */
    int64_t feature_groups, batch_groups;
    hlo_prec prec[2];
} hlo_conv;

typedef struct {
    hlo_dims offset_dims, collapsed, operand_batch, indices_batch, index_map;
    int64_t index_vector_dim;
    hlo_dims slice_sizes; /* gather */
    bool sorted, unique;
} hlo_gather; /* scatter: update_window, inserted, input_batch,
                 scatter_indices_batch, scatter_dims_to_operand_dims */

typedef enum { HLO_FFT_FFT, HLO_FFT_IFFT, HLO_FFT_RFFT, HLO_FFT_IRFFT }
    hlo_fft_type;
typedef enum { HLO_RNG_DEFAULT, HLO_RNG_THREEFRY, HLO_RNG_PHILOX } hlo_rng_algo;
typedef enum { HLO_RNG_UNIFORM = 1, HLO_RNG_NORMAL } hlo_rng_distribution;
typedef enum { HLO_TRANSPOSE_NONE = 1, HLO_TRANSPOSE_YES, HLO_TRANSPOSE_ADJOINT }
    hlo_transpose_kind;

enum { HLO_TYPED_FFI = 4 }; /* a custom-call's API version */

typedef struct {
    const char *target, *config; /* config: text of the backend_config */
    size_t config_len;
    int api_version;       /* 4: typed FFI */
    bool has_side_effect;
    hlo_dims *operand_layout, *result_layout; /* NULL: row-major */
    struct { hlo_dims out_index; int64_t operand; hlo_dims operand_index; }
        *alias;
    int nalias;
    const struct libcall *lib; /* plan: the library call that it is; or NULL */
} hlo_custom;

typedef struct { /* collectives, send and recv */
    int64_t channel;
    const int64_t *groups; /* ngroup x group_size */
    int64_t ngroup, group_size, dim, split_count;
    bool use_global_ids, host_transfer;
} hlo_collective;

typedef enum { HLO_FUSION_LOOP, HLO_FUSION_INPUT, HLO_FUSION_OUTPUT,
               HLO_FUSION_CUSTOM } hlo_fusion_kind;

struct hlo_inst {
    hlo_op op;
    int id;                /* unique in the module */
    const char *name;      /* "multiply.3", unique in the module */
    hlo_comp *parent;
    hlo_inst *prev, *next; /* in the computation */
    const sd_shape *shape;
    hlo_inst **arg;
    int narg;
    hlo_inst **user;       /* add(x, x) stands twice among the users of x */
    int nuse, user_cap;
    hlo_comp **comp;       /* while: cond, body; reduce: to_apply; ... */
    int ncomp;
    /* dims: broadcast (operand dim -> result dim), transpose, reverse, reduce,
     * map; one entry: iota, concatenate, sort, all-gather, dimension-size.
     * dynamic-slice: the slice sizes.  topk: {k}. */
    hlo_dims dims;
    union {
        struct { int64_t *start, *limit, *stride; } slice;
        struct { int64_t *low, *high, *interior; } pad;
        int64_t *by_dim[3]; /* slice, pad: the three above, by number */
        struct { hlo_window_dim *dim; int n; } window; /* reduce-window, s&s */
        struct { int64_t dim; bool exclusive, reverse; } scan;
        const hlo_dot *dot;
        const hlo_conv *conv;
        const hlo_gather *gather; /* gather, scatter */
        struct { hlo_cmp_dir dir; hlo_cmp_type type; } compare;
        struct { const void *data; size_t bytes; } literal; /* constant; dense */
        struct { int64_t index; } param, tuple;  /* parameter, gte */
        struct { int exponent, mantissa; } precision;
        struct { hlo_fft_type type; hlo_dims length; } fft;
        struct { hlo_rng_algo algo; hlo_rng_distribution distribution; } rng;
        struct { bool left, lower, unit; hlo_transpose_kind trans; } linalg;
        struct { double epsilon; int64_t feature; } norm;
        struct { bool stable; } sort; /* topk: largest, always stable */
        struct { hlo_fusion_kind kind; } fusion;
        const hlo_custom *custom;
        const hlo_collective *coll;
        const void *block; /* any of these: dot, conv, gather, custom, coll */
    } u;
    const char *op_name, *source_file; /* JAX's; may be NULL */
    int source_line;
    const char *sharding;  /* text, kept; may be NULL */
    const char *frontend_attrs;
    /* Scratch of the pass that runs, which finds anything there.  A pass reads
     * and writes it by accessors of its own, whose names say what it is. */
    void *tag;
    int64_t mark;
};

struct hlo_comp {
    const char *name;
    int id;
    hlo_module *module;
    hlo_comp *next, *prev;
    hlo_inst *first, *last, *root;
    hlo_inst **param;
    int nparam;
    hlo_inst *caller;      /* if it is the only one; else NULL */
    int ncaller;           /* how often it is called, as hlo_set_comps counts */
    void *tag;             /* scratch, as an instruction's */
    int64_t mark;
};

typedef struct { int64_t output_index, param; bool must; } hlo_alias;

struct hlo_module {
    const char *name;      /* "jit_integer_pow" */
    sd_arena *arena;       /* not owned */
    hlo_comp *first, *last, *entry;
    int next_id;
    hlo_alias *alias;      /* results that take the memory of a parameter which
                              the framework named for them */
    int nalias;
    bool *donor;           /* per entry parameter: any result may take its
                              memory */
    int nreplica, npartition;
    hlo_meshes *mesh;      /* that shardings name; NULL: not read yet */
    /* Per entry parameter and per result: 1 if hlo_spmd may choose the
     * sharding where the program gives none, 0 if it then stays whole.  One
     * number counts for all; no number is 0 for parameters and 1 for
     * results. */
    hlo_dims open_param, open_output;
    /* Set by hlo_spmd in a module of several participants, else NULL: entry
     * shapes are then those of one participant's parts, and these shardings,
     * one each and none NULL, say of which whole arrays. */
    const hlo_sharding **param_sharding, **output_sharding;
    /* The module that PJRT and dumps show in place of this one, in which
     * collectives are not lowered yet; NULL: this one. */
    const hlo_module *shown;
    const hlo_partitioner *partitioner; /* borrowed; NULL: there is none */
    bool excess_precision; /* chains of bf16 may keep f32: the user said so */
    int64_t slice_size;    /* for tests: `slices` cuts all arrays of so many
                              elements that it can; 0: where it pays */
    const char **param_memory, **output_memory; /* memory kinds; may be NULL */
    hlo_dims *param_layout, *output_layout; /* of the caller's bytes, where all
                              arrays inside are row-major; NULL, or an entry
                              without dimensions: row-major, too */
    bool laid_out;         /* hlo_layouts_apply has run */
    const char *frontend_attrs; /* the module's own; may be NULL */
    sd_map *names;         /* how often a base name was given */
    bool made[HLO_OP_COUNT]; /* was there ever one of the op? */
};

/* ---- build (hlo_build.c) ---- */

hlo_module *hlo_module_create(sd_arena *a, const char *name);
int64_t hlo_participants(const hlo_module *m); /* replicas x partitions */
hlo_comp *hlo_comp_create(hlo_module *m, const char *name);
void hlo_comp_append(hlo_module *m, hlo_comp *c); /* to the module's list */
void hlo_comp_remove(hlo_comp *c);
void hlo_comp_move_before(hlo_comp *c, hlo_comp *before); /* in that list */
/* Appends before `before` (NULL: at the end).  Operands' use lists grow. */
hlo_inst *hlo_inst_create(hlo_comp *c, hlo_inst *before, hlo_op op,
                          const sd_shape *shape, int narg,
                          hlo_inst *const *arg);
/* The same with the shape inferred; attributes must be given first, so these
 * helpers exist for what passes build most.  All append before `before`. */
typedef struct { hlo_comp *c; hlo_inst *before; const hlo_inst *like; } hlo_at;
/* like: where op_name and source come from; may be NULL */
hlo_inst *hlo_make_unary(hlo_at p, hlo_op op, hlo_inst *x);
hlo_inst *hlo_make_binary(hlo_at p, hlo_op op, hlo_inst *x, hlo_inst *y);
hlo_inst *hlo_make_compare(hlo_at p, hlo_cmp_dir dir, hlo_inst *x, hlo_inst *y);
hlo_inst *hlo_make_select(hlo_at p, hlo_inst *pred, hlo_inst *x, hlo_inst *y);
hlo_inst *hlo_make_convert(hlo_at p, sd_dtype t, hlo_inst *x);
hlo_inst *hlo_make_bitcast_convert(hlo_at p, sd_dtype t, hlo_inst *x);
hlo_inst *hlo_make_constant(hlo_at p, const sd_shape *s, const void *data);
hlo_inst *hlo_make_scalar(hlo_at p, sd_dtype t, double v);  /* rank 0 */
hlo_inst *hlo_make_scalar_s64(hlo_at p, sd_dtype t, int64_t v);
/* The scalar x broadcast to the dimensions of s. */
hlo_inst *hlo_make_spread(hlo_at p, hlo_inst *x, const sd_shape *s);
/* A scalar of the value, broadcast to the shape. */
hlo_inst *hlo_make_fill(hlo_at p, const sd_shape *s, double v);
/* An array of the dimensions of s and of type t, of the number v. */
hlo_inst *hlo_make_fill_s64(hlo_at p, const sd_shape *s, sd_dtype t, int64_t v);
/* x of f32 as tf32, ties away from 0, as cvt.rna does it. */
hlo_inst *hlo_make_trimmed(hlo_at p, hlo_inst *x);
hlo_inst *hlo_make_broadcast(hlo_at p, hlo_inst *x, const sd_shape *to,
                             const int64_t *dims, int n);
hlo_inst *hlo_make_reshape(hlo_at p, hlo_inst *x, int rank, const int64_t *dim);
hlo_inst *hlo_make_transpose(hlo_at p, hlo_inst *x, const int64_t *perm);
hlo_inst *hlo_make_reverse(hlo_at p, hlo_inst *x, const int64_t *dims, int n);
hlo_inst *hlo_make_slice(hlo_at p, hlo_inst *x, const int64_t *start,
                         const int64_t *limit, const int64_t *stride);
/* Positions [from, to) of dimension d of x; x where that is all. */
hlo_inst *hlo_make_cut(hlo_at p, hlo_inst *x, int64_t d, int64_t from,
                       int64_t to);
/* start: a scalar for each dimension, all of one type. */
hlo_inst *hlo_make_dynamic_slice(hlo_at p, hlo_inst *x, hlo_inst *const *start,
                                 const int64_t *size);
hlo_inst *hlo_make_dynamic_update(hlo_at p, hlo_inst *x, hlo_inst *part,
                                  hlo_inst *const *start);
hlo_inst *hlo_make_pad(hlo_at p, hlo_inst *x, hlo_inst *value,
                       const int64_t *low, const int64_t *high,
                       const int64_t *interior); /* interior NULL: 0 */
/* x with so many values (NULL: zeros) before and behind those of dimension d
 * (below 0: with so many less); x where both are 0. */
hlo_inst *hlo_make_pad_dim(hlo_at p, hlo_inst *x, hlo_inst *value, int64_t d,
                           int64_t low, int64_t high);
/* Dimension d of x as two, of n and `each`; dimensions d and d + 1 as one. */
hlo_inst *hlo_make_split(hlo_at p, hlo_inst *x, int64_t d, int64_t n,
                         int64_t each);
hlo_inst *hlo_make_join(hlo_at p, hlo_inst *x, int64_t d);
/* Dimension `from` of x at place `to`, the others in order. */
hlo_inst *hlo_make_moved(hlo_at p, hlo_inst *x, int64_t from, int64_t to);
/* The n parts of dimension `from` one behind the other along dimension `to`. */
hlo_inst *hlo_make_parts_along(hlo_at p, hlo_inst *x, int64_t from, int64_t n,
                               int64_t to);
hlo_inst *hlo_make_concatenate(hlo_at p, int n, hlo_inst *const *x, int64_t dim);
hlo_inst *hlo_make_iota(hlo_at p, const sd_shape *s, int64_t dim);
hlo_inst *hlo_make_reduce(hlo_at p, hlo_inst *x, hlo_inst *init,
                          const int64_t *dims, int n, hlo_comp *body);
hlo_inst *hlo_make_sum(hlo_at p, hlo_inst *x, const int64_t *dims, int n);
hlo_inst *hlo_make_dot(hlo_at p, hlo_inst *x, hlo_inst *y, sd_dtype t,
                       const hlo_dot *d);
hlo_inst *hlo_make_tuple(hlo_at p, int n, hlo_inst *const *x);
hlo_inst *hlo_make_gte(hlo_at p, hlo_inst *x, int64_t index);
hlo_inst *hlo_make_param(hlo_comp *c, const sd_shape *s, const char *name);
/* A computation of two scalars of type t with one op; shared per module. */
hlo_comp *hlo_scalar_comp(hlo_module *m, hlo_op op, sd_dtype t);
/* If c is `op(param 0, param 1)` in either order of a commutative op. */
bool hlo_comp_is_binary(const hlo_comp *c, hlo_op *op);

void hlo_set_arg(hlo_inst *in, int i, hlo_inst *to);
void hlo_set_comps(hlo_inst *in, int n, hlo_comp *const *c);
void hlo_replace(hlo_inst *in, hlo_inst *with); /* all uses, and root; in stays */
void hlo_replace_use(hlo_inst *user, hlo_inst *from, hlo_inst *to);
/* in must be unused, and not the root.  When a parameter is removed, later ones
 * take the next lower number; since callers depend on these, hlo_has_effect is
 * true of parameters and dead code elimination keeps them. */
void hlo_remove(hlo_inst *in);
/* Removes what nobody uses and has no effect; was there any? */
bool hlo_comp_sweep(hlo_comp *c);
void hlo_set_root(hlo_comp *c, hlo_inst *root);
void hlo_rename(hlo_inst *in, const char *base);
/* The framework's name and source line, for messages; from may be NULL. */
void hlo_take_source(hlo_inst *to, const hlo_inst *from);
/* Clones attributes too (they are shared: immutable once built). */
hlo_inst *hlo_inst_clone(hlo_comp *c, hlo_inst *before, const hlo_inst *in,
                         hlo_inst *const *arg);
hlo_comp *hlo_comp_clone(hlo_module *m, const hlo_comp *c, const char *name);
hlo_module *hlo_module_clone(const hlo_module *m); /* in the same arena */
bool hlo_reads(const hlo_inst *in, const hlo_inst *value); /* as operand */
hlo_dims hlo_dims_copy(sd_arena *a, const int64_t *at, int n);
/* Where a transpose by `perm` puts dimension d, and those of d. */
int64_t hlo_dim_turned(const int64_t *perm, int64_t d);
hlo_dims hlo_dims_turned(sd_arena *a, const int64_t *perm, hlo_dims d);
int hlo_dims_find(hlo_dims d, int64_t x); /* where; -1: nowhere */
bool hlo_dims_hold(hlo_dims d, int64_t x);
bool hlo_dims_equal(hlo_dims x, hlo_dims y);
/* Of a dot or a convolution: both operands' precisions. */
const hlo_prec *hlo_prec_of(const hlo_inst *in);
/* JAX's and XLA's rule of GPUs: at every precision but the highest f32 may be
 * multiplied with tf32's digits (ADR 33).  Whoever sums in f64 wants all. */
bool hlo_may_round(const hlo_inst *in);
bool hlo_dims_rise(hlo_dims d); /* each is more than the one before it */
bool hlo_dims_fit(hlo_dims d, int rank); /* each is in [0, rank), none twice */
bool hlo_is_row_major(hlo_dims order); /* of dimensions, minor to major */
/* Adds transposes at the entry's parameters and results, so that it reads and
 * writes bytes that lie as m->param_layout and m->output_layout say.  In a
 * module of several participants, hlo_spmd comes first.  hlo_layout.c */
void hlo_layouts_apply(hlo_module *m);
int hlo_comp_count(const hlo_comp *c); /* instructions */
void hlo_comp_sort(hlo_comp *c);       /* operands first again, stable */

#define hlo_for_each_comp(c, m) \
    for (hlo_comp *c = (m)->first, *c##_next; \
         c && (c##_next = c->next, true); c = c##_next)
#define hlo_for_each_inst(in, c) \
    for (hlo_inst *in = (c)->first, *in##_next; \
         in && (in##_next = in->next, true); in = in##_next)
#define hlo_for_each_inst_backward(in, c) \
    for (hlo_inst *in = (c)->last, *in##_next; \
         in && (in##_next = in->prev, true); in = in##_next)
/* None may come or go meanwhile. */
#define hlo_for_each_user(u, in) \
    for (hlo_inst **u##_at = (in)->user, *u; \
         u##_at - (in)->user < (in)->nuse && ((u) = *u##_at, true); u##_at++)

/* ---- ask ---- */

static inline const hlo_op_info *hlo_info(const hlo_inst *in)
{
    return &hlo_op_table[in->op];
}
/* The dimension that a collective joins, cuts or scatters along, or -1. */
static inline int64_t hlo_collective_dim(const hlo_inst *in)
{
    return in->dims.n ? in->dims.at[0] : in->u.coll ? in->u.coll->dim : -1;
}
/* How many results in has, and the shape of result i: see sd_shape_nresult. */
static inline int hlo_nresult(const hlo_inst *in)
{
    return sd_shape_nresult(in->shape);
}
static inline const sd_shape *hlo_result_shape(const hlo_inst *in, int i)
{
    return sd_shape_result(in->shape, i);
}
bool hlo_is_elementwise(const hlo_inst *in); /* unary .. convert, same dims */
/* Turns of a while: exact where its HLO tells, else -1. */
int64_t hlo_turns(const hlo_inst *loop);
bool hlo_has_effect(const hlo_inst *in);     /* or something that it calls */
bool hlo_is_scalar_const(const hlo_inst *in, double *v); /* or its broadcast */
bool hlo_is_splat(const hlo_inst *constant); /* all elements equal */
/* Are x and y equal but for operands and computations?  False for ops that are
 * never merged, as those that draw random numbers. */
bool hlo_same_attributes(const hlo_inst *x, const hlo_inst *y);
uint64_t hlo_hash_attributes(const hlo_inst *in, uint64_t h);
/* Is it a reduce-window that is a running reduction, as cumsum?  Along which
 * dimension, and from its end? */
bool hlo_is_cumulative(const hlo_inst *in, int64_t *dim, bool *reverse);
/* The number under a key of a custom call's configuration, a dictionary. */
bool hlo_custom_int(const hlo_custom *c, const char *key, int64_t *v);
/* How many arrays a reduce, sort or scatter works on side by side: a reduce of
 * two has four operands, two arrays and two initial values. */
int hlo_ninput(const hlo_inst *in);

/* ---- calls of the device library (hlo_call.c) ---- */

enum { HLO_CALL_INTS = 26, HLO_CALL_LANES = 16 };
/* A custom-call that a device function computes, called once an item (a matrix
 * of a batch, a line of a Fourier transform); items do not depend on each
 * other. */
typedef struct {
    const hlo_inst *in;
    const char *fn;   /* "dl_fft_f32": C of src/devlib */
    int64_t items;    /* how often fn is called */
    bool whole;       /* fn gets whole arrays and the item's number; else the
                         item's part of each array, all parts being equal */
    int nint;         /* integers that fn gets after its pointers: at[] */
    int64_t at[HLO_CALL_INTS];
    size_t work;      /* bytes of work space that a call gets; 0: none */
    bool in_local;    /* it is a group's own memory */
    double flops;     /* of all items */
    const char *lanes; /* a function that takes up to HLO_CALL_LANES items side
                          by side, and their number behind the work space; or
                          NULL */
    size_t lanes_work; /* its work space */
    const char *group; /* a function of which a group of work items does one
                          item; or NULL */
    size_t group_work; /* its work space */
    int64_t wide;      /* about how many work items have something to do */
    bool grouped;      /* plan takes `group` */
    bool small; /* many small matrices, for which LAPACK is not quicker */
    int64_t each;     /* items of a call: 1 until plan takes `lanes` */
    bool in_place;    /* the result may take operand 0's memory: an item writes
                         only where no other reads, after it has read all */
} hlo_call;
/* False if in is no such call, or has types or sizes that no function takes. */
bool hlo_device_call(const hlo_inst *in, hlo_call *out);
/* Of a Fourier transform: fewer lines an item, that there be `items` of them if
 * there can, and that an item works in `room` bytes of a group's own memory, or
 * in `most` at least; else it works elsewhere. */
void hlo_call_share_out(hlo_call *c, int64_t items, size_t room, size_t most);
#define HLO_CALL_FFT "sundog.fft"
bool hlo_call_fft(const hlo_inst *in, hlo_call *out); /* hlo_fft.c */

/* ---- attention (hlo_attend.c) ---- */

/* The custom-call "sundog.attend": operands q, k, v and the arrays that scores
 * read beside them; a function of one score; configuration
 * "Aqd,Akd,Ake,qk->Aqe": which axis each dimension is, of the operands and the
 * result.  A, B, .. are of the batch, q rows, k keys, d is summed over in
 * scores; e is v's own.  For each point of the batch and each row
 *
 *   s[k] = f(sum over d of q * k, row, key, elements of the other arrays)
 *   result[e] = sum over k of softmax(s)[k] * v[k, e]
 *
 * "..->Aqe,Aq,Aq" has as further results, of f32, what its gradient asks for: m,
 * each row's largest score, and r, 1 / the sum of exp(s - m).
 *
 * "sundog.attend-gradient": operands q, k, v, the cotangent o of the result, m, r,
 * c, which is the sum over e of o times the result, and the other arrays; f, and
 * h of the same parameters but for ds, which follows the key:
 *
 *   p = exp(s - m) * r
 *   ds = p * (sum over e of o * v, less c)
 *   dx = h(product, row, key, ds, elements of the other arrays)
 *
 * Its result "Aqd" is the sum over k of dx * k, of q's gradient; or its results
 * "Akd,Ake" are the sums over q of dx * q and of p * o, of k's and v's. */
#define HLO_CALL_ATTEND          "sundog.attend"
#define HLO_CALL_ATTEND_GRADIENT "sundog.attend-gradient"
enum { HLO_ATTEND_BATCH = 8, HLO_ATTEND_Q = HLO_ATTEND_BATCH, HLO_ATTEND_K,
       HLO_ATTEND_D, HLO_ATTEND_E, HLO_ATTEND_AXES,
       HLO_ATTEND_MORE = 4,  /* other arrays */
       HLO_ATTEND_OWN = 7,   /* arrays before these, at most */
       HLO_ATTEND_RESULTS = 3,
       HLO_ATTEND_ARRAYS =
           HLO_ATTEND_OWN + HLO_ATTEND_MORE + HLO_ATTEND_RESULTS,
       HLO_ATTEND_FIRST = 3 /* parameters of f before their elements */ };
typedef enum { HLO_ATTEND_VALUE, HLO_ATTEND_OF_ROWS, HLO_ATTEND_OF_KEYS,
               HLO_ATTEND_KINDS } hlo_attend_kind;
typedef struct {
    hlo_attend_kind kind; /* a gradient: of q, or of k and v */
    int nown, nmore, nresult;
    int64_t extent[HLO_ATTEND_AXES]; /* 1: nobody has the axis */
    /* Elements from one position of an axis to the next, in the operands in
     * their order, and behind them the results; 0: it has no such axis. */
    int64_t stride[HLO_ATTEND_ARRAYS][HLO_ATTEND_AXES];
    const hlo_comp *score, *slope; /* f; h or NULL */
} hlo_attend;
static inline int hlo_attend_result(const hlo_attend *a) /* the first one's */
{
    return a->nown + a->nmore;
}
/* Is it a call by one of these names, whatever its operands? */
bool hlo_attend_is_named(const hlo_inst *in);
/* False: in is no such call, or its operands do not fit. */
bool hlo_attend_read(const hlo_inst *in, hlo_attend *out);
/* Is it one that kernels do?  q, k and v are of 16 bits, d and e their last
 * dimensions (but see hlo_attend_is_turned), multiples of 8 from 16 to 256, of gradients to 128; no array has
 * 2^31 elements. */
enum { HLO_ATTEND_LEAST = 16, HLO_ATTEND_MOST = 256, HLO_ATTEND_PART = 8,
       HLO_ATTEND_MOST_GRADIENT = 128 };
bool hlo_attend_has_kernel(const hlo_inst *in);
/* Can kernels do it, too, to which messages bring q, k and v as blocks of
 * matrices (ADR 25)?  A position along q or k is a row, of 64 bytes at least;
 * other axes are steps of whole rows, or within one.  d and e are LEAST_READ at
 * least, e MOST_READ at most. */
enum { HLO_ATTEND_LEAST_READ = 32, HLO_ATTEND_MOST_READ = 128,
       HLO_ATTEND_MOST_ROWS = 1 << 24 /* of a matrix, and bytes of one */ };
bool hlo_attend_is_matrices(const hlo_attend *a);
/* Or those whose items bring k and v?  v's last dimension are keys: it is
 * turned, and has whole blocks of them, those behind the last one zeros.  e is
 * MOST_READ at most; it is no gradient and gives nothing for one. */
enum { HLO_ATTEND_KEYS_GATHERED = 32, HLO_ATTEND_STEP_GATHERED = 16 };
bool hlo_attend_is_turned(const hlo_attend *a);
bool hlo_attend_is_gathered(const hlo_attend *a);
/* As far as it is told by the dimensions of a position of q and k, and of v,
 * and by the rows of a matrix and the elements of one. */
bool hlo_attend_fits_blocks(int64_t d, int64_t e);
bool hlo_attend_fits_matrix(int64_t rows, int64_t row);
char hlo_attend_letter(int axis);

/* ---- gradients of windows (hlo_places.c) ---- */

/* The custom-call "sundog.window-gradient": operands x [n, h, w, i] and y
 * [n, r, c, o]; its result is f32 [s, a, b, i, o], and its configuration
 * "1,1", how many rows and columns of zeros are in front of x.  Added over s the
 * result is
 *
 *   sum over n, r, c of x[n, r + a - 1, c + b - 1, i] * y[n, r, c, o]
 *
 * where x is 0 outside; each s has a part of the positions. */
#define HLO_CALL_PLACES "sundog.window-gradient"
typedef struct {
    int64_t images, features, own; /* n, i, o */
    int64_t size[2], of[2], place[2], low[2]; /* h, w; r, c; a, b; zeros */
    int64_t pieces; /* s */
    int64_t each;   /* bytes of an element of x and y */
} hlo_places;
bool hlo_places_is_named(const hlo_inst *in);
/* False: in is no such call, or its operands do not fit. */
bool hlo_places_read(const hlo_inst *in, hlo_places *out);
/* How kernels go through the positions.  Images are cut into `bands` of rows,
 * eight of which are gone through side by side: a step has the same `rows` x
 * `columns` positions of y of all eight, and of x what the window reaches from
 * them.  A place of the window is then so many eights further on, whichever it
 * is.  `pairs` steps lie in local memory. */
enum { HLO_PLACES_BESIDE = 8, HLO_PLACES_FEATURES = 64, HLO_PLACES_SIDE = 3, HLO_PLACES_PART = 8,
       HLO_PLACES_LINES = 1024, /* bytes: eight lines */
       HLO_PLACES_MOST = INT32_MAX /* elements of an array */ };
static inline int64_t hlo_places_unit(const hlo_places *w) /* bytes of eight */
{                                                 /* positions' features */
    return HLO_PLACES_BESIDE * HLO_PLACES_FEATURES * w->each;
}
typedef struct {
    int64_t bands, rows, columns, steps;
    int64_t x_units, y_units; /* of a step */
    int pairs;
} hlo_places_step;
/* False: they cannot; local: bytes of a group's memory. */
bool hlo_places_cut(const hlo_places *w, size_t local, hlo_places_step *out);
/* Is it one that kernels do?  Operands are of the same 16 bits, or of f32, which
 * are rounded to tf32; a and b are 3 at most, i and o multiples of 8. */
bool hlo_places_has_kernel(const hlo_inst *in, size_t local);
bool hlo_places_fits(sd_dtype t, const hlo_places *w); /* but for its cut */

/* ---- infer, verify, print, parse, eval ---- */

/* The shape of in from its operands and attributes; refuses what is wrong,
 * naming op, JAX name, source line and shapes. */
sd_status hlo_infer(hlo_module *m, const hlo_inst *in, const sd_shape **out);
sd_status hlo_verify(const hlo_module *m);
sd_status hlo_verify_inst(hlo_module *m, const hlo_inst *in);
/* Readers call this for each instruction: it verifies in, and cuts the strides
 * of a slice to the dimensions, so that passes may multiply them. */
sd_status hlo_admit(hlo_module *m, hlo_inst *in);
/* "add of f32[3], f32[4] (jit(f)/add, model.py:12)": for messages. */
const char *hlo_describe(hlo_module *m, const hlo_inst *in);
const char *hlo_shape_str(hlo_module *m, const sd_shape *s);
void hlo_print(sd_buf *b, const hlo_module *m);     /* XLA's grammar */
void hlo_print_inst(sd_buf *b, const hlo_inst *in);
void hlo_print_quoted(sd_buf *b, const char *s, size_t len); /* C escapes */
sd_status hlo_parse(sd_arena *a, const char *text, size_t len,
                    hlo_module **out);

/* HLO protobuf: HloModuleProto or, with_config, HloModuleProtoWithConfig.  The
 * bytes are not trusted; an error names the instruction.  Constants of more
 * than `most` elements are written without their data, and such a module
 * cannot be read back. */
sd_status hlo_proto_read(sd_arena *a, sd_bytes b, bool with_config,
                         hlo_module **out);
void hlo_shape_proto(sd_buf *b, const sd_shape *s); /* ShapeProto */
void hlo_proto_write(sd_buf *b, const hlo_module *m, bool with_config,
                     int64_t most);

/* Values of functions of elements, of what moves data, and of calls of these:
 * what folding needs.  A value is dense row-major.  Whole programs are evaluated
 * by tools/ref. */
typedef struct hlo_value hlo_value;
struct hlo_value {
    const sd_shape *shape;
    void *data;          /* NULL for a tuple or token */
    hlo_value *elem;     /* tuple */
};
hlo_value hlo_value_make(sd_arena *a, const sd_shape *s); /* zeroed */
sd_status hlo_eval(sd_arena *a, const hlo_comp *c, const hlo_value *arg,
                   hlo_value *out); /* arg: a value a parameter */
/* One instruction with constant operands. */
sd_status hlo_eval_inst(sd_arena *a, const hlo_inst *in, const hlo_value *arg,
                        hlo_value *out);

#endif
