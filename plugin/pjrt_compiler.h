/* Opening the compiler, for whoever is not the plugin: the tool. */
#ifndef PJRT_COMPILER_H
#define PJRT_COMPILER_H

#include "compile.h"

/* path: of a libsundog-compiler.so.  An error if it is of another build than
 * the caller, whom the error calls `who`. */
sd_status pjrt_compiler_open_at(const char *path, const char *who,
                                compile_fn *out);

#endif
