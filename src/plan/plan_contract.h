/* A CONTRACT in blocks: which engine multiplies, and where in tiles, areas and
 * registers the elements of its operands and its sums are. */
#ifndef PLAN_CONTRACT_H
#define PLAN_CONTRACT_H

#include "device_desc.h"
#include "plan_node.h"

/* ---- engines ---- */

typedef enum {
#define ENGINE(id, ...) PLAN_ENGINE_##id,
#include "engines.def"
#undef ENGINE
    PLAN_ENGINE_COUNT
} plan_engine;
typedef struct {
    uint64_t needs; /* device_feature bits */
    int depth;      /* positions of k that one instruction adds */
    int bits;       /* of an operand, at most */
    sd_dtype part, sum; /* of tiles, floats and matrix instructions: x and y,
                         * and their sums; */
    int m, n;       /* of how many rows and columns.  0: it is none */
    int items;      /* of the sub-group that it takes */
    bool panels;    /* x and y lie in panels of `depth` positions of k */
    bool tiles;     /* hosts: a register has PLAN_SQUARE x PLAN_SQUARE sums */
    int several;    /* sub-groups of a wide one, which reads x and y itself; 0 */
} plan_engine_info;
extern const plan_engine_info plan_engine_table[PLAN_ENGINE_COUNT];
/* Rows and columns of a square: what a sub-group has of matrix instructions at a
 * time; bytes of a line that a wide one reads, whose 16-byte parts it expects
 * exchanged: part i of line n lies at i ^ n % 8. */
enum { PLAN_SQUARE = 16, PLAN_LINE = 128, PLAN_LINES = 8, PLAN_LINE_PART = 16 };

/* ---- a CONTRACT in blocks ----
 *
 * sum[m][n] = sum over k of x[m][k] * y[k][n], where m counts the positions of
 * axes `m` and m_in, n those of `n` and n_in, k those of `k` and k_in: from the
 * start of the tile (m, n) or of the chain (k), the last axis fastest.  N's last
 * axis is LANE.  A tile cuts axes m and n; m_in, n_in and k_in are whole.  Axes
 * of the sum before k have a chain, or several, at each position.
 *
 * ON THE HOST a thread takes a tile.  For each chain both operands are computed
 * once and written to areas of the scratch; then `rows` x `vectors`
 * accumulators at a time stay in registers while k runs.  Between blocks, and
 * for what uses the sum, the accumulators of the tile lie in a third area.
 *
 *   area   where an element is, in elements
 *   x      (m, k) at m * x_m + k * x_k
 *   y      panels of `vectors` vectors of n, y_panel from one to the next; in a
 *          panel k has its vectors side by side, y_k from one k to the next.
 *          Where N is several axes these are whole rows of the tile, of which a
 *          panel is a part: vectors do not end where panels do
 *   sum    (m, n) at m * sum_m + n
 *
 * An engine of some depth (engines.def) takes words of so many positions of k:
 * k and elements above then count words.  Its operands are those of the CONTRACT
 * before they became wide.  An operand that does not lie along k is copied row
 * by row to a stage and woven into words from there.  y is copied to the stage
 * in any case, [k][n] or [n][k], and turned if need be; what fills its last word
 * is 0.  One operand of vpdpbusd has a sign and the other has none, so where x
 * and y are of one kind x is flipped (x ^ 0x80), which adds or takes 128 times
 * the sum of y.
 *
 * ON A GPU a group takes a tile.  Its items copy `step` positions of a chain to
 * areas of local memory, x_wide and y_wide neighbours at a time, while they
 * multiply what lies in another such pair of areas.
 *
 *   engine         x: (m, k) is at               y: (n, k) is at
 *   none, MMA      m * x_m + k * x_k             n * y_n + k * y_k
 *   panels (dpas)  k / depth * x_panel           k / depth * y_panel
 *                  + m * x_m + k % depth * x_k   + n / items * items * depth
 *                                                + k % depth / word * y_k
 *                                                + n % items * y_n + k % word
 *   wide (wgmma)   see below
 *
 * In panels a row's part is 32 bytes.  A panel of y has blocks of as many
 * columns as a sub-group has items; of each column there is a word, 4 bytes of
 * K, then the next.
 *
 * Where M's axes move along an image as a *window* does, whose axes are all of
 * K's but the last, x lies in one area once for all of the window.  Its rows are
 * the positions of the tile with what the window reaches beyond them, and at a
 * position of the window m is in row m + the sum of plan_window_shift.  Steps
 * go over the window before they go on along K's last axis.  Where M's axis
 * goes `of` times as fast (a stride) each phase of the window has rows of its
 * own, a plane.  A tile counts as many positions of M's inner axes as such rows
 * have, beyond an end, too.
 *
 * A wide engine's x *slides* where M's last axis moves along the image as K's
 * last but one does (kx): a step of x has the rows of the tile and the few that
 * kx reaches beyond them, and serves all positions of kx, each of which begins
 * some rows further on and has a step of y of its own.  x has two areas, then y
 * has four of `buffer` bytes; rows of an image lie each with what is beyond its
 * end, and the tile counts its positions so.
 *
 * A wide engine reads lines of 128 bytes.  Where an operand lies along k, or its
 * elements are bytes, line m has the step's positions of k, and x_k is 1.  Else
 * x_m is 1 and a line has the 64 neighbours of m at one k: (m, k) is in line
 * m / 64 * step + k.  y is laid out likewise.  There are three pairs of areas
 * where local memory holds them, since the engine reads one while another is
 * written and the next lies ready, and four where copies are made by themselves
 * and two are under way.
 *
 * The first step, which is read before the loop over the others, begins with
 * `lead` positions that K does not have and that are 0.  Then all other steps
 * are full, and nothing in the loop asks whether K has a position.  An operand
 * that is one load is *plain* where a step moves its place by the same number
 * for all items: its places are found before the loop, and so is, as bits, at
 * which positions along K (a window's) its guards fail; there slot `zeros` is
 * read.
 *
 * An item has its sums, and those of the open chain, in registers: along_m x
 * along_n items share a tile, and each has `rows` x `vectors` positions of it,
 * `near` neighbours of m and n at a time.  Row i of item j is
 * (i / near * along_m + j) * near + i % near.  Where the engine is a matrix
 * instruction a sub-group stands for an item in all this, x and y are those of
 * the CONTRACT before they became wide, and a chain is the whole sum.
 *
 * At last `round` rows of sums at a time are written to an area, which lies where
 * those of x and y were.  What uses the sums runs over these rows: items along
 * LANE, rows of a group at once. */

