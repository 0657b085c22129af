/* mlir: an MLIR program in memory, the same whether it came as bytecode or as
 * text; what the files of the frontend share.  Operations are VHLO's, with
 * VHLO's attributes.  StableHLO text writes some attributes in another way
 * (#stablehlo.dot<...>, array<i64: ...>, defaults left out); the files that
 * read and write text translate by the columns of vhlo.def.
 *
 * The reader borrows slices of the file.  An attribute or a type of bytecode
 * is decoded when it is first asked for, and remembered.  It holds the numbers
 * of its children and no pointers, so a file whose entries form a cycle can be
 * read; whoever walks down to children counts the depth.
 *
 * The first error stays in reader.st.  After it every question gets an empty
 * answer, so callers run straight and look at st once. */
#ifndef MLIR_H
#define MLIR_H

#include "base.h"
#include "hlo.h"

enum { MLIR_MAX_DEPTH = 96, /* regions in regions */
       MLIR_TYPE_DEPTH = 16, MLIR_ATTR_DEPTH = 32,
       MLIR_TUPLE_LEAVES = 1 << 16,
       MLIR_ATTR_TEXT = 1 << 23 }; /* bytes that an attribute's or type's text
                                      may have beyond what the file explains */
#define MLIR_ABSENT UINT32_MAX /* the number of an attribute or type: none */

typedef enum { MLIR_D_OTHER, MLIR_D_BUILTIN, MLIR_D_VHLO, MLIR_D_SDY,
               MLIR_D_CHLO, MLIR_D_STABLEHLO } mlir_dialect_id;

typedef struct { sd_bytes name; mlir_dialect_id id; } mlir_dialect;

/* ---- types ---- */

typedef enum {
    MLIR_T_BAD, MLIR_T_ELEM, MLIR_T_TENSOR, MLIR_T_TUPLE, MLIR_T_FUNCTION,
    MLIR_T_TOKEN, MLIR_T_NONE, MLIR_T_OTHER
} mlir_type_kind;

typedef struct {
    mlir_type_kind kind;
    const char *what;      /* OTHER: for messages */
    const char *text;      /* as MLIR spells it: OTHER, and an ELEM whose
                              name says more (index, si32); NULL: as dtype */
    sd_dtype dtype;        /* ELEM */
    int width;             /* bits of an integer or float; 0: not a number */
    bool is_signed;        /* ELEM: an integer with a sign */
    uint32_t elem;         /* TENSOR: element type; OTHER, quantized: storage */
    int rank;
    const int64_t *dim;    /* INT64_MIN: dynamic */
    uint32_t encoding;     /* TENSOR: an attribute + 1; 0: none */
    const uint32_t *list;  /* TUPLE elements; FUNCTION inputs, then results */
    int nlist, ninput;
    const sd_shape *shape; /* made once, see mlir_shape */
    int nleaf;             /* arrays in it */
} mlir_type;

/* ---- attributes ---- */

typedef enum {
    MLIR_A_NONE, MLIR_A_STRING, MLIR_A_INT, MLIR_A_FLOAT, MLIR_A_ARRAY,
    MLIR_A_DICT, MLIR_A_TYPE, MLIR_A_UNIT, MLIR_A_ENUM, MLIR_A_DENSE,
    MLIR_A_DENSE_ARRAY, MLIR_A_DENSE_STRINGS, MLIR_A_SPARSE, MLIR_A_SYMBOL,
    MLIR_A_ALIAS, MLIR_A_STRUCT, MLIR_A_MESH_AXES, MLIR_A_LOC_NAME,
    MLIR_A_LOC_CALL, MLIR_A_LOC_FILE, MLIR_A_LOC_FUSED, MLIR_A_LOC_UNKNOWN,
    MLIR_A_OPAQUE
} mlir_attr_kind;

typedef struct {
    mlir_attr_kind kind;
    uint8_t code;          /* ENUM: of mlir_enums; STRUCT: an mlir_struct_id */
    uint32_t type;         /* INT FLOAT DENSE; DENSE_ARRAY: of an element;
                              STRING: its type + 1 */
    uint32_t str;          /* STRING; OPAQUE and MESH_AXES: the text that
                              MLIR has for it, "#sdy.mesh<...>"; ENUM: 1 where
                              it is CHLO's, #chlo<...> */
    uint64_t bits;         /* INT FLOAT ENUM; DENSE_ARRAY: elements */
    const uint32_t *list;  /* ARRAY items; DICT and STRUCT key, value, ...;
                              SYMBOL root, nested...; LOC_FUSED locations,
                              its metadata last if code is 1; children */
    int nlist;
    const int64_t *num;    /* ALIAS: operand index, n, output index...,
                              operand's tuple index...; LOC_FILE: one to four
                              of line, column, end; INT of more than 64 bits:
                              its words */
    int nnum;
    sd_bytes blob;         /* DENSE, DENSE_ARRAY */
} mlir_attr;

