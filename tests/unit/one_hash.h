#ifndef ONE_HASH_H
#define ONE_HASH_H

#include <stdbool.h>

extern bool one_hash; /* true from the start */

#endif