/* A matrix in memory that messages read by blocks, 2-D, with zeros outside of
 * it.  Its rows are positions of the operand's side (M of x, N of y), its
 * columns those of the last axis of K, and the other axes of K say where it
 * begins. */
typedef struct {
    bool across; /* rows are those of the last axis of K, columns the side's */
    bool flat;   /* the side's axes are one after another, in one matrix; else
                    rows are those of the last one, and the others say where the
                    matrix begins, too */
    int guard;   /* of the LOAD; it fails above and below the matrix.  Others,
                    which no row changes, fail for all of it.  -1: there is none */
    int64_t pitch;         /* elements from one row to the next */
    int64_t rows, columns; /* where no guard says less */
    int64_t slide;         /* of x, in rows: see `slides` */
} plan_reads;

typedef struct {
    const plan_node *node;   /* the CONTRACT */
    const plan_node *x, *y;  /* its operands: y is the one that varies on LANE */
    int m, n, k;             /* axes: of x alone, of y alone, the sum's */
    uint64_t m_in, n_in, k_in; /* more axes of each */
    uint64_t rest;           /* other outer axes: their loops are outside */
    int64_t chunk, kt;       /* positions of k in a chain; of k and k_in */
    plan_engine engine;
    sd_dtype part;           /* of which a word has several */
    int rows, vectors;       /* of sums that stay in registers */
    int x_along, y_along;    /* the axes along which vectors are read: on hosts
                                of x as many elements as x_wide, or as lanes */

    /* areas: elements from one to the next, and bytes where they begin */
    int64_t x_m, x_k, y_panel, y_k, sum_m;
    size_t x_at, y_at, sum_at;

    /* hosts */
    int ahead;               /* rows of an operand that are prefetched while it
                                is copied */
    bool flip;               /* x ^ 0x80: as vpdpbusd wants it */
    bool weaves;             /* y's words are made as it is read: no stage */
    int64_t x_row, y_row;    /* of the stage, in parts */
    size_t stage_at;

    /* GPUs: a group's tile, and its items in it */
    int64_t mt, nt;          /* positions of M and N */
    int along_m, along_n, near;
    bool early;              /* an item reads what it multiplies next while it
                                multiplies; a sub-group's stand in a square */
    int64_t round;           /* rows of sums that go to an area at a time */

    /* GPUs: how operands come to areas, in steps of k */
    int64_t y_n, x_panel;    /* as x_m and y_panel */
    int step, x_wide, y_wide; /* positions of k; neighbours at a time */
    int lead;                /* zeros of the first step */
    bool x_plain, y_plain;   /* read as they lie */
    bool x_loose, y_loose;   /* by words of PLAN_BLOCK_WORD bytes that may lie
                                anywhere, or several that are aligned as one:
                                vectors need not end where a row or a step
                                does (plan_loose.c) */
    bool x_trimmed, y_trimmed; /* of f32: to tf32's digits, by who made them */
    int zeros;               /* the slot for it; 0: it needs none */
    size_t buffer;           /* bytes from one pair of areas to the next, */
    int pairs;               /* of so many */
    int band;       /* tiles along m that stand side by side before the next
                       along n: what runs at once then shares more operands */
    bool by_itself; /* wide engines: what is copied goes from memory to areas by
                       instructions that nobody waits for at once */
    bool window; /* panels: x lies in one area, once for all of a window; y, from
                    y_at on, has an area for each position of K's last axis but
                    one, `buffer` bytes each */

    /* GPUs, direct: operands go from memory to registers.  There are no areas,
     * and steps that end beyond the last axis of K find zeros there */
    bool direct;
    plan_reads x_reads, y_reads;
    bool slides; /* from one position of K's last axis but one (kx) to the next x
                    begins `slide` rows further in the same matrix, and y, whose
                    matrix goes on along that axis, where it is.  Or within the
                    last axis: a row of x has the first of its positions, the
                    next row those that follow.  A wide engine's x slides in its
                    area: see above */
    bool deep; /* a message reads 16 rows of x, and of each what the engine takes
                  twice: a step; one of y, too, where it weaves pairs of rows.
                  Tiles whose sums leave registers for it */
    int m_whole; /* the tile counts of M's last axis, where m_in has it, a
                    multiple of so many positions, the rows of a message; what is
                    beyond its end nobody has; 0: it is one */
} plan_blocks;
enum { PLAN_ZEROS = 16 }; /* bytes of slot `zeros`: an access of any device */
enum { PLAN_BLOCK_WORD = 4 }; /* bytes of a word of panels */
enum { PLAN_FEW_STEPS = 4 };
enum { PLAN_EARLY = 4,   /* positions of k that items multiply in a row, */
       PLAN_ABREAST = 8  /* and columns of a square of them */ };

