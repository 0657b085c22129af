/* Opening the compiler, for whoever is not the plugin: the tool. */
#ifndef PJRT_COMPILER_H
#define PJRT_COMPILER_H

#include "compile.h"

/* path: of a libsundog-compiler.so; who asks is named where the two are not of
 * one build. */
sd_status pjrt_compiler_open_at(const char *path, const char *who,
                                compile_fn *out);

#endif
