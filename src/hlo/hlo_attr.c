/* The attribute table, and whether attributes are the same. */
#include "hlo_attr.h"

#include <stddef.h>

/* ---- what rows are made of ---- */

#define MESSAGE(m, name) \
    {offsetof(pb_inst, m), sizeof *((pb_inst *)NULL)->m, name}
static const hlo_attr_message of_dot = MESSAGE(dot, "dot_dimension_numbers");
static const hlo_attr_message of_conv =
    MESSAGE(conv, "convolution_dimension_numbers");
static const hlo_attr_message of_gather =
    MESSAGE(gather, "gather_dimension_numbers");
static const hlo_attr_message of_scatter =
    MESSAGE(scatter, "scatter_dimension_numbers");
static const hlo_attr_message of_triangular =
    MESSAGE(triangular, "triangular_solve_options");
static const hlo_attr_message of_cholesky = MESSAGE(cholesky, NULL);

#define IN(field)     .at = offsetof(hlo_inst, field)
#define DOT(field)    .block = HLO_IN_DOT, .at = offsetof(hlo_dot, field)
#define CONV(field)   .block = HLO_IN_CONV, .at = offsetof(hlo_conv, field)
#define GATHER(field) .block = HLO_IN_GATHER, .at = offsetof(hlo_gather, field)
#define PB(field)     .pb = offsetof(pb_inst, field)
#define PB_OF(m, field) \
    .msg = &of_##m, .pb = offsetof(typeof(*((pb_inst *)NULL)->m), field)
#define QUIET    .flags = HLO_A_QUIET
#define NAMED    .flags = HLO_A_NAMED
#define AS(name) .stablehlo = name

/* clang-format off */
/* An op's rows. */
#define ROWS(...) (const hlo_attr_row[]){__VA_ARGS__, {.kind = HLO_A_END}}
/* Of a kind whose functions know the fields. */
#define OWN(k, text) {.key = text, .kind = HLO_A_##k}
#define DIMENSIONS \
    {"dimensions", HLO_A_DIMS, IN(dims), PB(dims)}
#define WINDOW \
    OWN(WINDOW, "window")
#define NORM ROWS( \
    {"epsilon", HLO_A_REAL, IN(u.norm.epsilon), PB(epsilon)}, \
    {"feature_index", HLO_A_INT, IN(u.norm.feature), PB(feature_index)})

