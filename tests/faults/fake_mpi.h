/* An MPI for tests: the processes of a job are threads of one process.  Each is
 * the next rank from when it asks whether MPI has begun. */
#ifndef FAKE_MPI_H
#define FAKE_MPI_H

#include <stdbool.h>
#include <stddef.h>

#define FAKE_MPI __attribute__((visibility("default")))

/* A job of n; what the former one sent is gone, and nothing is wrong. */
FAKE_MPI void fake_mpi_begin(int n);
/* What is wrong from now on: the name of a call, which fails; "level", not all
 * threads may call; "alone", the others never join; "deaf", nobody takes what is
 * sent, but for pieces of nothing; "rank", all have the same;
 * "begun", another part of the program has begun MPI, and Query_thread fails;
 * NULL, nothing.  silent: a call that fails has no words for it. */
FAKE_MPI void fake_mpi_spoil(const char *what, bool silent);
/* A message from each of the ranks 0 and 1 to the other, both at once: who hears
 * a wrong one answers that it has ended, and that must come after. */
FAKE_MPI void fake_mpi_put_both(const void *at, size_t n);

#endif
