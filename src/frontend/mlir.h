/* What the files of the frontend share: an MLIR bytecode file as it lies in
 * memory.  The reader keeps borrowed slices of the file; attributes and types
 * are decoded one entry at a time, when asked for, and remembered: an entry
 * holds the numbers of its children, never pointers, so cycles do no harm
 * until somebody walks them, and walkers count their depth.
 *
 * The first error sticks in reader.st; after it every question gets an empty
 * answer, so that callers may run straight and ask once. */
#ifndef MLIR_H
#define MLIR_H

#include "base.h"
#include "hlo.h"

enum { MLIR_MAX_DEPTH = 96, /* regions in regions */
       MLIR_TYPE_DEPTH = 16, MLIR_TUPLE_LEAVES = 1 << 16 };

typedef enum { MLIR_D_OTHER, MLIR_D_BUILTIN, MLIR_D_VHLO, MLIR_D_SDY }
    mlir_dialect_id;

typedef struct { sd_bytes name; mlir_dialect_id id; } mlir_dialect;

/* ---- types ---- */

typedef enum {
    MLIR_T_BAD, MLIR_T_ELEM, MLIR_T_TENSOR, MLIR_T_TUPLE, MLIR_T_FUNCTION,
    MLIR_T_TOKEN, MLIR_T_NONE, MLIR_T_OTHER
} mlir_type_kind;

typedef struct {
    mlir_type_kind kind;
    const char *what;      /* OTHER: for messages */
    sd_dtype dtype;        /* ELEM */
    int width;             /* bits of an integer or float; 0: not a number */
    bool is_signed;        /* ELEM: an integer with a sign */
    uint32_t elem;         /* TENSOR: element type */
    int rank;
    const int64_t *dim;    /* INT64_MIN: dynamic */
    const uint32_t *list;  /* TUPLE elements; FUNCTION inputs, then results */
    int nlist, ninput;
    const sd_shape *shape; /* made once, see mlir_shape */
    int nleaf;             /* arrays in it */
} mlir_type;

/* ---- attributes ---- */

typedef enum {
    MLIR_A_NONE, MLIR_A_STRING, MLIR_A_INT, MLIR_A_FLOAT, MLIR_A_ARRAY,
    MLIR_A_DICT, MLIR_A_TYPE, MLIR_A_UNIT, MLIR_A_ENUM, MLIR_A_DENSE,
    MLIR_A_DENSE_ARRAY, MLIR_A_ALIAS, MLIR_A_MESH_AXES, MLIR_A_LOC_NAME,
    MLIR_A_LOC_CALL, MLIR_A_LOC_FILE, MLIR_A_LOC_FUSED, MLIR_A_LOC_UNKNOWN,
    MLIR_A_OTHER
} mlir_attr_kind;

typedef struct {
    mlir_attr_kind kind;
    uint8_t code;          /* of the dialect's encoding */
    uint32_t type;         /* INT FLOAT DENSE; DENSE_ARRAY: of an element */
    uint32_t str;          /* STRING */
    uint64_t bits;         /* INT FLOAT ENUM; LOC_FILE: the line */
    const uint32_t *list;  /* ARRAY items; DICT key, value, ...; children */
    int nlist;
    const int64_t *num;    /* ALIAS: operand index, n, output index...,
                              operand's tuple index... */
    int nnum;
    sd_bytes blob;         /* DENSE, DENSE_ARRAY */
} mlir_attr;

/* ---- the program ---- */

typedef struct mlir_op mlir_op;
typedef struct mlir_value mlir_value;
typedef struct mlir_region mlir_region;
typedef struct mlir_block mlir_block;
typedef struct vhlo_row vhlo_row;

struct mlir_value {
    uint32_t type;
    int region;            /* id of the region that defines it */
    int stamp;             /* of the last search for captures */
    mlir_op *def;          /* NULL: a block argument */
    hlo_inst *inst;        /* in the computation being built now */
};

struct mlir_block {
    mlir_value *arg;
    int narg;
    mlir_op *first, *last;
};

struct mlir_region {
    mlir_block **block;
    int nblock;
    int id, last;          /* ids of the regions inside are in (id, last] */
};

struct mlir_op {
    uint32_t name, loc;
    int64_t dict, props;   /* -1: none */
    mlir_value *result, **operand;
    int nresult, noperand, nregion;
    mlir_region **region;
    mlir_op *next;
};

typedef struct {
    mlir_dialect_id dialect;
    sd_bytes name;
    const vhlo_row *row;   /* vhlo: NULL when unknown */
} mlir_op_name;