/* Enumerations have VHLO's codes and numbers in memory. */
enum { MLIR_E_BOOL = 2, MLIR_E_DIRECTION = 3, MLIR_E_COMPARE = 4,
       MLIR_E_API = 5, MLIR_E_FFT = 7, MLIR_E_PRECISION = 11,
       MLIR_E_RNG_ALGORITHM = 12, MLIR_E_RNG_DISTRIBUTION = 13,
       MLIR_E_TRANSPOSE = 16, MLIR_E_ACCURACY = 19, MLIR_E_COUNT = 20 };
typedef struct { const char *name; const char *value[6]; } mlir_enum_row;
extern const mlir_enum_row mlir_enums[MLIR_E_COUNT];

/* StableHLO attributes of several fields.  All but result_accuracy lie flat
 * in VHLO: an operation has one if its row lists the first field. */
typedef enum { MLIR_S_GATHER, MLIR_S_SCATTER, MLIR_S_RAGGED, MLIR_S_DOT,
               MLIR_S_ALGORITHM, MLIR_S_CHANNEL, MLIR_S_CONV, MLIR_S_ACCURACY,
               MLIR_S_COUNT }
    mlir_struct_id;
typedef struct {
    const char *name;      /* #stablehlo.NAME<...>, #chlo.ragged_dot<...> */
    const char *attr;      /* the attribute of the operation */
    const char *field[10]; /* as in VHLO */
} mlir_struct_row;
extern const mlir_struct_row mlir_structs[MLIR_S_COUNT];
/* The field's name in text. */
const char *mlir_field_text(const char *field);

/* ---- the program ---- */

typedef struct mlir_op mlir_op;
typedef struct mlir_value mlir_value;
typedef struct mlir_region mlir_region;
typedef struct mlir_block mlir_block;
typedef struct vhlo_row vhlo_row;

struct mlir_value {
    uint32_t type;
    int region;            /* id of the region that defines it */
    int stamp;             /* number of the last search for captures that came
                              here; while text is written: n of its name, %n */
    mlir_op *def;          /* NULL: a block argument */
    hlo_inst *inst;        /* in the computation being built now */
    bool is_lost;          /* what makes it is not supported */
};

struct mlir_block {
    mlir_value *arg;
    uint32_t *arg_loc;     /* MLIR_ABSENT: unknown */
    int narg;
    mlir_op *first, *last;
};

struct mlir_region {
    mlir_block **block;
    int nblock;
    int id, last;          /* the regions inside have ids id + 1 to last */
};

struct mlir_op {
    uint32_t name, loc;
    int64_t dict;          /* -1: none */
    uint32_t *prop;        /* inherent attributes in the row's order, or
                              MLIR_ABSENT; NULL without a row */
    mlir_value *result, **operand;
    int nresult, noperand, nregion;
    mlir_region **region;
    mlir_op *next;
};

typedef struct {
    mlir_dialect_id dialect;
    sd_bytes name;         /* without the dialect; unknown ones: with it */
    const vhlo_row *row;   /* NULL when unknown */
} mlir_op_name;

typedef struct { sd_bytes data; mlir_dialect_id dialect; bool coded; void *memo; }
    mlir_entry;
typedef struct { const char *op_name, *file; int line; } mlir_where;
typedef struct { sd_bytes data; uint8_t kind; } mlir_resource;
typedef struct { sd_bytes s; const char *copy; } mlir_string;

typedef struct mlir_reader mlir_reader;
struct mlir_reader {
    sd_arena *a;           /* the reader's own; gone after the import */
    sd_arena *out;         /* where what outlives it is put */
    sd_status st;
    sd_bytes file;
    uint64_t version;
    const char *producer;
    bool is_text;          /* it came as text: attributes that the text left out
                              are left out when text is written again */
    sd_bytes section[9];
    bool has[9];
    sd_vec(mlir_string) str; /* copies in `out` are made when asked for */
    mlir_dialect *dialect;
    size_t ndialect;
    sd_vec(mlir_op_name) name;
    sd_vec(mlir_entry) attr, type;
    sd_bytes *prop;        /* bytecode's entries, spread over operations */
    size_t nprop;
    mlir_resource *resource;
    size_t nresource;
    int depth, attr_depth; /* of types and attributes being decoded */
    int next_region;
    uint64_t promised;     /* values that regions announce by number and that
                              are not defined yet */
    size_t print_from;     /* where the attribute being printed begins */
    /* while writing: prints "#loc7" for a location that has a line of its
       own; false: none */
    bool (*loc_alias)(mlir_reader *r, uint64_t loc, sd_buf *b);
    sd_map *loc_line;      /* location + 1 -> that number */
    int nloc;
    mlir_op *module;
    const hlo_module *whole; /* of which this is a participant's part; or NULL */
};

