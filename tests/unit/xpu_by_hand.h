/* Programs made by hand on kernels that clang built, and what the runtime's
 * tests say to them.  The caller sets the device's name and the object. */
#ifndef XPU_BY_HAND_H
#define XPU_BY_HAND_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "xpu.h"

extern const char *device_name; /* host, cl or cuda */
extern sd_buf object;           /* of xpu_kernels.c for that device */

void ok(sd_status st);
void fails(sd_status st, sd_code code);
bool is_host(void);
bool is_there(void); /* or the test is skipped */
xpu_client *open_client(const char *threads, const char *count);

/* n parameters and outputs of f32[elements]; buffers are parameters, then
 * outputs; the builder adds kernels, constants and steps. */
thunk_program *program(const device_desc *d, int nparam, int noutput,
                       int64_t elements);
int constant(thunk_program *p, const void *data, size_t bytes);
int temp(thunk_program *p, uint64_t bytes);
int kernel(thunk_program *p, const char *symbol, int64_t elements,
           double flops);
int number(thunk_program *p, int64_t n); /* {n}: each kernel's last slot */
thunk call(thunk_program *p, int k, int a, int b, int n);
void steps(thunk_program *p, int n, const thunk *t);

xpu_program *load(xpu_device *d, thunk_program *p); /* takes p */
thunk_program *one_kernel(const device_desc *d, const char *symbol, int64_t n,
                          double flops); /* out = f(in) */
xpu_program *simple(xpu_device *d, const char *symbol, int64_t n,
                    double flops); /* the same, loaded */
xpu_program *adder(xpu_device *d, int64_t n); /* in place of parameter 0 */

xpu_buffer *buffer(xpu_device *d, int64_t n, float first, float step);
float *fetch(xpu_buffer *b); /* to free */
sd_status run1(xpu_program *x, xpu_buffer *a, xpu_buffer **out,
               xpu_event **done);
sd_status run2(xpu_program *x, xpu_buffer *a, xpu_buffer *b, const bool *keep,
               xpu_buffer **out);

#endif
