/* What the files that read StableHLO text share: tokens, and a parser with one
 * token of lookahead.  The first error stays in the reader, with line and
 * column; after it every token is TK_END, so that loops stop. */
#ifndef MLIR_TEXT_H
#define MLIR_TEXT_H

#include "mlir.h"

typedef enum {
    TK_END, TK_ID,  /* module, stablehlo.add, true, i32 */
    TK_VALUE,       /* %0, %arg0; a #1 behind it is not part of it */
    TK_SYMBOL,      /* @main, @"a b" */
    TK_BLOCK,       /* ^bb0 */
    TK_HASH,        /* #loc1, #stablehlo.gather, #stablehlo */
    TK_BANG,        /* !stablehlo.token */
    TK_STRING, TK_INT, TK_FLOAT, TK_PUNCT
} mlir_token_kind;
enum { TK_ARROW = 256 /* -> */, TK_COLONS /* :: */, TK_FILE_OPEN /* {-# */,
       TK_FILE_CLOSE /* #-} */ };

typedef struct {
    mlir_token_kind kind;
    const char *at;
    size_t len;
    int punct; /* PUNCT: the character, or one of the above */
} mlir_token;

/* A value's name in its scope.  prev: the binding of the same hash that it
 * hides, in a scope further out. */
typedef struct {
    uint64_t key;
    sd_bytes name;
    mlir_value *first;
    int n, prev;
} mlir_binding;

typedef struct { mlir_attr *at; sd_bytes key; const char *where; }
    mlir_pending;

typedef struct {
    mlir_reader *r;
    const char *begin, *end, *p;
    mlir_token tok;
    int depth;              /* of what nests: types, attributes, regions */
    int region;             /* id of the region being read */
    const char *line_at;    /* where line `line` begins; NULL: not counted */
    int64_t line;
    uint32_t text_name;     /* an attribute + 1: "-", as MLIR calls stdin */
    sd_vec(mlir_binding) bind;
    sd_map *latest;         /* hash -> binding + 1 */
    int floor;              /* bindings below belong to outer functions */
    sd_names *attr_alias;   /* attribute + 1 */
    sd_names *type_alias;   /* type + 1 */
    sd_names *other_name;   /* of an operation without a row: name + 1 */
    sd_map *name;           /* row -> name + 1 */
    sd_vec(mlir_pending) resource; /* dense_resource to be filled */
    int nopen;              /* aliases used and not yet defined */
    mlir_token open;        /* one of them */
} mlir_parser;

/* ---- mlir_lex.c ---- */

void tx_next(mlir_parser *t);
/* Goes on at p, which lies in the file. */
void tx_seek(mlir_parser *t, const char *p);
void tx_fail_at(mlir_parser *t, const char *where, const char *fmt, ...)
    SD_PRINTF(3, 4);
/* "12:7: expected X, found 'Y'" */
void tx_expected(mlir_parser *t, const char *what);
bool tx_is(const mlir_parser *t, int punct);
bool tx_accept(mlir_parser *t, int punct);
void tx_expect(mlir_parser *t, int punct);
bool tx_is_word(const mlir_parser *t, const char *word);
bool tx_accept_word(mlir_parser *t, const char *word);
void tx_expect_word(mlir_parser *t, const char *word);
/* One level deeper; false with an error when too deep.  tx_leave undoes it. */
bool tx_enter(mlir_parser *t);
void tx_leave(mlir_parser *t);
/* The bytes a string token stands for. */
sd_bytes tx_string(mlir_parser *t);
/* @name or @"name", as a string attribute; what: for the message. */
uint32_t tx_symbol_name(mlir_parser *t, const char *what);
bool tx_is_integer(const mlir_parser *t); /* -3, 0x1F */
int64_t tx_integer(mlir_parser *t);
bool tx_is_hex(char c);
int tx_hex_value(char c);
/* The text from the token, an opening bracket, to the bracket that closes it;
 * the next token is the one behind that. */
sd_bytes tx_balanced(mlir_parser *t);
sd_bytes tx_from(const mlir_parser *t, const char *start); /* up to the token */
uint64_t tx_key(sd_bytes s); /* a hash; find_value compares the names */
/* The number that such a map has for a text; 0: none. */
static inline uint32_t tx_known(const sd_names *m, sd_bytes s)
{
    return (uint32_t)sd_key(sd_names_get(m, (const char *)s.at, s.len));
}
static inline void tx_make_known(sd_names *m, sd_bytes s, uint32_t n)
{
    sd_names_set(m, (const char *)s.at, s.len, (void *)(uintptr_t)n);
}

/* ---- types and attributes: numbers of their entries ---- */

