/* What a message that reads a block of a matrix, 2-D, is told (ADR 25), which
 * lies in one register, a word an item: where the matrix begins, in two words,
 * bytes of a row, rows, bytes from row to row, each less one, the first column
 * and row, and the block's shape. */
#ifndef EMIT_MESSAGE_H
#define EMIT_MESSAGE_H

#include "emit.h"

enum { MESSAGE_LOW, MESSAGE_HIGH, MESSAGE_WIDTH, MESSAGE_HEIGHT, MESSAGE_PITCH,
       MESSAGE_COLUMN, MESSAGE_ROW, MESSAGE_SHAPE, MESSAGE_WORDS };

/* Of each word all ones in the item that has it. */
typedef struct { LLVMValueRef word[MESSAGE_WORDS]; } emit_words_told;

/* What a message is told, but for what all of an operand are. */
typedef struct {
    LLVMValueRef base, width, rows; /* width: less 1 */
    LLVMValueRef column, row;
} emit_told;

LLVMValueRef emit_told_word(emit *e, LLVMValueRef v); /* as one */
LLVMValueRef emit_told_number(emit *e, int64_t n);
/* mate: the item's number in its sub-group. */
void emit_find_words(emit *e, emit_words_told *w, LLVMValueRef mate);
/* `all`, or NULL, with v as that word. */
LLVMValueRef emit_put_word(emit *e, const emit_words_told *w, LLVMValueRef all,
                           int word, LLVMValueRef v);
/* A message's matrix begins at a multiple of 64 bytes: finds base and width of
 * one that begins at `at`, an i64, and has so many bytes a row; what lies before
 * its first element are columns that nobody asks for: so many, numbered as
 * `what` numbers them. */
LLVMValueRef emit_tell_base(emit *e, emit_told *t, LLVMValueRef at,
                            int64_t bytes, emit_reads what);
/* In one register; `pitch` in bytes. */
LLVMValueRef emit_pack_told(emit *e, const emit_words_told *w,
                            const emit_told *t, int64_t pitch, emit_reads what);

#endif
