/* Partitioners that frameworks registered, for the passes to ask. */
#ifndef COMPILE_PARTITION_H
#define COMPILE_PARTITION_H

#include "compile.h"
#include "hlo_sharding.h"

hlo_partitioner compile_partitioner_of(const compile_partitioner *p);

#endif
