/* What products in blocks of groups share: emit_group.c, emit_group_read.c,
 * emit_items.c, emit_panel.c, emit_plain.c, emit_share.c, emit_square.c, emit_sums.c,
 * emit_window.c, emit_wide.c. */
#ifndef EMIT_GROUP_H
#define EMIT_GROUP_H

#include "emit.h"

typedef struct { /* one operand, and what an item copies of it */
    const plan_node *node;
    int axis;          /* of x alone, or of y alone */
    uint64_t in;
    LLVMValueRef from; /* where the tile begins along it */
    int64_t extent;    /* of the tile, */
    int64_t halo;      /* of which so many rows are beyond it: x slides */
    int along, wide;
    int64_t side, deep; /* elements from one position to the next in the area */
    int64_t panel; /* from one panel of k to the next; 0: there is one */
    size_t at;
    size_t apart; /* bytes from one area to the next */
    int64_t shift; /* bytes on from there to what is multiplied, of x: see
                      emit_window.c */
    int n; /* vectors that an item copies a step; */
    int per; /* so many in a row are positions of k of one word each, */
    int each; /* and so many make words that are neighbours */
    LLVMValueRef *m, *k, *v; /* of each: its place in the tile and the step; a
                                stack slot */
    int64_t *after; /* positions from vector 0's m and k to each one's, two a
                       vector; NULL: they are not the same for all items */
    LLVMValueRef *place; /* wide engines: bytes from the area to it, or to each
                            of its elements' lines */
    LLVMValueRef *to; /* of panels: bytes from a pair of areas to its place */
    emit_known *from_start; /* of each: where its loads go in step 0; NULL */
    bool trimmed, plain, loose; /* as the plan says; plain: */
    LLVMValueRef *begin; /* of each vector: the element that it begins with where
                         K does */
    int64_t *beyond; /* of each: elements from vector 0's begin; NULL: items
                        differ */
    LLVMValueRef *low; /* of each: bits of its word that lie before it; NULL: none
                          do */
    LLVMValueRef *not; /* of each element: a bit for each position of the window
                          where its guards fail; NULL: it has none */
} emit_operand;

typedef struct {
    emit *e;
    const plan_blocks *b;
    emit_operand x, y;
    int64_t chunk, each; /* positions of axis k in a chain; chains along k */
    int64_t chains, steps; /* in all; of a chain, */
    int64_t last, row; /* of the last one along axis k; of all of these */
    LLVMTypeRef type; /* of the sums */
    LLVMValueRef im, in; /* the item's numbers along M and N */
    LLVMValueRef *acc, *sum; /* [row * vectors + column], or as place_of says:
                                stack slots */
    int nacc;
    bool matrix; /* the engine is a matrix instruction, */
    bool wide; /* which reads local memory itself */
    LLVMTypeRef slot; /* of a stack slot: one sum, or a matrix's several */
    LLVMValueRef mate; /* the item's number in its sub-group */
    LLVMValueRef x_own, y_own; /* bytes to what it reads of a square */
} emit_tile;

/* ---- emit_group.c ---- */

/* Does what is copied of o lie along K? */
bool emit_is_deep(const emit_tile *g, const emit_operand *o);
/* Element `index` of the area at `at`, of the pair's number `turn`. */
LLVMValueRef emit_tile_area(emit_tile *g, size_t at, LLVMValueRef turn,
                            LLVMTypeRef t, LLVMValueRef index);
enum { EMIT_TURNED = PLAN_LINE_PART / 4 }; /* elements of a vector of f32 */
/* Of o->per vectors of f32, vector i the first, what lies side by side along K:
 * o->wide parts of lines, and which line part c belongs to. */
void emit_tile_turned(emit_tile *g, const emit_operand *o, int i,
                      LLVMValueRef *line);
LLVMValueRef emit_tile_line(emit_tile *g, const emit_operand *o, int i, int c);
/* Byte `by` of o's area number `turn`. */
LLVMValueRef emit_operand_area(emit_tile *g, const emit_operand *o,
                               LLVMValueRef turn, LLVMValueRef by);
/* What was read as o's vector i, as the engine takes it. */
LLVMValueRef emit_tile_vector(emit_tile *g, const emit_operand *o, int i);
/* What was read of a step, to the areas of `turn`, for all. */
void emit_write_step(emit_tile *g, LLVMValueRef turn);
/* Stores v, of so many bytes. */
void emit_tile_put(LLVMValueRef p, LLVMValueRef v, emit *e, size_t bytes);

/* ---- emit_group_read.c ---- */

/* Finds what can be known of the places that o is read at before any step. */
void emit_find_starts(emit_tile *g, emit_operand *o);
/* Reads what the item has of o in step number `at`, into its stack slots. */
void emit_tile_read(emit_tile *g, emit_operand *o, LLVMValueRef at);
/* Opens axis a at a position and its `copies`. */
void emit_open_axis(emit *e, int a, LLVMValueRef at, int copies);
/* Opens position number `flat` of `axis` from `from` on and of those of `in`,
 * the last axis fastest, as the tile counts them; of axis `along` it is the
 * first of `copies`.  Closes these. */