typedef struct { sd_bytes data; mlir_dialect_id dialect; bool coded; void *memo; }
    mlir_entry;
typedef struct { const char *op_name, *file; int line; } mlir_where;
typedef struct { sd_bytes data; uint8_t kind; } mlir_resource;

typedef struct {
    sd_arena *a;           /* the reader's own; gone after the import */
    sd_arena *out;         /* where what outlives it is put */
    sd_status st;
    sd_bytes file;
    uint64_t version;
    const char *producer;
    sd_bytes section[9];
    bool has[9];
    sd_bytes *str;
    const char **cstr;     /* copies in `out`, made when asked for */
    size_t nstr;
    mlir_dialect *dialect;
    size_t ndialect;
    mlir_op_name *name;
    size_t nname;
    mlir_entry *attr, *type;
    size_t nattr, ntype;
    sd_bytes *prop;
    size_t nprop;
    mlir_resource *resource;
    size_t nresource;
    int depth, next_region; /* depth of types being decoded */
    uint64_t promised;     /* values announced and not yet defined */
    mlir_op *module;
} mlir_reader;

/* mlir_bytecode.c */
bool mlir_is_bytecode(sd_bytes file);
void mlir_read(mlir_reader *r, sd_bytes file);
uint64_t mlir_varint(sd_cursor *c);
int64_t mlir_svarint(sd_cursor *c);
void mlir_fail(mlir_reader *r, sd_code code, const char *fmt, ...)
    SD_PRINTF(3, 4);
/* Takes the cursor's error over; what: "the string section". */
void mlir_check(mlir_reader *r, const sd_cursor *c, const char *what);
sd_cursor mlir_cursor(const mlir_reader *r, sd_bytes b);
sd_bytes mlir_str(mlir_reader *r, uint64_t index);
const char *mlir_cstr(mlir_reader *r, uint64_t index);

/* mlir_ir.c */
void mlir_read_ir(mlir_reader *r);
/* Reads a section header and gives its body: used for nested sections. */
sd_bytes mlir_section(mlir_reader *r, sd_cursor *c, unsigned *id);

/* mlir_type.c */
const mlir_type *mlir_type_at(mlir_reader *r, uint64_t index); /* not NULL */
/* NULL after an error: no array, tuple or token that we have. */
const sd_shape *mlir_shape(mlir_reader *r, uint64_t type);
bool mlir_dtype(mlir_reader *r, uint64_t type, sd_dtype *out);
void mlir_type_print(mlir_reader *r, uint64_t type, sd_buf *b);

/* mlir_attr.c */
const mlir_attr *mlir_attr_at(mlir_reader *r, uint64_t index); /* not NULL */
extern const mlir_attr mlir_no_attr;
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
int64_t mlir_int(mlir_reader *r, const mlir_attr *at); /* sign extended */
double mlir_float(mlir_reader *r, const mlir_attr *at);
/* Integers of a dense tensor, dense array or array; at most max of them. */
hlo_dims mlir_ints(mlir_reader *r, const mlir_attr *at, int max);
void mlir_attr_print(mlir_reader *r, const mlir_attr *at, sd_buf *b);
mlir_where mlir_locate(mlir_reader *r, uint64_t loc);

/* How the elements of a dense constant lie in its blob. */
typedef struct { const uint8_t *at; int64_t n; size_t width; bool splat, bits; }
    mlir_dense;
bool mlir_dense_of(mlir_reader *r, const mlir_attr *at, sd_dtype t, int64_t n,
                   mlir_dense *out);
void mlir_dense_elem(const mlir_dense *d, int64_t i, void *out);

/* ---- import: vhlo_import.c and its handlers ---- */

typedef struct vhlo_import vhlo_import;
/* Operands are checked: all there, of the row's count.  The handler makes
 * instructions and gives the results to vhlo_bind. */
typedef void (*vhlo_fn)(vhlo_import *im, mlir_op *op, hlo_inst **arg);

struct vhlo_row {
    const char *name;
    int8_t noperand, nresult, nregion; /* ~n: n or more */
    vhlo_fn fn;                        /* NULL: refused by name */
    hlo_op op;
    const char *props;                 /* in the order of the file */
};
const vhlo_row *vhlo_find(sd_bytes name);

/* Imports a function and all it needs as the entry; NULL: main.  The error
 * is the reader's. */
void vhlo_import_module(mlir_reader *r, const char *entry, hlo_module **out);

#endif
