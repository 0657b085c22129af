/* The gradient of a window by groups of work items: what a group adds up, and
 * what lies where in its local memory. */
#ifndef PLAN_PLACES_H
#define PLAN_PLACES_H

#include "plan_contract.h"

/* A group has all places of the window for HLO_PLACES_FEATURES features of x and
 * as many of y, and the steps of one piece.  Local memory has `pairs` areas,
 * which take turns: one is multiplied while the next ones arrive.  In an area
 * are the units of x, rows by columns, and those of y behind them.  A unit is
 * eight positions, one of each band that is gone through, a line of PLAN_LINE
 * bytes each, as wide engines read it: two units side by side are an
 * instruction's positions of K, and the place of the window says with which of
 * x's units it begins.  So x is read once for all places, as it lies in memory.
 *
 * Four sub-groups, a team, have the places of one row of the window, all in one
 * product: y's features are its rows, its columns those of x, one place behind
 * the other.
 *
 * f32 goes by instructions of one sub-group, which take tf32 from registers: a
 * unit has two times eight lines, of 32 features each, and items read of it what
 * they need and round it.  Each of four sub-groups has half of y's features and
 * half of x's. */
typedef struct {
    hlo_places of;
    hlo_places_step step;
    plan_engine engine;
    int64_t x_blocks, y_blocks; /* of features */
} plan_places;

enum { PLAN_PLACES_TEAM = 128 };

static inline size_t plan_places_area(const plan_places *p)
{
    return (size_t)((p->step.x_units + p->step.y_units) *
                    hlo_places_unit(&p->of));
}

#endif
