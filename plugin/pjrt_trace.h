/* pjrt_trace: what ran while somebody traced, as an XSpace. */
#ifndef PJRT_TRACE_H
#define PJRT_TRACE_H

#include "pjrt.h"

typedef struct pjrt_trace pjrt_trace;
struct pjrt_trace {
    pjrt_trace *next; /* of those that record */
    bool on;
    bool steps;   /* of programs too, not only when they ran */
    xpu_step *at; /* each has a reference to its program; step NULL: a run */
    int n, cap;
    int64_t nlost; /* for want of memory, or beyond the most that are kept */
};

void pjrt_trace_record(pjrt_trace *t, bool on);
/* An error: there is no memory. */
sd_status pjrt_trace_write(const pjrt_trace *t, sd_buf *out);
void pjrt_trace_finish(pjrt_trace *t); /* it does not record any more */

#endif