/* mlir_bytecode.c */
bool mlir_is_bytecode(sd_bytes file);
void mlir_read(mlir_reader *r, sd_bytes file);
uint64_t mlir_varint(sd_cursor *c);
/* A varint that is the number of an attribute, a type or a string.  c fails if
 * it is 2^31 or more, which cut to 32 bits would name another entry. */
uint32_t mlir_index(sd_cursor *c);
uint32_t mlir_as_index(sd_cursor *c, uint64_t v);
int64_t mlir_svarint(sd_cursor *c);
uint64_t mlir_varint_flag(sd_cursor *c, bool *flag); /* of the lowest bit */
void mlir_fail(mlir_reader *r, sd_code code, const char *fmt, ...)
    SD_PRINTF(3, 4);
/* The error of a code that only newer versions have; thing: "vhlo type". */
void mlir_not_known(mlir_reader *r, const char *thing, uint64_t code);
/* Takes the cursor's error over; what: "the string section". */
void mlir_check(mlir_reader *r, const sd_cursor *c, const char *what);
sd_cursor mlir_cursor(const mlir_reader *r, sd_bytes b);
sd_bytes mlir_str(mlir_reader *r, uint64_t index);
const char *mlir_cstr(mlir_reader *r, uint64_t index);
/* New entries behind those of the file; s is borrowed. */
uint32_t mlir_new_str(mlir_reader *r, const char *s, size_t len);
uint32_t mlir_new_attr(mlir_reader *r, mlir_attr at);
uint32_t mlir_new_string(mlir_reader *r, const char *s, size_t len); /* attr */
uint32_t mlir_new_type(mlir_reader *r, mlir_type t);
uint32_t mlir_new_name(mlir_reader *r, mlir_op_name n);

/* mlir_ir.c */
void mlir_read_ir(mlir_reader *r);
/* Reads a section header and gives its body: used for nested sections. */
sd_bytes mlir_section(mlir_reader *r, sd_cursor *c, unsigned *id);

/* mlir_type.c */
const mlir_type *mlir_type_at(mlir_reader *r, uint64_t index); /* not NULL */
bool mlir_dtype(mlir_reader *r, uint64_t type, sd_dtype *out);
void mlir_set_elem(mlir_type *t, sd_dtype d);
/* thing: "a type"; limit: of its depth */
void mlir_too_deep(mlir_reader *r, const char *thing, int limit);
bool mlir_too_long(mlir_reader *r, size_t text); /* bytes of it so far */
/* The builtin type of that spelling: i32, ui4, f8E4M3FN, index, none. */
bool mlir_type_of_name(sd_bytes name, mlir_type *out);

/* mlir_shape.c */
/* NULL after an error: no array, tuple or token that we have. */
const sd_shape *mlir_shape(mlir_reader *r, uint64_t type);
bool mlir_type_same(mlir_reader *r, uint64_t x, uint64_t y);

/* mlir_attr.c */
const mlir_attr *mlir_attr_at(mlir_reader *r, uint64_t index); /* not NULL */

/* mlir_sdy.c: Shardy's attributes, VHLO's meshes and bounds, as text; false:
 * the code is none of theirs */
bool mlir_read_as_text(mlir_reader *r, mlir_dialect_id dialect, uint64_t code,
                       sd_cursor *c, mlir_attr *at);

/* mlir_value.c */
extern const mlir_attr mlir_no_attr;
const char *mlir_kind_name(const mlir_attr *at); /* "a string" */
/* "an integer where WHAT should be" */
void mlir_want(mlir_reader *r, const mlir_attr *at, const char *what);
/* The number of the value of a key in an operation's dictionary. */
uint32_t mlir_dict_find(mlir_reader *r, const mlir_op *op, const char *key,
                        size_t len); /* MLIR_ABSENT: not there */
/* The value of a key; mlir_no_attr when absent. */
const mlir_attr *mlir_dict_get(mlir_reader *r, const mlir_attr *d,
                               const char *key);
/* An inherent attribute by name: property or, in old files, dictionary. */
const mlir_attr *mlir_inherent(mlir_reader *r, const mlir_op *op,
                               const char *name);
const mlir_attr *mlir_discardable(mlir_reader *r, const mlir_op *op,
                                  const char *name);