static const hlo_attr_row *const table[HLO_OP_COUNT] = {
    [HLO_COMPARE] = ROWS(
        {"direction", HLO_A_CHOICE, IN(u.compare.dir), PB(compare_dir), NAMED, .unset = -1, .names = hlo_cmp_dir_name,
         .what = "direction", .want = "direction=EQ, NE, GE, GT, LE or LT"},
        {"type", HLO_A_COMPARE, IN(u.compare.type), PB(compare_type)}),
    [HLO_REDUCE_PRECISION] = ROWS(
        {"exponent_bits", HLO_A_BITS, IN(u.precision.exponent), PB(exponent_bits)},
        {"mantissa_bits", HLO_A_BITS, IN(u.precision.mantissa), PB(mantissa_bits)}),
    [HLO_IOTA] = ROWS(
        {"iota_dimension", HLO_A_DIM, IN(dims), PB(dims)}),
    [HLO_BROADCAST] = ROWS(DIMENSIONS),
    [HLO_TRANSPOSE] = ROWS(
        {"dimensions", HLO_A_DIMS, IN(dims), PB(dims), AS("permutation")}),
    [HLO_REVERSE] = ROWS(DIMENSIONS),
    [HLO_CONCATENATE] = ROWS(
        {"dimensions", HLO_A_DIMS, IN(dims), PB(dims), .flags = HLO_A_ONE, AS("dimension")}),
    [HLO_REDUCE] = ROWS(DIMENSIONS),
    [HLO_MAP] = ROWS(DIMENSIONS),
    [HLO_GET_DIMENSION_SIZE] = ROWS(DIMENSIONS),
    [HLO_SET_DIMENSION_SIZE] = ROWS(DIMENSIONS),
    [HLO_SLICE] = ROWS(OWN(SLICE, "slice")),
    [HLO_PAD] = ROWS(OWN(PAD, "padding")),
    [HLO_DYNAMIC_SLICE] = ROWS(
        {"dynamic_slice_sizes", HLO_A_DIMS, IN(dims), PB(slice_sizes), AS("slice_sizes")}),
    [HLO_GATHER] = ROWS(
        {"offset_dims", HLO_A_DIMS, GATHER(offset_dims), PB_OF(gather, offset_dims)},
        {"collapsed_slice_dims", HLO_A_DIMS, GATHER(collapsed), PB_OF(gather, collapsed)},
        {"start_index_map", HLO_A_DIMS, GATHER(index_map), PB_OF(gather, index_map)},
        {"operand_batching_dims", HLO_A_DIMS, GATHER(operand_batch), PB_OF(gather, operand_batch), QUIET},
        {"start_indices_batching_dims", HLO_A_DIMS, GATHER(indices_batch), PB_OF(gather, indices_batch), QUIET},
        {"index_vector_dim", HLO_A_INT, GATHER(index_vector_dim), PB_OF(gather, index_vector_dim)},
        {"slice_sizes", HLO_A_DIMS, GATHER(slice_sizes), PB(gather_slice_sizes)},
        {"indices_are_sorted", HLO_A_FLAG, GATHER(sorted), PB(sorted)},
        {"unique_indices", HLO_A_FLAG, GATHER(unique), PB(unique)}),
    [HLO_SCATTER] = ROWS(
        {"update_window_dims", HLO_A_DIMS, GATHER(offset_dims), PB_OF(scatter, offset_dims)},
        {"inserted_window_dims", HLO_A_DIMS, GATHER(collapsed), PB_OF(scatter, collapsed)},
        {"scatter_dims_to_operand_dims", HLO_A_DIMS, GATHER(index_map), PB_OF(scatter, index_map)},
        {"input_batching_dims", HLO_A_DIMS, GATHER(operand_batch), PB_OF(scatter, operand_batch), QUIET},
        {"scatter_indices_batching_dims", HLO_A_DIMS, GATHER(indices_batch), PB_OF(scatter, indices_batch), QUIET},
        {"index_vector_dim", HLO_A_INT, GATHER(index_vector_dim), PB_OF(scatter, index_vector_dim)},
        {"indices_are_sorted", HLO_A_FLAG, GATHER(sorted), PB(sorted)},
        {"unique_indices", HLO_A_FLAG, GATHER(unique), PB(unique)}),
    [HLO_REDUCE_WINDOW] = ROWS(WINDOW),
    [HLO_SELECT_AND_SCATTER] = ROWS(WINDOW),
    [HLO_SCAN] = ROWS( /* inside alone: outside it is a custom-call */
        {"dimensions", HLO_A_SCAN, IN(u.scan.dim)}),
    [HLO_SORT] = ROWS(DIMENSIONS,
        {"is_stable", HLO_A_FLAG, IN(u.sort.stable), PB(is_stable)}),
    [HLO_TOPK] = ROWS({"k", HLO_A_TOPK, IN(dims)}),
    [HLO_DOT] = ROWS(
        {"lhs_batch_dims", HLO_A_DIMS, DOT(lhs_batch), PB_OF(dot, lhs_batch), QUIET, AS("lhs_batching_dimensions")},
        {"lhs_contracting_dims", HLO_A_DIMS, DOT(lhs_contract), PB_OF(dot, lhs_contract), AS("lhs_contracting_dimensions")},
        {"rhs_batch_dims", HLO_A_DIMS, DOT(rhs_batch), PB_OF(dot, rhs_batch), QUIET, AS("rhs_batching_dimensions")},
        {"rhs_contracting_dims", HLO_A_DIMS, DOT(rhs_contract), PB_OF(dot, rhs_contract), AS("rhs_contracting_dimensions")},
        {"operand_precision", HLO_A_PRECISION, DOT(prec)},
        {"algorithm", HLO_A_ALGORITHM, DOT(algorithm)}),
    [HLO_CONVOLUTION] = ROWS(
        {"window", HLO_A_WINDOW, CONV(win)},
        {NULL, HLO_A_INT, CONV(k_in), PB_OF(conv, k_in), AS("kernel_input_feature_dimension")}, /* in text all are labels */
        {NULL, HLO_A_INT, CONV(k_out), PB_OF(conv, k_out), AS("kernel_output_feature_dimension")},
        {NULL, HLO_A_DIMS, CONV(k_spatial), PB_OF(conv, k_spatial), AS("kernel_spatial_dimensions")},
        {NULL, HLO_A_INT, CONV(in_batch), PB_OF(conv, in_batch), AS("input_batch_dimension")},
        {NULL, HLO_A_INT, CONV(in_feature), PB_OF(conv, in_feature), AS("input_feature_dimension")},
        {NULL, HLO_A_DIMS, CONV(in_spatial), PB_OF(conv, in_spatial), AS("input_spatial_dimensions")},
        {NULL, HLO_A_INT, CONV(out_batch), PB_OF(conv, out_batch), AS("output_batch_dimension")},
        {NULL, HLO_A_INT, CONV(out_feature), PB_OF(conv, out_feature), AS("output_feature_dimension")},
        {NULL, HLO_A_DIMS, CONV(out_spatial), PB_OF(conv, out_spatial), AS("output_spatial_dimensions")},
        {"dim_labels", HLO_A_LABELS, CONV(nspatial)},
        {"feature_group_count", HLO_A_INT, CONV(feature_groups), PB(feature_groups), QUIET, .unset = 1},
        {"batch_group_count", HLO_A_INT, CONV(batch_groups), PB(batch_groups), QUIET, .unset = 1},
        {"operand_precision", HLO_A_PRECISION, CONV(prec)}),
    [HLO_RNG] = ROWS(
        {"distribution", HLO_A_CHOICE, IN(u.rng.distribution), PB(distribution), .names = hlo_dist_name,
         .what = "distribution"}),
    [HLO_RNG_BIT_GENERATOR] = ROWS(
        {"algorithm", HLO_A_CHOICE, IN(u.rng.algo), PB(rng_algorithm), .names = hlo_rng_name, .what = "algorithm",
         AS("rng_algorithm")}),
    [HLO_FFT] = ROWS(
        {"fft_type", HLO_A_CHOICE, IN(u.fft.type), PB(fft_type), .names = hlo_fft_name, .what = "FFT type"},
        {"fft_length", HLO_A_DIMS, IN(u.fft.length), PB(fft_length)}),
    [HLO_CHOLESKY] = ROWS(
        {"lower", HLO_A_FLAG, IN(u.linalg.lower), PB_OF(cholesky, lower)}),
    [HLO_TRIANGULAR_SOLVE] = ROWS(
        {"left_side", HLO_A_FLAG, IN(u.linalg.left), PB_OF(triangular, left)},
        {"lower", HLO_A_FLAG, IN(u.linalg.lower), PB_OF(triangular, lower)},
        {"unit_diagonal", HLO_A_FLAG, IN(u.linalg.unit), PB_OF(triangular, unit)},
        {"transpose_a", HLO_A_CHOICE, IN(u.linalg.trans), PB_OF(triangular, trans), .unset = HLO_TRANSPOSE_NONE,
         .least = HLO_TRANSPOSE_NONE, .names = hlo_transpose_name, .what = "transpose",
         .want = "transpose_a=NO_TRANSPOSE, TRANSPOSE or ADJOINT"}),
    [HLO_BATCH_NORM_TRAINING] = NORM,
    [HLO_BATCH_NORM_INFERENCE] = NORM,
    [HLO_BATCH_NORM_GRAD] = NORM,
    [HLO_PARAMETER] = ROWS( /* text has it among the operands */
        {NULL, HLO_A_INT, IN(u.param.index), PB(parameter_number)}),
    [HLO_CONSTANT] = ROWS(OWN(LITERAL, NULL)), /* likewise */
    [HLO_GET_TUPLE_ELEMENT] = ROWS(
        {"index", HLO_A_INT, IN(u.tuple.index), PB(tuple_index), .unset = -1}),
    [HLO_FUSION] = ROWS(
        {"kind", HLO_A_CHOICE, IN(u.fusion.kind), PB(fusion_kind), NAMED, .names = hlo_fusion_name,
         .what = "fusion kind"}),
    [HLO_CUSTOM_CALL] = ROWS(OWN(CUSTOM, "custom_call_target")),
};
/* clang-format on */