void emit_open_axes(emit *e, int axis, uint64_t in, LLVMValueRef from,
                    LLVMValueRef flat, int along, int copies);
void emit_close_axes(emit *e, uint64_t axes);
/* Nothing beyond the end of `axis` is read or written, nor where `valid` does
 * not hold, which is returned with that. */
LLVMValueRef emit_limit_axis(emit *e, int axis, LLVMValueRef valid);
/* Opens the operand's side at row or column number `flat` of the tile. */
void emit_open_side(emit *e, const emit_operand *o, LLVMValueRef flat);
/* Opens the position of vector i of o where all axes of K begin, but for what it
 * has of the step; closes it. */
void emit_open_vector(emit_tile *g, const emit_operand *o, int i);
void emit_close_vector(emit_tile *g, const emit_operand *o);

/* ---- emit_share.c: what an item copies ---- */

/* Finds o's vectors, and where they go. */
void emit_share_out(emit_tile *g, emit_operand *o);

/* ---- emit_plain.c: operands in panels that are read as they lie ---- */

void emit_find_plain(emit_tile *g, emit_operand *o); /* before the loop */
void emit_plain_read(emit_tile *g, emit_operand *o, LLVMValueRef at);
/* The same of an operand without guards, whose step lies so many elements from
 * the first; what a vector of o has that lies at p. */
void emit_plain_read_at(emit_tile *g, emit_operand *o, LLVMValueRef by);
LLVMValueRef emit_plain_vector(emit *e, const emit_operand *o, LLVMValueRef p);
/* Step `at` goes by itself to the area of `turn`. */
void emit_plain_copy(emit_tile *g, emit_operand *o, LLVMValueRef at,
                     LLVMValueRef turn);
/* Numbers of f32 that have arrived there become tf32: an item's own. */
void emit_plain_round(emit_tile *g, const emit_operand *o, LLVMValueRef turn);

/* ---- emit_panel.c: operands of engines that read by blocks ---- */

enum { EMIT_WORDS = 16, /* of a vector: positions of bytes */
       EMIT_SIDES = 4   /* words that are written at once */ };
/* Word n of the result is what the o->per vectors have at place n, where these
 * have words. */
void emit_weave_words(emit_tile *g, const emit_operand *o,
                      const LLVMValueRef *v, LLVMValueRef *word);
void emit_place_panels(emit_tile *g, emit_operand *o); /* finds o->to */
/* What was read of o, to the panels of `turn`, in words where there are whole
 * ones. */
void emit_write_panels(emit_tile *g, emit_operand *o, LLVMValueRef turn);
/* All steps, for the sums of g->acc. */
void emit_run_panels(emit_tile *g);

/* ---- emit_sums.c ---- */

/* All that follows the sums. */
void emit_use_sums(emit_tile *g);

/* ---- emit_items.c: products by items ---- */

void emit_find_items(emit_tile *g); /* finds g->im and g->in */
void emit_multiply_items(emit_tile *g, LLVMValueRef turn);
/* Where items read early: begins, with what lies in the first areas; multiplies
 * what lies in those of `turn`, and meanwhile what was read of the next step is
 * written to those of `then`; takes the sums to g->acc, and begins at 0 again. */
void emit_begin_early(emit_tile *g);
void emit_multiply_early(emit_tile *g, LLVMValueRef turn, LLVMValueRef then);
void emit_take_early(emit_tile *g);

/* ---- emit_square.c: products by matrix instructions ---- */

/* Bytes from an area to what the item reads of the sub-group's first square. */
void emit_own_squares(emit_tile *g);
/* Positions [from, to) of a step. */
void emit_multiply_squares(emit_tile *g, LLVMValueRef turn, int from, int to);
/* Of one of the sub-group's squares, of what was read of x and y for it. */
void emit_multiply_square(emit_tile *g, int row, int column,
                          const LLVMValueRef *x, const LLVMValueRef *y);
/* The squares in row `row`, into the area that begins with row `from`. */
void emit_put_squares(emit_tile *g, int row, int64_t from);

/* ---- emit_direct.c: operands that go from memory to registers ---- */

/* All of K, for the sums of g->acc. */
void emit_run_direct(emit_tile *g);

/* ---- emit_window.c: x of all positions of a window at once ---- */

/* All of K, for the sums of g->acc. */
void emit_run_window(emit_tile *g);

/* ---- emit_wide.c: products by engines that read local memory themselves ---- */

/* Where the vectors go that an item copies. */
void emit_wide_places(emit_tile *g, emit_operand *o);
/* All steps, for the sums of g->acc. */
void emit_wide_run(emit_tile *g);

#endif
