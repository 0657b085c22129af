/* The table that tools/devlib_split.c generates. */
#ifndef DEVLIB_TABLE_H
#define DEVLIB_TABLE_H

#include "devlib.h"

typedef struct { const devlib_function *at; int n; } devlib_table;
extern const devlib_table devlib_tables[DEVLIB_TARGET_COUNT];

#endif