#define PART(field) offsetof(hlo_window_dim, field)
const hlo_window_part hlo_window_parts[HLO_WINDOW_PARTS] = {
    {"size", PART(size), false, INT64_MIN}, /* is always said */
    {"stride", PART(stride), false, 1},
    {"pad", PART(pad_low), true, 0},
    {"lhs_dilate", PART(base_dilation), false, 1},
    {"rhs_dilate", PART(window_dilation), false, 1},
    {"rhs_reversal", PART(reversal), false, 0}};

static const hlo_attr_row none = {.kind = HLO_A_END};
static const hlo_attr_row collective[] = {OWN(COLLECTIVE, "replica_groups"),
                                          {.kind = HLO_A_END}};

const hlo_attr_row *hlo_attr_rows(hlo_op op)
{
    uint8_t cls = hlo_op_table[op].cls;

    if (table[op])
        return table[op];
    return cls == HLO_C_COLLECTIVE || cls == HLO_C_TOKENS ? collective : &none;
}

void *hlo_attr_field(const hlo_attr_row *r, const hlo_inst *in)
{
    const void *block = r->block == HLO_IN_INST ? in : in->u.block;

    return (char *)(uintptr_t)block + r->at;
}

void hlo_attr_begin(sd_arena *a, hlo_inst *in)
{
    static const size_t bytes[] = {[HLO_IN_DOT] = sizeof(hlo_dot),
                                   [HLO_IN_CONV] = sizeof(hlo_conv),
                                   [HLO_IN_GATHER] = sizeof(hlo_gather)};
    hlo_attr_block block = HLO_IN_INST;

    hlo_for_each_attr(r, in->op)
        block = SD_MAX(block, r->block);
    if (block != HLO_IN_INST)
        in->u.block = sd_arena_alloc(a, bytes[block]);
    if (in->op == HLO_CHOLESKY) /* has the field of triangular-solve, unsaid */
        in->u.linalg.trans = HLO_TRANSPOSE_NONE;
}

