/* Sums of a row that teams of items share (plan_kept.c). */
#include "emit.h"

static void step_copies(emit *e, emit_reduction *r, uint64_t varies)
{
    for (int c = 0; c < e->ncopy; c++)
        if (emit_is_copy(e, c, varies))
            emit_reduce_step(e, r, c);
}

/* Where the order means nothing all teams add at once, and joining joins
 * theirs. Else the lanes go from team to team through local memory; a loop, so
 * that the steps stand there once. */
void emit_team_sum(emit *e, emit_reduction *r, uint64_t varies)
{
    LLVMBasicBlockRef own, later;
    emit_loop turn;

    if (plan_any_order(emit_reduction_node(r))) {
        step_copies(e, r, varies);
        return;
    }
    emit_loop_open(e, &turn, emit_si(e, 0), emit_si(e, e->k->teams), 1);
    own = emit_when(e, emit_equal(e, e->team, turn.at));
    later = emit_when(e, emit_unequal(e, turn.at, emit_si(e, 0)));
    emit_reduce_hand_on(e, r, false);
    emit_when_end(e, later);
    step_copies(e, r, varies);
    emit_reduce_hand_on(e, r, true);
    emit_when_end(e, own);
    emit_barrier(e);
    emit_loop_close(e, &turn);
}
