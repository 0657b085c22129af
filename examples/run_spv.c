/* Runs a dumped .spv of eager x**2 with OpenCL alone, nothing of Sundog.
 *   cc run_spv.c -lOpenCL -o run_spv && ./run_spv FILE.spv KERNEL N GROUPS
 * KERNEL ("wrapped_multiply") and GROUPS stand in the dump's
 * thunk_sequence.txt; N is the number of f32 elements.  Prints the results'
 * sum and exits 0 when every one is right. */
#define CL_TARGET_OPENCL_VERSION 300
#include <CL/cl.h>
#include <stdio.h>
#include <stdlib.h>

static void must(int ok, const char *what)
{
    if (!ok) {
        fprintf(stderr, "run_spv: %s failed\n", what);
        exit(1);
    }
}

int main(int argc, char **argv)
{
    must(argc == 5, "usage: run_spv FILE.spv KERNEL N GROUPS");
    FILE *f = fopen(argv[1], "rb");
    must(f != NULL, "fopen");
    static char code[1 << 20];
    size_t len = fread(code, 1, sizeof code, f);
    size_t n = strtoul(argv[3], NULL, 0), group[3], global;
    fclose(f);

    cl_platform_id platform[8];
    cl_device_id device = NULL;
    cl_uint np = 0;
    must(!clGetPlatformIDs(8, platform, &np), "clGetPlatformIDs");
    for (cl_uint i = 0; i < np && !device; i++) {
        size_t il = 0; /* the first device that takes SPIR-V */
        cl_device_id d;
        if (!clGetDeviceIDs(platform[i], CL_DEVICE_TYPE_ALL, 1, &d, NULL) &&
            !clGetDeviceInfo(d, CL_DEVICE_IL_VERSION, 0, NULL, &il) && il > 1)
            device = d;
    }
    must(device != NULL, "finding a device that takes SPIR-V");

    cl_int e;
    cl_context ctx = clCreateContext(NULL, 1, &device, NULL, NULL, &e);
    must(!e, "clCreateContext");
    cl_command_queue q =
        clCreateCommandQueueWithProperties(ctx, device, NULL, &e);
    must(!e, "clCreateCommandQueueWithProperties");
    cl_program p = clCreateProgramWithIL(ctx, code, len, &e);
    must(!e && !clBuildProgram(p, 1, &device, "", NULL, NULL), "the build");
    cl_kernel k = clCreateKernel(p, argv[2], &e);
    must(!e, "clCreateKernel");

    float *x = malloc(n * sizeof *x), *y = calloc(n, sizeof *y);
    for (size_t i = 0; i < n; i++)
        x[i] = (float)i - 3;
    cl_mem in = clCreateBuffer(ctx, CL_MEM_COPY_HOST_PTR, n * sizeof *x, x, &e);
    cl_mem out = clCreateBuffer(ctx, 0, n * sizeof *x, NULL, &e);
    must(!clSetKernelArg(k, 0, sizeof in, &in) &&
             !clSetKernelArg(k, 1, sizeof out, &out),
         "clSetKernelArg");
    must(!clGetKernelWorkGroupInfo(k, device, CL_KERNEL_COMPILE_WORK_GROUP_SIZE,
                                   sizeof group, group, NULL),
         "group size");
    global = strtoul(argv[4], NULL, 0) * group[0];
    must(!clEnqueueNDRangeKernel(q, k, 1, NULL, &global, group, 0, NULL, NULL),
         "the launch");
    must(!clEnqueueReadBuffer(q, out, CL_TRUE, 0, n * sizeof *y, y, 0, NULL,
                              NULL),
         "the read");

    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        must(y[i] == x[i] * x[i], "a result");
        sum += y[i];
    }
    printf("%s: %zu results right, sum %.1f\n", argv[2], n, sum);
    return 0;
}