void hlo_attr_by_dim(sd_arena *a, hlo_inst *in, int rank)
{
    for (int i = 0; i < 3; i++)
        in->u.by_dim[i] = sd_arena_array(a, int64_t, rank + 1);
}

const char *const *hlo_comp_keys(hlo_op op, int *n)
{
    static const char *const loop[] = {"condition", "body"};
    static const char *const sas[] = {"select", "scatter"};
    static const char *const fusion[] = {"calls"};
    static const char *const usual[] = {"to_apply"};

    *n = op == HLO_WHILE || op == HLO_SELECT_AND_SCATTER ? 2 : 1;
    return op == HLO_WHILE                ? loop
           : op == HLO_SELECT_AND_SCATTER ? sas
           : op == HLO_FUSION             ? fusion
                                          : usual;
}

/* ---- are they the same? ---- */

static bool same_i64(const int64_t *x, const int64_t *y, int n)
{
    return x == y || n == 0 || memcmp(x, y, sizeof *x * (size_t)n) == 0;
}

/* All of it is numbers, without room between them. */
static bool same_window(const hlo_window_dim *x, const hlo_window_dim *y, int n)
{
    return n == 0 || memcmp(x, y, sizeof *x * (size_t)n) == 0;
}

static bool same_windows(const hlo_inst *x, const hlo_inst *y)
{
    if (x->op == HLO_CONVOLUTION)
        return x->u.conv->nspatial == y->u.conv->nspatial &&
               same_window(x->u.conv->win, y->u.conv->win, x->u.conv->nspatial);
    return x->u.window.n == y->u.window.n &&
           same_window(x->u.window.dim, y->u.window.dim, x->u.window.n);
}

static bool same_by_dim(const hlo_inst *x, const hlo_inst *y, int rank)
{
    return same_i64(x->u.by_dim[0], y->u.by_dim[0], rank) &&
           same_i64(x->u.by_dim[1], y->u.by_dim[1], rank) &&
           same_i64(x->u.by_dim[2], y->u.by_dim[2], rank);
}

static bool same_literal(const hlo_inst *x, const hlo_inst *y)
{
    return x->u.literal.bytes == y->u.literal.bytes &&
           (x->u.literal.data == y->u.literal.data ||
            memcmp(x->u.literal.data, y->u.literal.data, x->u.literal.bytes) ==
                0);
}

static bool same_text(const char *x, const char *y)
{
    return x == y || (x && y && strcmp(x, y) == 0);
}

/* Bytes of a field that has no pointers, and no room between its parts. */
static size_t plain_bytes(hlo_attr_kind k)
{
    switch (k) {
    case HLO_A_INT:
    case HLO_A_SCAN:
        return sizeof(int64_t);
    case HLO_A_REAL:
        return sizeof(double);
    case HLO_A_BITS:
    case HLO_A_CHOICE:
    case HLO_A_COMPARE:
    case HLO_A_LABELS: /* how many dimensions are spatial */
        return sizeof(int);
    case HLO_A_FLAG:
        return sizeof(bool);
    case HLO_A_PRECISION:
        return 2 * sizeof(hlo_prec);
    default:
        return 0;
    }
}

