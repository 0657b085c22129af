/* Programs as StableHLO text, of the tool and the tests: it shows what was read,
 * all of it. */
#ifndef MLIR_WRITE_H
#define MLIR_WRITE_H

#include "base.h"

/* program: MLIR, bytecode or text. */
sd_status mlir_write(sd_bytes program, sd_buf *out);

#endif