/* ---- ask ---- */

/* Is the engine a matrix instruction of a GPU, and a wide one? */
static inline bool plan_has_matrices(const plan_blocks *b)
{
    return plan_engine_table[b->engine].m > 0;
}
static inline bool plan_is_wide(const plan_blocks *b)
{
    return plan_engine_table[b->engine].several > 0;
}
/* Panels of GPUs: elements of a word, 4 bytes. */
static inline int plan_word(const plan_blocks *b)
{
    return PLAN_BLOCK_WORD / (int)sd_dtype_bytes(b->part);
}
/* An item copies so many positions of k at a time of an operand that lies along
 * `along`: where that is not k, those of one word, or of one access of numbers
 * of f32, whose lines lie along k too. */
static inline int plan_woven_rows(const plan_blocks *b, int along)
{
    const plan_engine_info *e = &plan_engine_table[b->engine];
    size_t bytes = sd_dtype_bytes(b->part);

    if (b->node->over >> along & 1)
        return 1;
    return e->panels                       ? plan_word(b)
           : e->m && bytes == 4            ? PLAN_LINE_PART / 4
           : e->several && bytes == 1      ? plan_word(b)
                                           : 1;
}
/* Of a wide engine: does it take x from registers, into which items read it from
 * the lines and where they round it?  Of y it takes nothing so.  x that slides
 * is rounded in its area, once for all positions of kx. */
