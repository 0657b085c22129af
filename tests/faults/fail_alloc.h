/* Memory that runs out when a test says so.  The linker turns every call of
 * the functions below in a test's own objects into a call of ours
 * (-Wl,--wrap=malloc and so on, see meson.build);
 * other people's libraries keep the real ones. */
#ifndef FAIL_ALLOC_H
#define FAIL_ALLOC_H

#include <stdbool.h>

/* From now on count requests, on all threads; the nth fails, and all after it
 * when `on`.  n 0: none does. */
void fail_alloc_arm(long n, bool on);
long fail_alloc_disarm(void); /* how many requests there were */

#endif