static size_t group_bytes(const hlo_collective *c)
{
    return sizeof *c->groups * (size_t)(c->ngroup * c->group_size);
}

static bool same_meeting(const hlo_collective *x, const hlo_collective *y)
{
    if (!x || !y)
        return x == y;
    return x->channel == y->channel && x->ngroup == y->ngroup &&
           x->group_size == y->group_size && x->dim == y->dim &&
           x->split_count == y->split_count &&
           x->use_global_ids == y->use_global_ids &&
           x->host_transfer == y->host_transfer &&
           (!x->groups || !memcmp(x->groups, y->groups, group_bytes(x)));
}

static bool same_attr(const hlo_attr_row *r, const hlo_inst *x,
                      const hlo_inst *y)
{
    const void *p = hlo_attr_field(r, x), *q = hlo_attr_field(r, y);
    int rank = x->narg && sd_shape_is_array(x->arg[0]->shape)
                   ? x->arg[0]->shape->rank
                   : 0;

    switch (r->kind) {
    case HLO_A_DIMS:
    case HLO_A_DIM:
        return hlo_dims_equal(*(const hlo_dims *)p, *(const hlo_dims *)q);
    case HLO_A_SLICE:
    case HLO_A_PAD:
        return same_by_dim(x, y, rank);
    case HLO_A_WINDOW:
        return same_windows(x, y);
    case HLO_A_ALGORITHM:
        return same_text(x->u.dot->algorithm, y->u.dot->algorithm);
    case HLO_A_SCAN:
        return x->u.scan.dim == y->u.scan.dim &&
               x->u.scan.exclusive == y->u.scan.exclusive &&
               x->u.scan.reverse == y->u.scan.reverse;
    case HLO_A_TOPK:
        return x->u.sort.stable == y->u.sort.stable;
    case HLO_A_LITERAL:
        return same_literal(x, y);
    case HLO_A_COLLECTIVE:
        return same_meeting(x->u.coll, y->u.coll);
    case HLO_A_CUSTOM:
        return false; /* nobody asks yet */
    default:
        return memcmp(p, q, plain_bytes(r->kind)) == 0;
    }
}

/* Two of the others are never taken for one: they have an effect, or are calls
 * that nobody makes twice. */
static bool is_comparable(hlo_op op)
{
    switch (hlo_op_table[op].cls) {
    case HLO_C_MAP:
    case HLO_C_RNG:
    case HLO_C_FFT:
    case HLO_C_LINALG:
    case HLO_C_NORM:
    case HLO_C_CONTROL:
    case HLO_C_CUSTOM:
    case HLO_C_TOKENS:
    case HLO_C_DYNAMIC:
        return false;
    default:
        return true;
    }
}

/* Attributes that share their memory, as those of clones do, are the same at
 * once. */
bool hlo_same_attributes(const hlo_inst *x, const hlo_inst *y)
{
    const hlo_attr_row *first = hlo_attr_rows(x->op);

    if (x->op != y->op || !hlo_dims_equal(x->dims, y->dims) ||
        !is_comparable(x->op))
        return false;
    if (first->block != HLO_IN_INST && x->u.block == y->u.block)
        return true;
    for (const hlo_attr_row *r = first; r->kind != HLO_A_END; r++)
        if (!same_attr(r, x, y))
            return false;
    return true;
}

/* Large constants by their ends; of what has several rows the first tells. */
uint64_t hlo_hash_attributes(const hlo_inst *in, uint64_t h)
{
    const hlo_attr_row *r = hlo_attr_rows(in->op);
    size_t bytes = sizeof(int64_t) * (size_t)SD_MAX(in->shape->rank, 0);

    h = sd_hash(in->dims.at, sizeof(int64_t) * (size_t)in->dims.n, h);
    switch (r->kind) {
    case HLO_A_LITERAL:
        return sd_hash(in->u.literal.data, SD_MIN(in->u.literal.bytes, 256),
                       h + in->u.literal.bytes);
    case HLO_A_SLICE:
    case HLO_A_PAD:
        return bytes ? sd_hash(in->u.by_dim[0], bytes, h) : h;
    case HLO_A_COLLECTIVE:
        return in->u.coll
                   ? sd_hash(in->u.coll->groups, group_bytes(in->u.coll), h)
                   : h;
    default:
        return sd_hash(hlo_attr_field(r, in), plain_bytes(r->kind), h);
    }
}