static inline bool plan_holds_x(const plan_blocks *b)
{
    return b->by_itself && b->part == SD_F32 && !b->x_trimmed && !b->slides;
}
/* On the host: do subnormal operands and sums of b count as 0 (plan_pass)?
 * Engines have their own rule; what has the bits of a REDUCE keeps them. */
static inline bool plan_drops_subnormals(const plan_blocks *b)
{
    return b->engine == PLAN_ENGINE_FMA && !b->node->apart &&
           sd_has_subnormals(b->node->dtype);
}
/* Of a wide engine: are there so few steps that most of a group's time is before
 * and behind them? */
static inline bool plan_is_short(const plan_blocks *b)
{
    return plan_is_wide(b) &&
           b->kt <= PLAN_FEW_STEPS * b->step;
}
/* Can sub-groups of items that multiply by themselves stand in squares, and is a
 * step a number of PLAN_EARLY? */
bool plan_stands_in_squares(const plan_kernel *k, const plan_blocks *b);
/* Does x, read by blocks, slide within K's last axis? */
bool plan_slides_within(const plan_kernel *k, const plan_blocks *b);
/* Positions of axis a, one of m_in or n_in, as a tile counts them; of all. */
int64_t plan_tile_extent(const plan_kernel *k, const plan_blocks *b, int a);
int64_t plan_tile_points(const plan_kernel *k, const plan_blocks *b,
                         uint64_t in);
/* Words that an engine of hosts takes of a chain of so many positions. */
int64_t plan_chain_words(const plan_blocks *b, int64_t depth);
/* Rows of one tile of sums of an engine with tiles. */
static inline int plan_tile_of_sums(const plan_blocks *b)
{
    return b->rows > PLAN_SQUARE ? b->rows / 2 : b->rows;
}
/* Of plan_blocks.window (plan_window.c).  Its axes: K's but the last. */
uint64_t plan_window_axes(const plan_blocks *b);
/* Along which axis of M K's axis w moves x: `of` of its positions as far as `by` of that one's, one of which is 1; -1:
 * along none. */
typedef struct { int axis; int64_t by, of; } plan_pace;
plan_pace plan_window_pace(const plan_kernel *k, const plan_blocks *b, int w);
/* How far the window reaches beyond the end of M's axis a, whose positions in a
 * tile are counted with that. */
int64_t plan_window_halo(const plan_kernel *k, const plan_blocks *b, int a);
/* Planes of x's area, one for each phase of the window's axes from w on. */
int64_t plan_window_planes(const plan_kernel *k, const plan_blocks *b, int w);
/* Rows of one plane. */
int64_t plan_window_plane(const plan_kernel *k, const plan_blocks *b);
/* How many rows further on position `at` of the window's axis w finds what its
 * position 0 finds. */
int64_t plan_window_shift(const plan_kernel *k, const plan_blocks *b, int w,
                          int64_t at);
/* Rows of x's area, in all. */
int64_t plan_window_rows(const plan_kernel *k, const plan_blocks *b);
/* Of a wide engine's x: does it slide?  Along which axis of K, and how many rows
 * from one of its positions to the next; the rows that the last one begins
 * behind the first, and all of an area. */
static inline bool plan_slides_in_area(const plan_blocks *b)
{
    return b->slides && plan_is_wide(b);
}
int plan_slide_axis(const plan_blocks *b);
int64_t plan_slide_step(const plan_kernel *k, const plan_blocks *b);
int64_t plan_slide_halo(const plan_kernel *k, const plan_blocks *b);
static inline int64_t plan_slide_rows(const plan_kernel *k,
                                      const plan_blocks *b)
{
    return b->mt + plan_slide_halo(k, b);
}
/* Positions along K at which guard g of a plain operand may fail or not. */
int64_t plan_guard_places(const plan_kernel *k, const plan_guard *g);
/* On a GPU: the axis along which `wide` of n goes, if n is read while operands
 * are copied; -1: it is not. */
int plan_copied_along(const plan_kernel *k, const plan_node *n);

/* The axes of its rows, of its columns and of a chain. */
static inline uint64_t plan_block_rows(const plan_blocks *b)
{
    return b->m_in | 1ull << b->m;
}
static inline uint64_t plan_block_columns(const plan_blocks *b)
{
    return b->n_in | 1ull << b->n;
}
static inline uint64_t plan_block_chain(const plan_blocks *b)
{
    return b->k_in | 1ull << b->k;
}

#endif
