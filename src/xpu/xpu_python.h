/* xpu_python: libraries that lie in Python's environments. */
#ifndef XPU_PYTHON_H
#define XPU_PYTHON_H

#include <stdbool.h>
#include <stddef.h>

/* The nth file, from 0, that fits the pattern in one of these environments: the
 * one that we lie in, those that loaded libraries such as jaxlib's lie in, and
 * the active one (VIRTUAL_ENV).  beside: files beside packages
 * ("scipy.libs/lib*.so"), otherwise those in the environment's lib. */
bool xpu_python_file(bool beside, const char *pattern, int n, char *out,
                     size_t size);
/* The first of them that opens; NULL: none. */
void *xpu_python_open(bool beside, const char *pattern);

#endif
