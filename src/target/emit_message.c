/* What messages are told: see emit_message.h. */
#include "emit_message.h"

enum { BASE_OF = 64 }; /* bytes: where a message's matrix may begin */

LLVMValueRef emit_told_word(emit *e, LLVMValueRef v)
{
    return LLVMBuildIntCast2(e->b, v, e->i32, true, "");
}

LLVMValueRef emit_told_number(emit *e, int64_t n)
{
    return LLVMConstInt(e->i32, (uint32_t)n, 0);
}

void emit_find_words(emit *e, emit_words_told *w, LLVMValueRef mate)
{
    mate = emit_told_word(e, mate);
    for (int i = 0; i < MESSAGE_WORDS; i++)
        w->word[i] =
            emit_select(e, emit_equal(e, mate, emit_told_number(e, i)),
                        emit_told_number(e, -1), emit_told_number(e, 0));
}

LLVMValueRef emit_put_word(emit *e, const emit_words_told *w, LLVMValueRef all,
                           int word, LLVMValueRef v)
{
    v = emit_and(e, emit_told_word(e, v), w->word[word]);
    return all ? emit_or(e, all, v) : v;
}

LLVMValueRef emit_tell_base(emit *e, emit_told *t, LLVMValueRef at,
                            int64_t bytes, emit_reads what)
{
    int shift = __builtin_ctz((unsigned)e->abi->block_unit(what));
    LLVMValueRef skip = emit_and(e, at, LLVMConstInt(e->i64, BASE_OF - 1, 0));

    t->base = emit_minus(e, at, skip);
    skip = emit_told_word(e, skip);
    t->width = emit_sum(e, skip, emit_told_number(e, bytes - 1));
    return emit_shr(e, skip, emit_told_number(e, shift));
}

LLVMValueRef emit_pack_told(emit *e, const emit_words_told *w,
                            const emit_told *t, int64_t pitch, emit_reads what)
{
    LLVMValueRef all = emit_put_word(e, w, NULL, MESSAGE_LOW, t->base);

    all = emit_put_word(e, w, all, MESSAGE_HIGH,
                        emit_shr(e, t->base, LLVMConstInt(e->i64, 32, 0)));
    all = emit_put_word(e, w, all, MESSAGE_WIDTH, t->width);
    all = emit_put_word(e, w, all, MESSAGE_HEIGHT,
                        emit_minus(e, t->rows, emit_told_number(e, 1)));
    all =
        emit_put_word(e, w, all, MESSAGE_PITCH, emit_told_number(e, pitch - 1));
    all = emit_put_word(e, w, all, MESSAGE_COLUMN, t->column);
    all = emit_put_word(e, w, all, MESSAGE_ROW, t->row);
    return emit_put_word(e, w, all, MESSAGE_SHAPE,
                         emit_told_number(e, e->abi->block_shape(what)));
}
