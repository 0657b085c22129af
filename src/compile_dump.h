/* The files that XLA_FLAGS=--xla_dump_to=D and its kin ask for.  Names are
 * D/module_0001.jit_f.KIND; numbers count from 0000 and go on where the folder's
 * files end, so that two clients (JAX's own CPU one reads the same flags) and
 * two runs never write over one another. */
#ifndef COMPILE_DUMP_H
#define COMPILE_DUMP_H

#include <regex.h>

#include "hlo.h"
#include "plan.h"

typedef struct {
    bool on, has_pass_re, failed;
    char *prefix; /* "D/module_0001.jit_f" */
    regex_t pass_re;
    int npass;
} compile_dump;

/* Off when no folder is asked for; a folder that cannot be written is a
 * warning, never an error of the compile. */
void compile_dump_open(compile_dump *d, const sd_options *o, const char *name);
void compile_dump_close(compile_dump *d);
void compile_dump_bytes(compile_dump *d, const char *kind, const void *p,
                        size_t n);
void compile_dump_module(compile_dump *d, const char *kind,
                         const hlo_module *m);
void compile_dump_pass(compile_dump *d, const char *pass, const hlo_module *m);
void compile_dump_plan(compile_dump *d, const plan *p);
void compile_dump_thunks(compile_dump *d, const thunk_program *p);

#endif
