/* An engine with tiles (AMX, ADR 36): registers of 16 rows of 64 bytes each. Up
 * to four hold sums; x and y pass through the others, 16 words of k at a time.
 * Their sums go on from chain to chain, and lie in the kernel's area between.
 *
 * The tiles are numbered here, not by LLVM: its own allocation of them wants
 * the shape of each, which is the same for all of a kernel, and to configure
 * them anew where a function might have been called.  Host only. */
#include "emit.h"

enum {
    ROW = 64, /* bytes of a tile */
    SUMS = 0,
    X = 4,
    Y = 6,
    TILES = 8
};

static LLVMValueRef number(emit *e, int n)
{
    return LLVMConstInt(e->i8, (unsigned)n, 0);
}

/* ---- what the tiles are ---- */

/* The processor's own table: palette 1, bytes of a row of each tile as numbers
 * of 16 bits from byte 16 on, rows from byte 48 on. */
static LLVMValueRef shapes(emit *e)
{
    enum { BYTES = 64, COLUMNS = 16, ROWS = 48 };
    uint8_t of[BYTES] = {1};
    LLVMValueRef byte[BYTES], g;

    for (int i = 0; i < TILES; i++) {
        of[COLUMNS + 2 * i] = ROW;
        of[ROWS + i] =
            i < Y ? (uint8_t)plan_tile_of_sums(e->k->blocks) : PLAN_SQUARE;
    }
    for (int i = 0; i < BYTES; i++)
        byte[i] = number(e, of[i]);
    g = LLVMAddGlobal(e->m, LLVMArrayType2(e->i8, BYTES), "tiles");
    LLVMSetInitializer(g, LLVMConstArray2(e->i8, byte, BYTES));
    LLVMSetGlobalConstant(g, true);
    LLVMSetLinkage(g, LLVMPrivateLinkage);
    LLVMSetUnnamedAddress(g, LLVMGlobalUnnamedAddr);
    return g;
}

/* ---- instructions ---- */

/* Rows of memory that are `apart` words from one another, to a tile or from it.
 */
static void move(emit *e, const char *name, int tile, LLVMValueRef p,
                 int64_t apart)
{
    LLVMValueRef arg[3] = {number(e, tile), p, emit_i64(e, apart * 4)};

    emit_intrinsic2(e, name, NULL, 0, arg, 3);
}

static const char *multiplier(const plan_blocks *b)
{
    static const char *const bytes[] = {"llvm.x86.tdpbuud",
                                        "llvm.x86.tdpbusd", /* x, then y */
                                        "llvm.x86.tdpbsud", "llvm.x86.tdpbssd"};

    return b->part == SD_BF16
               ? "llvm.x86.tdpbf16ps"
               : bytes[2 * (b->x->dtype == SD_S8) + (b->y->dtype == SD_S8)];
}

static void add(emit *e, int sum, int x, int y)
{
    LLVMValueRef arg[3] = {number(e, sum), number(e, x), number(e, y)};

    emit_intrinsic2(e, multiplier(e->k->blocks), NULL, 0, arg, 3);
}

static LLVMValueRef word(emit *e, LLVMValueRef p, LLVMValueRef at)
{
    return emit_behind(e, e->i32, p, at);
}

/* ---- products ---- */

/* Tile i of the sums that begin at p. */
static LLVMValueRef sum_at(emit *e, LLVMValueRef p, int i)
{
    const plan_blocks *b = e->k->blocks;
    int64_t down = i / b->vectors * plan_tile_of_sums(b);

    return word(e, p,
                emit_si(e, down * b->sum_m + i % b->vectors * PLAN_SQUARE));
}

static int tiles_of(const plan_blocks *b)
{
    return b->rows / plan_tile_of_sums(b) * b->vectors;
}

static void start(emit *e, LLVMValueRef sum, LLVMValueRef is_first)
{
    const plan_blocks *b = e->k->blocks;
    LLVMBasicBlockRef first = emit_block(e, "first"),
                      later = emit_block(e, "later"),
                      done = emit_block(e, "started");

    LLVMBuildCondBr(e->b, is_first, first, later);
    LLVMPositionBuilderAtEnd(e->b, first);
    for (int i = 0; i < tiles_of(b); i++) {
        LLVMValueRef tile = number(e, SUMS + i);

        emit_intrinsic2(e, "llvm.x86.tilezero", NULL, 0, &tile, 1);
    }
    LLVMBuildBr(e->b, done);
    LLVMPositionBuilderAtEnd(e->b, later);
    for (int i = 0; i < tiles_of(b); i++)
        move(e, "llvm.x86.tileloadd64", SUMS + i, sum_at(e, sum, i), b->sum_m);
    LLVMBuildBr(e->b, done);
    LLVMPositionBuilderAtEnd(e->b, done);
}

/* 16 words of k. */
static void step(emit *e, LLVMValueRef x, LLVMValueRef y)
{
    const plan_blocks *b = e->k->blocks;
    int rows = plan_tile_of_sums(b);

    for (int v = 0; v < b->vectors; v++)
        move(e, "llvm.x86.tileloadd64", Y + v,
             word(e, y, emit_si(e, v * PLAN_SQUARE)), b->y_k);
    for (int m = 0; m < b->rows / rows; m++) {
        move(e, "llvm.x86.tileloadd64", X + m,
             word(e, x, emit_si(e, m * rows * b->x_m)), b->x_m);
        for (int v = 0; v < b->vectors; v++)
            add(e, SUMS + m * b->vectors + v, X + m, Y + v);
    }
}

static void block(emit *e, LLVMValueRef x, LLVMValueRef y, LLVMValueRef sum,
                  const emit_chain *t)
{
    const plan_blocks *b = e->k->blocks;
    emit_loop k;

    start(e, sum, t->first);
    emit_loop_open(e, &k, emit_si(e, 0), t->words, PLAN_SQUARE);
    step(e, word(e, x, k.at), word(e, y, emit_times(e, k.at, b->y_k)));
    emit_loop_close(e, &k);
    for (int i = 0; i < tiles_of(b); i++)
        move(e, "llvm.x86.tilestored64", SUMS + i, sum_at(e, sum, i), b->sum_m);
}

/* Tiles are given back at once: a thread that has none is switched as any. */
void emit_chain_by_tiles(emit *e, const emit_chain *t)
{
    const plan_blocks *b = e->k->blocks;
    int64_t wide = b->vectors * PLAN_SQUARE;
    LLVMValueRef table = shapes(e), x, y;
    emit_loop n, m;

    emit_intrinsic2(e, "llvm.x86.ldtilecfg", NULL, 0, &table, 1);
    emit_loop_open(e, &n, emit_si(e, 0), t->columns, wide);
    y = word(e, t->y, emit_times(e, emit_over(e, n.at, wide), b->y_panel));
    emit_loop_open(e, &m, emit_si(e, 0), t->rows, b->rows);
    x = word(e, t->x, emit_times(e, m.at, b->x_m));
    block(e, x, y, word(e, t->sum, emit_mad(e, m.at, b->sum_m, n.at)), t);
    emit_loop_close(e, &m);
    emit_loop_close(e, &n);
    emit_intrinsic2(e, "llvm.x86.tilerelease", NULL, 0, NULL, 0);
}
