/* Attention of which something is broken: plan_verify says what. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "plan_broken.h"

static const char attended[] =
    "HloModule m\n"
    "larger { a = f32[] parameter(0) b = f32[] parameter(1) "
    "ROOT c = f32[] maximum(a, b) }\n"
    "sum { a = f32[] parameter(0) b = f32[] parameter(1) "
    "ROOT c = f32[] add(a, b) }\n"
    "ENTRY e { q = bf16[128,64] parameter(0) k = bf16[128,64] parameter(1) "
    "v = bf16[128,64] parameter(2) low = f32[] constant(-inf) "
    "zero = f32[] constant(0) s = f32[128,128] dot(q, k), "
    "lhs_contracting_dims={1}, rhs_contracting_dims={1} "
    "most = f32[128] reduce(s, low), dimensions={1}, to_apply=larger "
    "mosts = f32[128,128] broadcast(most), dimensions={0} "
    "less = f32[128,128] subtract(s, mosts) "
    "x = f32[128,128] exponential(less) "
    "all = f32[128] reduce(x, zero), dimensions={1}, to_apply=sum "
    "alls = f32[128,128] broadcast(all), dimensions={0} "
    "p = f32[128,128] divide(x, alls) w = bf16[128,128] convert(p) "
    "ROOT r = bf16[128,64] dot(w, v), lhs_contracting_dims={1}, "
    "rhs_contracting_dims={0} }";

static const char of_keys[] =
    "HloModule m\n"
    "score { x = f32[] parameter(0) row = s32[] parameter(1) "
    "key = s32[] parameter(2) ROOT s = f32[] copy(x) }\n"
    "slope { x = f32[] parameter(0) row = s32[] parameter(1) "
    "key = s32[] parameter(2) ds = f32[] parameter(3) "
    "ROOT y = bf16[] convert(ds) }\n"
    "ENTRY e { q = bf16[128,64] parameter(0) k = bf16[128,64] parameter(1) "
    "v = bf16[128,64] parameter(2) o = bf16[128,64] parameter(3) "
    "m = f32[128] parameter(4) r = f32[128] parameter(5) "
    "c = f32[128] parameter(6) "
    "ROOT d = (bf16[128,64], bf16[128,64]) custom-call(q, k, v, o, m, r, c), "
    "custom_call_target=\"sundog.attend-gradient\", "
    "api_version=API_VERSION_TYPED_FFI, called_computations={score, slope}, "
    "backend_config=\"qd,kd,ke,qe,q,q,q->kd,ke\" }";

static void by_mma(plan *p)
{
    p->kernel[0]->attend->engine = PLAN_ENGINE_MMA_BF16;
}

static void a_tile_too_many(plan *p)
{
    p->kernel[0]->tiles++;
}

static void few_rows(plan *p)
{
    p->kernel[0]->attend->blocks = 0;
    p->kernel[0]->tiles = 0;
}

static void q_of_f16(plan *p)
{
    p->kernel[0]->slot[0].dtype = SD_F16;
}

static void a_result_of_f64(plan *p)
{
    p->kernel[0]->slot[3].dtype = SD_F64;
}

static void k_off_its_line(plan *p)
{
    p->kernel[0]->slot[1].align = 8;
}

static void half_a_group(plan *p)
{
    p->kernel[0]->group /= 2;
}

static void keys_of_24(plan *p)
{
    p->kernel[0]->attend->keys = 24;
}

static void little_memory(plan *p)
{
    p->kernel[0]->attend->pairs = 3;
}

static void broken_attention_is_refused(void **state)
{
    static const struct {
        const char *why;
        void (*break_it)(plan *p);
    } broken[] = {
        {"attention by an engine that the device has not, or that is not for "
         "it",
         by_mma},
        {"attention's rows or arrays are miscounted", a_tile_too_many},
        {"attention's rows or arrays are miscounted", few_rows},
        {"attention's operands are not the engine's, or lie badly", q_of_f16},
        {"attention's operands are not the engine's, or lie badly",
         k_off_its_line},
        {"attention's results or its rows' numbers are of other types",
         a_result_of_f64},
        {"attention's blocks fit no group", half_a_group},
        {"attention's blocks fit no group", keys_of_24},
        {"attention's blocks fit no group", little_memory},
    };

    (void)state;
    for (size_t i = 0; i < SD_COUNTOF(broken); i++)
        want_broken(attended, "cuda:sm_90", broken[i].break_it, broken[i].why);
}

static void rows_of_half_a_line(plan *p)
{
    p->kernel[0]->attend->of.extent[HLO_ATTEND_D] = HLO_ATTEND_LEAST_READ / 2;
}

static void wide_sub_groups(plan *p)
{
    p->kernel[0]->subgroup = 32;
}

static void broken_reading_is_refused(void **state)
{
    (void)state;
    want_broken(attended, "cl:pvc", half_a_group,
                "attention's blocks fit no group");
    want_broken(attended, "cl:pvc", keys_of_24,
                "attention's blocks fit no group");
    want_broken(attended, "cl:pvc", rows_of_half_a_line,
                "attention's blocks fit no group");
    want_broken(attended, "cl:pvc", wide_sub_groups,
                "attention's blocks fit no group");
}

static void two_pairs(plan *p)
{
    p->kernel[0]->attend->pairs = 2;
}

static void o_of_f32(plan *p)
{
    p->kernel[0]->slot[3].dtype = SD_F32;
}

static void r_of_bf16(plan *p)
{
    p->kernel[0]->slot[5].dtype = SD_BF16;
}

static void dv_of_f16(plan *p)
{
    p->kernel[0]->slot[8].dtype = SD_F16;
}

static void rows_of_24(plan *p)
{
    p->kernel[0]->attend->rows = 24;
}

static void broken_reading_gradients_are_refused(void **state)
{
    (void)state;
    want_broken(of_keys, "cl:pvc", half_a_group,
                "attention's blocks fit no group");
    want_broken(of_keys, "cl:pvc", rows_of_24,
                "attention's blocks fit no group");
    want_broken(of_keys, "cl:pvc", rows_of_half_a_line,
                "attention's blocks fit no group");
    want_broken(of_keys, "cl:pvc", o_of_f32,
                "attention's operands are not the engine's, or lie badly");
}

/* v is turned by a kernel in front of it. */
static plan_kernel *gathering(plan *p)
{
    int i = 0;

    while (!p->kernel[i]->attend)
        i++;
    return p->kernel[i];
}