bool mlir_is_string(mlir_reader *r, const mlir_attr *at, const char *s);
const char *mlir_text(mlir_reader *r, const mlir_attr *at); /* NULL: none */
sd_bytes mlir_key(mlir_reader *r, const mlir_attr *at); /* a dictionary's */
int64_t mlir_int(mlir_reader *r, const mlir_attr *at); /* sign extended */
double mlir_float(mlir_reader *r, const mlir_attr *at);
/* Integers of a dense tensor, dense array or array; at most max of them. */
hlo_dims mlir_ints(mlir_reader *r, const mlir_attr *at, int max);
mlir_where mlir_locate(mlir_reader *r, uint64_t loc);
/* All its numbers are zero, its lists and strings empty. */
bool mlir_is_zero(mlir_reader *r, const mlir_attr *at);

/* How the elements of a dense constant lie in its blob. */
typedef struct { const uint8_t *at; int64_t n; size_t width; bool splat, bits; }
    mlir_dense;
bool mlir_dense_of(mlir_reader *r, const mlir_attr *at, sd_dtype t, int64_t n,
                   mlir_dense *out);
void mlir_dense_elem(const mlir_dense *d, int64_t i, void *out);

/* mlir_print.c: as MLIR spells them */
void mlir_attr_print(mlir_reader *r, const mlir_attr *at, sd_buf *b);
void mlir_type_print(mlir_reader *r, uint64_t type, sd_buf *b);
void mlir_dims_print(const mlir_type *t, sd_buf *b); /* "2x?x" */
/* without the word loc and its parentheses */
void mlir_print_loc(mlir_reader *r, uint64_t loc, sd_buf *b, int depth);
void mlir_print_loc_line(mlir_reader *r, const mlir_attr *at, sd_buf *b);
static inline bool mlir_is_loc(const mlir_attr *at)
{
    return at->kind >= MLIR_A_LOC_NAME && at->kind <= MLIR_A_LOC_UNKNOWN;
}
void mlir_print_quoted(sd_bytes s, sd_buf *b);
void mlir_print_symbol(sd_bytes s, sd_buf *b);
void mlir_print_key(sd_bytes s, sd_buf *b);
void mlir_print_type(mlir_reader *r, uint64_t type, sd_buf *b); /* inside */
/* mlir_print_dense.c */
void mlir_print_scalar(sd_dtype t, const void *p, sd_buf *b);
void mlir_print_number(mlir_reader *r, const mlir_attr *at, sd_buf *b);
void mlir_print_dense(mlir_reader *r, const mlir_attr *at, sd_buf *b);

/* mlir_text.c: StableHLO text, generic or as JAX prints it. */
void mlir_read_text(mlir_reader *r, sd_bytes file);

/* frontend.c: bytecode, else text. */
void mlir_read_either(mlir_reader *r, sd_bytes program);

/* ---- import: vhlo_import.c and its handlers ---- */

typedef struct vhlo_import vhlo_import;
/* Imports one operation: makes instructions from the values of its operands,
 * which are all there and as many as the row says, and gives the results to
 * vhlo_bind. */
typedef void (*vhlo_fn)(vhlo_import *im, mlir_op *op, hlo_inst **arg);

struct vhlo_row {
    const char *name;                  /* "abs_v1" of vhlo, "sdy.mesh" */
    int8_t noperand, nresult, nregion; /* ~n: n or more */
    vhlo_fn fn;                        /* NULL: refused by name */
    hlo_op op;
    const char *props;                 /* in the order of the file */
    const char *form;                  /* its own assembly, see mlir_pretty.c */
};
const vhlo_row *vhlo_find(sd_bytes name);
/* The newest form of "stablehlo.abs", "func.call", "chlo.erf", "sdy.mesh". */
const vhlo_row *vhlo_find_text(sd_bytes name);
/* "stablehlo.abs" of "abs_v1"; in_func: return is func's */
void vhlo_text_name(const vhlo_row *row, bool in_func, sd_buf *b);

/* One attribute of a row's list; see vhlo.def for how it is spelt. */
typedef struct {
    const char *name;
    int len;
    bool optional;   /* bytecode marks whether it is there */
    char kind;       /* 0, or how text spells it: d u s S */
    char dflt;       /* what text leaves out: 0, or 0 1 - e l */
} vhlo_prop;
/* Steps through a row's attributes: for (const char *s = row->props;
 * vhlo_next_prop(&s, &p);) */
bool vhlo_next_prop(const char **s, vhlo_prop *p);
int vhlo_nprop(const vhlo_row *row);
/* Its position, *p filled; -1 when it is not there. */
int vhlo_prop_index(const vhlo_row *row, const char *name, size_t len,
                    vhlo_prop *p);

/* Makes a module whose entry is that function (NULL: main), with all that it
 * calls.  An error is left in r->st. */
void vhlo_import_module(mlir_reader *r, const char *entry, hlo_module **out);

#endif
