/* What the files of this room share. */
#ifndef THUNK_PRIV_H
#define THUNK_PRIV_H

#include "thunk.h"

/* thunk_verify of what is special to a COLLECTIVE, after its slices were found
 * to be inside their buffers. */
sd_status thunk_check_collective(const thunk_program *p, const thunk *t);
void thunk_print_collective(sd_buf *b, const thunk_program *p, const thunk *t);

#endif
