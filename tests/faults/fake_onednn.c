/* A libdnnl.so.2 or .3 (FAKE_VERSION) for tests: it computes nothing, counts
 * its calls and objects, and a call fails on demand.  No two of its layouts are
 * equal, so that a call of ours takes every road there is: operands reordered,
 * results reordered back, scratch. */
#include "fake_calls.h"
#include "xpu_onednn.h"

#define API __attribute__((visibility("default")))

API long fake_dnnl_calls(void);
API long fake_dnnl_live(void);
API void fake_dnnl_fail(long call, int error); /* counts begin anew */

long fake_dnnl_calls(void)
{
    return ncall;
}

long fake_dnnl_live(void)
{
    return nlive;
}

void fake_dnnl_fail(long call, int error)
{
    fail_at(call, error);
}

API void omp_set_num_threads(int n);

void omp_set_num_threads(int n)
{
    (void)n;
}

/* ---- what each function of xpu_onednn.h does ---- */

#define DO_engine_create                      make(e)
#define DO_engine_destroy                     drop(e)
#define DO_stream_create                      make(s)
#define DO_stream_destroy                     drop(s)
#define DO_stream_wait                        answer()
#define DO_memory_desc_equal                  0
#define DO_memory_create                      make(m)
#define DO_memory_set_data_handle             answer()
#define DO_memory_destroy                     drop(m)
#define DO_post_ops_create                    make(p)
#define DO_post_ops_destroy                   drop(p)
#define DO_primitive_attr_create              make(a)
#define DO_primitive_attr_destroy             drop(a)
#define DO_primitive_attr_set_post_ops        answer()
#define DO_primitive_attr_set_scratchpad_mode answer()
#define DO_primitive_desc_destroy             drop(p)
#define DO_primitive_create                   make(p)
#define DO_primitive_destroy                  drop(p)
#define DO_primitive_execute                  answer()
#define DO_reorder_primitive_desc_create      make(p)

/* Version 2 alone */
#define DO_memory_desc_init_by_strides                    answer()
#define DO_memory_desc_init_by_tag                        answer()
#define DO_post_ops_append_sum                            answer()
#define DO_post_ops_append_eltwise                        answer()
#define DO_matmul_desc_init                               answer()
#define DO_dilated_convolution_forward_desc_init          answer()
#define DO_dilated_convolution_backward_data_desc_init    answer()
#define DO_dilated_convolution_backward_weights_desc_init answer()
#define DO_primitive_desc_create                          make(p)
/* Version 3 alone */
#define DO_memory_desc_create_with_strides                    make((void **)d)
#define DO_memory_desc_create_with_tag                        make((void **)d)
#define DO_memory_desc_destroy                                drop(d)
#define DO_matmul_primitive_desc_create                       make(p)
#define DO_convolution_forward_primitive_desc_create          make(p)
#define DO_convolution_backward_data_primitive_desc_create    make(p)
#define DO_convolution_backward_weights_primitive_desc_create make(p)

#pragma GCC diagnostic ignored "-Wunused-parameter"
#define X(name, params) \
    API int dnnl_##name params; \
    int dnnl_##name params \
    { \
        return DO_##name; \
    }
DNNL_FUNCTIONS(X)
#if FAKE_VERSION == 2
DNNL2_FUNCTIONS(X)
#else
DNNL3_FUNCTIONS(X)
#endif
#undef X

API const onednn_version *dnnl_version(void);
const onednn_version *dnnl_version(void)
{
    static const onednn_version is = {9, 8, 7, "", DNNL_RUNTIME_OMP, 0};

    return &is;
}

API int dnnl_get_effective_cpu_isa(void);
int dnnl_get_effective_cpu_isa(void)
{
    return 0x27; /* AVX-512 without VNNI */
}

API size_t dnnl_memory_desc_get_size(const onednn_md *d);
size_t dnnl_memory_desc_get_size(const onednn_md *d)
{
    return 64;
}

API const onednn_md *dnnl_primitive_desc_query_md(void *p, int what, int index);
const onednn_md *dnnl_primitive_desc_query_md(void *p, int what, int index)
{
    return (const onednn_md *)"a layout";
}
