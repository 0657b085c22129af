/* The tables that tools/devlib_split.c generates, one for each target. */
#ifndef DEVLIB_TABLE_H
#define DEVLIB_TABLE_H

#include "devlib.h"

typedef struct { const devlib_function *at; int n; } devlib_table;
#define X(name) extern const devlib_table devlib_##name;
DEVLIB_TARGETS(X)
#undef X

#endif
