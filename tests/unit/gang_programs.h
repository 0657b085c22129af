/* Programs of several participants, and what they make.  Participant p's one
 * argument is s32[k] with x(p, i) = 1000 p + i, so that what each collective
 * makes of it can be said in a line. */
#ifndef GANG_PROGRAMS_H
#define GANG_PROGRAMS_H

#include "thunk.h"
#include "xpu.h"

typedef struct {
    const char *name;
    int n, k;     /* participants; elements of the argument */
    int64_t (*want)(int me, int out, int i); /* an element of a result */
    const char *text;
} gang_program;

extern const gang_program gang_programs[];
extern const int gang_program_count;

/* For other programs over several devices. */
#define G       "channel_id=1, use_global_device_ids=true, replica_groups="
#define PAIRS   "channel_id=1, source_target_pairs="
#define HEAD(n) "HloModule m, num_partitions=" #n "\n"
#define ADD \
    "add { a = s32[] parameter(0) b = s32[] parameter(1) " \
    "ROOT c = s32[] add(a, b) }\n"

/* `text` as a program for `device`, the caller's to release. */
thunk_program *gang_compile(xpu_device *device, const sd_options *opt,
                            const char *text);
/* Participant p's argument of k elements, on `device`. */
xpu_buffer *gang_argument(xpu_device *device, int p, int k);
/* How many elements of result `out` of participant `me` are not what is wanted,
 * of which the first is printed. */
int gang_count_wrong(const gang_program *p, xpu_buffer *result, int me, int out);

#endif
