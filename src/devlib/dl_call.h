/* dl_call: the vocabulary of device functions that are whole algorithms, as a
 * kernel calls them: they read and write memory and loop.  clang compiles them
 * for each x86 level, of which the machine code is used, and for GPUs.
 *
 * DL_GLOBAL is what pointers to arrays point to, DL_LOCAL a group's own memory.
 * A function that takes whole arrays, or is of a group, has GROUP work items for
 * an item, of which each has its number, lid or LID, and SYNC between what one
 * writes and another reads; on the host one thread is the group.  Nothing is
 * contracted: all builds give the same bits. */
#ifndef DL_CALL_H
#define DL_CALL_H

#include <stdint.h>

#define DL_INLINE static inline __attribute__((always_inline))
#ifdef DL_X86
#define DL_GLOBAL
#define GROUP ((int64_t)1)
#define LID   ((int64_t)0)
#define SYNC()
/* a function of its own; on GPUs a part of its caller, since SPIR-V passes no
 * structures */
#define DL_PIECE static __attribute__((noinline))
#else
#define DL_PIECE  DL_INLINE
#define DL_GLOBAL __attribute__((address_space(1)))
#define DL_LOCAL  __attribute__((address_space(3)))
#ifdef __NVPTX__
#define GROUP  ((int64_t)__nvvm_read_ptx_sreg_ntid_x())
#define LID    ((int64_t)__nvvm_read_ptx_sreg_tid_x())
#define SYNC() __syncthreads()
#else
unsigned long dl_local_size(unsigned dim) __asm__("_Z14get_local_sizej");
unsigned long dl_local_id(unsigned dim) __asm__("_Z12get_local_idj");
__attribute__((convergent)) void
dl_barrier(unsigned flags) __asm__("_Z7barrierj");
#define GROUP  ((int64_t)dl_local_size(0))
#define LID    ((int64_t)dl_local_id(0))
#define SYNC() dl_barrier(3)
#endif
#endif

#endif