static void half_of_it(plan *p)
{
    gathering(p)->group /= 2;
}

static void no_local_memory(plan *p)
{
    gathering(p)->local_bytes = 0;
}

static void blocks_of_24(plan *p)
{
    gathering(p)->attend->keys = 24;
}

static void v_as_it_lies(plan *p)
{
    plan_attend *a = gathering(p)->attend;

    a->of.stride[2][HLO_ATTEND_K] = a->of.extent[HLO_ATTEND_E];
    a->of.stride[2][HLO_ATTEND_E] = 1;
}

static void broken_gathering_is_refused(void **state)
{
    static void (*const broken[])(plan *p) = {half_of_it, no_local_memory,
                                              blocks_of_24, v_as_it_lies};

    (void)state;
    for (size_t i = 0; i < SD_COUNTOF(broken); i++)
        want_broken(attended, "cl:dg2-g10", broken[i],
                    "attention's blocks fit no group");
}

static void broken_gradients_are_refused(void **state)
{
    (void)state;
    want_broken(of_keys, "cuda:sm_90", two_pairs,
                "attention's blocks fit no group");
    want_broken(of_keys, "cuda:sm_90", o_of_f32,
                "attention's operands are not the engine's, or lie badly");
    want_broken(of_keys, "cuda:sm_90", r_of_bf16,
                "attention's results or its rows' numbers are of other types");
    want_broken(of_keys, "cuda:sm_90", dv_of_f16,
                "attention's results or its rows' numbers are of other types");
    want_broken(of_keys, "cuda:sm_90", rows_of_24,
                "attention's blocks fit no group");
    want_broken(of_keys, "cuda:sm_90", few_rows,
                "attention's rows or arrays are miscounted");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(broken_reading_is_refused),
        cmocka_unit_test(broken_reading_gradients_are_refused),
        cmocka_unit_test(broken_gathering_is_refused),
        cmocka_unit_test(broken_gradients_are_refused),
        cmocka_unit_test(broken_attention_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
