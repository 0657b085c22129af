/* What the files of this room share. */
#ifndef THUNK_PRIV_H
#define THUNK_PRIV_H

#include "thunk.h"

/* Of a COLLECTIVE whose slices are inside their buffers. */
sd_status thunk_check_collective(const thunk_program *p, const thunk *t);
void thunk_print_collective(sd_buf *b, const thunk_program *p, const thunk *t);

#endif
