/* What the files of the OpenCL library for tests share: what FAKE_CL says, the
 * objects that callers hold, and the commands of queues. */
#ifndef FAKE_CL_H
#define FAKE_CL_H

#define CL_TARGET_OPENCL_VERSION 300
#define CL_USE_DEPRECATED_OPENCL_1_1_APIS
#include <CL/cl.h>
#include <CL/cl_ext.h>
#include <CL/cl_icd.h>

#include <stdatomic.h>
#include <stdint.h>

#include "fake.h"

/* The words of FAKE_CL. */
struct fake_cl_words {
    long fail, lose, crash, platforms, devices, tiles, exec, lag;
    int error;
    size_t memory;
    bool il, usm, gpu, unified, any_kernel, garbage;
};
extern struct fake_cl_words fake_cl_is;
extern _Atomic long fake_cl_ncall, fake_cl_nlive, fake_cl_nrun, fake_cl_nfinish;

/* Objects begin with the loader's table, as it demands. */
extern const cl_icd_dispatch fake_table;
struct _cl_platform_id {
    const cl_icd_dispatch *table;
};
struct _cl_device_id {
    const cl_icd_dispatch *table;
    bool is_sub;
};
struct _cl_context {
    const cl_icd_dispatch *table;
};
struct _cl_command_queue {
    const cl_icd_dispatch *table;
    fake_worker worker;
    cl_int error; /* of a command since the last marker */
};
struct _cl_event {
    const cl_icd_dispatch *table;
    int refs;
    cl_int status;
    void(CL_CALLBACK *fn)(cl_event, cl_int, void *); /* one is enough */
    void *ctx;
};
struct _cl_program {
    const cl_icd_dispatch *table;
    bool is_built, is_wrong;
    pthread_t maker;
};
struct _cl_kernel {
    const cl_icd_dispatch *table;
    fake_kernel *fn;
    void *arg[MOST_ARGS];
    char number[MOST_ARGS][16]; /* by value */
};

typedef struct {
    fake_command is;
    cl_event event, wait; /* references; may be NULL */
    bool marks;
} command;

/* Each call that may fail asks. */
cl_int fake_cl_trouble(void);
/* Objects: made of zeros, counted while they live. */
void *fake_cl_make(size_t size, cl_int *err);
cl_int fake_cl_drop(void *p);
/* n bytes as an answer of the kind that clGet...Info gives. */
cl_int fake_cl_answer(const void *p, size_t n, size_t room, void *to,
                      size_t *size);

/* What is copied; *event where asked for is the caller's. */
cl_int fake_cl_put(cl_command_queue q, const command *what, cl_event wait,
                   cl_event *event);
cl_int fake_cl_copy_usm(cl_command_queue q, cl_bool blocking, void *to,
                        const void *from, size_t bytes, cl_uint n,
                        const cl_event *wait, cl_event *event);

#endif
