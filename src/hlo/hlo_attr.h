/* THE attribute table: what an op has beside operands and computations, one row
 * for each attribute.  Printing, parsing, protobuf both ways, comparing and
 * hashing are loops over the rows of an op, with one function for each kind of
 * attribute and none for an op.  A new attribute of a known kind is a row in
 * hlo_attr.c; docs/tables.md has a guide to the columns. */
#ifndef HLO_ATTR_H
#define HLO_ATTR_H

#include "hlo_proto.h"

typedef enum {
    HLO_A_END,     /* behind an op's last row */
    /* What a field may be. */
    HLO_A_DIMS,    /* hlo_dims */
    HLO_A_DIM,     /* hlo_dims of one entry, a number in text */
    HLO_A_INT,     /* int64_t */
    HLO_A_BITS,    /* int, a number of bits */
    HLO_A_FLAG,    /* bool; false is left out of text */
    HLO_A_CHOICE,  /* an enum, of which text has a name */
    HLO_A_REAL,    /* double, a float outside */
    /* What one op or two have, of a form of its own. */
    HLO_A_COMPARE, /* compare's type, which follows from the operands' */
    HLO_A_SLICE, HLO_A_PAD, HLO_A_WINDOW, HLO_A_LABELS, HLO_A_PRECISION,
    HLO_A_ALGORITHM, HLO_A_SCAN, HLO_A_TOPK, HLO_A_LITERAL, HLO_A_CUSTOM,
    HLO_A_COLLECTIVE,
    HLO_A_KIND_COUNT
} hlo_attr_kind;

/* Where fields are: in the instruction, or in what its u points to. */
typedef enum { HLO_IN_INST, HLO_IN_DOT, HLO_IN_CONV, HLO_IN_GATHER }
    hlo_attr_block;

typedef struct { /* a message inside an instruction's message */
    size_t at, bytes; /* of its pointer in pb_inst; of the message */
    const char *name; /* XLA's name of a message that must be there; else NULL */
} hlo_attr_message;

enum { HLO_A_QUIET = 1, /* left out of text when unset or empty */
       HLO_A_NAMED = 2, /* CHOICE: protobuf has the name, not the number */
       HLO_A_ONE = 4    /* DIMS: StableHLO has a number, the only entry */ };

typedef struct {
    const char *key; /* in text */
    hlo_attr_kind kind;
    hlo_attr_block block;
    size_t at;                   /* of the field in its block */
    const hlo_attr_message *msg; /* the field's message; NULL: pb_inst */
    size_t pb;                   /* of the field in that */
    unsigned flags;
    int64_t unset, least;    /* a number's value where none is given, and the
                                least that may be given */
    const char *const *names; /* CHOICE: of its values */
    const char *what;        /* CHOICE: its name in messages about protobuf */
    const char *want;        /* CHOICE: the message for a value below `least` */
    const char *stablehlo;   /* its name in StableHLO; NULL: the same as key */
} hlo_attr_row;

/* Of an op, up to HLO_A_END; never NULL. */
const hlo_attr_row *hlo_attr_rows(hlo_op op);
#define hlo_for_each_attr(r, op) \
    for (const hlo_attr_row *r = hlo_attr_rows(op); r->kind != HLO_A_END; r++)
/* The parts of a window ("size=3x3 pad=0_0x1_1 ...") in the order of its text,
 * and their values where text does not give them.  pair: two numbers, as of a
 * padding. */
typedef struct { const char *key; size_t at; bool pair; int64_t unset; }
    hlo_window_part;
enum { HLO_WINDOW_PARTS = 6 };
extern const hlo_window_part hlo_window_parts[HLO_WINDOW_PARTS];
static inline int64_t *hlo_window_number(const hlo_window_dim *w,
                                         const hlo_window_part *p)
{
    return (int64_t *)((uintptr_t)w + p->at);
}
/* Where the row's field is. */
void *hlo_attr_field(const hlo_attr_row *r, const hlo_inst *in);
/* To be called before any field is set: makes the block that the op's rows are
 * in (hlo_dot, ...), and gives values to the fields that have no row. */
void hlo_attr_begin(sd_arena *a, hlo_inst *in);
void hlo_attr_by_dim(sd_arena *a, hlo_inst *in, int rank); /* makes u.by_dim */
/* The text keys of an op's computations, as many as it has (one or two): of
 * those with HLO_P_REGION, but for a conditional's, which has a list. */
const char *const *hlo_comp_keys(hlo_op op, int *n);

/* Text of the kinds with a form of their own (hlo_parse_op.c). */
void hlo_read_window(hlo_attr_reader *r, const hlo_attr_row *row);
void hlo_read_labels(hlo_attr_reader *r, const hlo_attr_row *row);
void hlo_read_precision(hlo_attr_reader *r, const hlo_attr_row *row);
void hlo_read_algorithm(hlo_attr_reader *r, const hlo_attr_row *row);
void hlo_read_slice(hlo_attr_reader *r, const hlo_attr_row *row);
void hlo_read_pad(hlo_attr_reader *r, const hlo_attr_row *row);
void hlo_read_custom(hlo_attr_reader *r, const hlo_attr_row *row);
void hlo_read_collective(hlo_attr_reader *r, const hlo_attr_row *row);

#endif
