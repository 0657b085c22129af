/* An NCCL for tests, whose ranks are of one process and whose blocks go by host
 * functions in streams of the fake driver.  Each call of a rank's returns before
 * it is done, as communicators do that do not block. */
#ifndef FAKE_NCCL_H
#define FAKE_NCCL_H

#define FAKE_NCCL __attribute__((visibility("default")))

typedef struct {
    int version;
    long fails; /* this call does, from 1; 0: none */
    long turns; /* so does what this look finds; -1: it never ends */
} fake_nccl_words;

/* From now on, with all counts at 0; what was there before is gone, and nothing
 * of it is in a stream any more.  driver: the fake driver's handle. */
FAKE_NCCL void fake_nccl_begin(void *driver, fake_nccl_words words);
FAKE_NCCL long fake_nccl_calls(void);
FAKE_NCCL long fake_nccl_looks(void);
FAKE_NCCL long fake_nccl_bytes(void); /* that have arrived */

#endif