bool tx_is_type(const mlir_parser *t);
uint32_t tx_type(mlir_parser *t);
uint32_t tx_scalar_type(mlir_parser *t, const char *name); /* "i64" */
/* (a, b) -> c or (a, b) -> (c, d) */
uint32_t tx_function_type(mlir_parser *t);

uint32_t tx_attr(mlir_parser *t);
uint32_t tx_new_attr(mlir_parser *t, mlir_attr at); /* 0 after an error */
uint32_t tx_number(mlir_parser *t, mlir_attr_kind kind, const char *type,
                   uint64_t bits);
uint32_t tx_bool(mlir_parser *t, bool v);
uint32_t tx_number_attr(mlir_parser *t);  /* 1, 2.5 : f32, 0x7F : i8 */
uint32_t tx_dense_array(mlir_parser *t);  /* behind the word array */
uint32_t tx_resource(mlir_parser *t);     /* behind dense_resource */
uint32_t tx_loc_attr(mlir_parser *t);     /* behind loc */
/* #stablehlo.NAME<...>, behind the name; false: another's, or an alias */
bool tx_stablehlo_attr(mlir_parser *t, const char *name, uint32_t *out);
uint32_t tx_enum(mlir_parser *t, int code); /* at its value's word */
uint32_t tx_int_list(mlir_parser *t);       /* [1, 2] as array<i64> */
uint32_t tx_new_ints(mlir_parser *t, const int64_t *v, int n);
uint32_t tx_array_of(mlir_parser *t, const uint32_t *v, int n);
uint32_t tx_conv(mlir_parser *t);           /* [b, f, 0]x[o, i, 0]->[b, f, 0] */
/* The fields of a structure that opens here. */
uint32_t tx_struct(mlir_parser *t, mlir_struct_id id);
uint32_t tx_dict(mlir_parser *t);
/* loc(...) if there is one; else the place in this text, as MLIR has it. */
uint32_t tx_trailing_loc(mlir_parser *t, const char *where);
uint32_t tx_place(mlir_parser *t, const char *where); /* NULL: the file */
/* The location that comes next, which stays to be read. */
uint32_t tx_peek_loc(mlir_parser *t, const char *where);
uint32_t tx_dense(mlir_parser *t);          /* behind the word dense */

/* ---- mlir_text.c ---- */

/* An operation while it is read. */
typedef struct {
    mlir_op *op;
    const vhlo_row *row;
    const char *where;
    sd_vec(uint32_t) dict; /* key, value, ... */
    sd_vec(mlir_region *) region;
    sd_vec(mlir_value *) operand;
    sd_vec(uint32_t) result;
} mlir_draft;

mlir_op *tx_read_op(mlir_parser *t); /* NULL after an error */
mlir_value *tx_operand(mlir_parser *t);
void tx_operands(mlir_parser *t, mlir_draft *d); /* %a, %b: as many as there are */
void tx_set(mlir_parser *t, mlir_draft *d, const char *name, uint32_t attr);
void tx_set_attr(mlir_parser *t, mlir_draft *d, sd_bytes key, uint32_t attr,
                 bool inherent);
/* {a = 1, b}: sets each */
void tx_attr_dict(mlir_parser *t, mlir_draft *d, bool inherent);
/* : type, or : (types) -> types */
void tx_types(mlir_parser *t, mlir_draft *d);
/* A region; names: its entry's arguments are named outside, with types. */
typedef struct { sd_bytes name; uint32_t type, loc; } mlir_arg;
mlir_region *tx_region(mlir_parser *t, const mlir_arg *arg, int narg);
mlir_region *tx_new_region(mlir_parser *t);
mlir_block *tx_new_block(mlir_parser *t, mlir_region *g, const mlir_arg *arg,
                         int narg);
void tx_add_op(mlir_block *b, mlir_op *op);
/* An operation from parts, of a StableHLO name. */
mlir_op *tx_make_op(mlir_parser *t, const char *name, int noperand,
                    mlir_value *const *operand, int nresult,
                    const uint32_t *type, uint32_t loc);
/* From here to tx_join, names of values outside are not known: the body of a
 * function sees none. */
void tx_isolate(mlir_parser *t, int *saved);
void tx_join(mlir_parser *t, int saved);

/* ---- mlir_pretty.c, mlir_pretty_func.c ---- */

/* {attributes} : types, which end most forms */
void tx_tail(mlir_parser *t, mlir_draft *d);
void tx_function(mlir_parser *t, mlir_draft *d);
void tx_module(mlir_parser *t, mlir_draft *d);
void tx_sdy_mesh(mlir_parser *t, mlir_draft *d);
void tx_sdy_sharding(mlir_parser *t, mlir_draft *d);
void tx_sdy_manual(mlir_parser *t, mlir_draft *d);

/* The custom assembly of the draft's row, up to the location. */
void tx_custom(mlir_parser *t, mlir_draft *d);

#endif
