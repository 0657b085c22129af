/* What the files of plan_operands.c share. */
#ifndef PLAN_OPERANDS_H
#define PLAN_OPERANDS_H

#include "plan_room.h"

enum {
    /* Operations that are worth a byte of a copy.  An engine does about 250 in
     * the time of a byte; one whose operands come element by element takes
     * seven times as long and more, and twice as long where only rows begin at
     * odd places. */
    PLAN_WORK_OF_WOVEN = 40,
    PLAN_WORK_OF_ODD = 250,
    PLAN_WORK_OF_WIDE = 128, /* of a wide engine's */
    PLAN_ROW_BYTES = 64, /* of K in a step: rows as an engine reads them best */
    PLAN_WORD = 4
};

/* Does `in` do enough for a copy of so many bytes, read and written? */
bool plan_copy_pays(const hlo_inst *in, const device_desc *dev, double bytes,
                    int work_of_byte);
double plan_copied_bytes(const hlo_inst *x);

hlo_inst *plan_turned(hlo_at p, hlo_inst *x, const int64_t *perm);
hlo_inst *plan_copy_of(hlo_at p, hlo_inst *x);
/* A copy that another product asked for serves, too. */
hlo_inst *plan_turned_copy(hlo_at p, hlo_inst *x, const int64_t *perm);
/* Zeros behind dimension d of x, up to n positions. */
hlo_inst *plan_padded(hlo_at p, hlo_inst *x, int d, int64_t n);
/* Of each last row of x n pieces of k elements, each `apart` from the one
 * before it, as a view: of the row over and over again pieces that are a row
 * and `apart` apart, and of these the beginnings. */
hlo_inst *plan_pieces(hlo_at p, hlo_inst *x, int64_t n, int64_t apart,
                      int64_t k);
/* Dimension a, those of `spatial` and b; or a before b. */
void plan_order_dims(int64_t *to, int64_t a, hlo_dims spatial, int64_t b,
                     bool spatial_first);

/* Of dots of one dimension of each kind, and convolutions. */
bool plan_is_for_wide(const hlo_inst *in, const device_desc *dev);
void plan_copy_for_wide(hlo_inst *in, const device_desc *dev, bool all);

/* What becomes of a convolution; all: whether it pays or not. */
void plan_copy_image(hlo_inst *in, const device_desc *dev, bool all);
/* Of one of few features for a wide engine: as rows of the window, each place
 * with its own; false: it is left as it is. */
bool plan_copy_rows_for_wide(hlo_inst *in, const device_desc *dev, bool all);
/* Of one whose window is as large as the image. */
void plan_copy_gradient(hlo_inst *in, const device_desc *dev, bool all);
bool plan_has_long_window(const hlo_inst *in);
/* The same of a wide engine; false: it is left as it is. */
bool plan_copy_wide_gradient(hlo_inst *in, const device_desc *dev, bool all);

#endif
