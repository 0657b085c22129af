/* base: element types, their numbers, and shapes. */
#include "base.h"

#include <math.h>
#include <setjmp.h>
#include <stdlib.h>

#include <cmocka.h>

/* Every value of a narrow float is read, written back and found again; and
 * between two neighbours the nearer wins, the even one in the middle. */
static void narrow_floats_round_to_nearest_even(void **state)
{
    static const sd_dtype types[] = {
        SD_F4E2M1FN, SD_F6E2M3FN,   SD_F6E3M2FN,      SD_F8E3M4,
        SD_F8E4M3,   SD_F8E4M3FN,   SD_F8E4M3B11FNUZ, SD_F8E4M3FNUZ,
        SD_F8E5M2,   SD_F8E5M2FNUZ, SD_BF16,          SD_F16};

    (void)state;
    for (size_t k = 0; k < SD_COUNTOF(types); k++) {
        sd_dtype t = types[k];
        uint32_t n = 1u << sd_dtype_table[t].bits, half = n / 2;

        for (uint32_t i = 0; i < n; i++) {
            uint32_t bits = i, back = 0, next = i + 1, mid = 0;
            double v = sd_scalar_to_f64(t, &bits), w, m;

            if (isnan(v))
                continue;
            sd_scalar_of_f64(t, v, &back);
            assert_int_equal(back, i);
            w = sd_scalar_to_f64(t, &next);
            if ((i + 1) % half == 0 || isinf(v) || isinf(w) || isnan(w))
                continue;
            m = (v + w) / 2;
            sd_scalar_of_f64(t, m, &mid);
            assert_int_equal(mid, i & 1 ? next : i);
            mid = 0;
            sd_scalar_of_f64(t, nextafter(m, w), &mid);
            assert_int_equal(mid, next);
            mid = 0;
            sd_scalar_of_f64(t, nextafter(m, v), &mid);
            assert_int_equal(mid, i);
        }
    }
}

static uint32_t bits_of(sd_dtype t, double v)
{
    uint32_t bits = 0;

    sd_scalar_of_f64(t, v, &bits);
    return bits;
}

static void narrow_floats_overflow_as_their_kind_does(void **state)
{
    uint8_t b;
    uint32_t half;

    (void)state;
    assert_int_equal(bits_of(SD_F16, 65520), 0x7c00);
    assert_int_equal(bits_of(SD_F16, 65519), 0x7bff);
    assert_int_equal(bits_of(SD_F8E5M2, -1e30), 0xfc);
    assert_int_equal(bits_of(SD_F8E4M3FN, 464), 0x7e);
    assert_int_equal(bits_of(SD_F8E4M3FN, 465), 0x7f);
    assert_int_equal(bits_of(SD_F8E4M3FN, -INFINITY), 0xff);
    assert_int_equal(bits_of(SD_F8E4M3FNUZ, INFINITY), 0x80);
    assert_int_equal(bits_of(SD_F8E4M3FNUZ, -0.0), 0);
    assert_int_equal(bits_of(SD_F4E2M1FN, 100), 7);
    assert_int_equal(bits_of(SD_F6E2M3FN, 7.5), 31);
    assert_int_equal(bits_of(SD_F6E2M3FN, -INFINITY), 63);
    assert_int_equal(bits_of(SD_F6E3M2FN, 28), 31);
    assert_int_equal(bits_of(SD_F6E3M2FN, 0.0625), 1);
    assert_int_equal(bits_of(SD_F8E8M0FNU, 1), 127);
    assert_int_equal(bits_of(SD_F8E8M0FNU, -1), 255);
    b = 0;
    assert_true(sd_scalar_to_f64(SD_F8E8M0FNU, &b) == ldexp(1, -127));
    assert_int_equal(bits_of(SD_BF16, 1.00390625), 0x3f80);
    half = bits_of(SD_F16, NAN);
    assert_true(isnan(sd_scalar_to_f64(SD_F16, &half)));
}

static void integers_wrap_and_clamp(void **state)
{
    int8_t s4;
    uint8_t u4;
    int64_t s64;
    uint64_t u64;
    int32_t s32;

    (void)state;
    sd_scalar_of_s64(SD_S4, 9, &s4);
    assert_int_equal(s4, -7);
    assert_int_equal(sd_scalar_to_s64(SD_S4, &s4), -7);
    sd_scalar_of_s64(SD_U4, -1, &u4);
    assert_int_equal(u4, 15);
    u4 = 0xf3; /* what lies above the low bits does not count */
    assert_int_equal(sd_scalar_to_s64(SD_U4, &u4), 3);
    sd_scalar_of_f64(SD_S64, 1e30, &s64);
    assert_true(s64 == INT64_MAX);
    sd_scalar_of_f64(SD_S64, -1e30, &s64);
    assert_true(s64 == INT64_MIN);
    sd_scalar_of_f64(SD_U64, 1.8e19, &u64);
    assert_true(u64 == UINT64_C(18000000000000000000));
    sd_scalar_of_f64(SD_S32, -3.9, &s32);
    assert_int_equal(s32, -3);
    sd_scalar_of_f64(SD_S32, NAN, &s32);
    assert_int_equal(s32, 0);
}

static void types_are_found_by_each_of_their_names(void **state)
{
    (void)state;
    for (int i = 0; i < SD_DTYPE_COUNT; i++) {
        const sd_dtype_info *d = &sd_dtype_table[i];
        sd_dtype t;

        assert_true(sd_dtype_of_name(d->name, strlen(d->name), &t));
        assert_int_equal(t, i);
        assert_true(sd_dtype_of_xla(d->xla, &t));
        assert_int_equal(t, i);
        if (d->pjrt) {
            assert_true(sd_dtype_of_pjrt(d->pjrt, &t));
            assert_int_equal(t, i);
        }
    }
    assert_int_equal(sd_dtype_part(SD_C128), SD_F64);
    assert_int_equal(sd_dtype_bytes(SD_S4), 1);
}

static void shapes_print_and_refuse_what_overflows(void **state)
{
    static const int64_t d[] = {2, 3}, big[] = {1 << 30, 1 << 20},
                         zero[] = {INT64_C(1) << 40, 0, INT64_C(1) << 40},
                         negative[] = {-1};
    sd_arena *a = sd_arena_create();
    const sd_shape *s = sd_shape_make(a, SD_F32, 2, d);
    const sd_shape *elem[] = {s, sd_shape_make(a, SD_S32, 0, NULL)};
    const sd_shape *tuple = sd_shape_tuple(a, 2, elem);
    sd_buf b = {0};
    sd_status st;

    (void)state;
    sd_shape_print(&b, tuple, true);
    assert_string_equal(b.at, "(f32[2,3]{1,0}, s32[])");
    sd_buf_finish(&b);
    assert_int_equal(sd_shape_bytes(s), 24);
    assert_int_equal(sd_shape_count(elem[1]), 1);
    assert_false(sd_shape_equal(s, sd_shape_with(a, s, SD_S32)));
    assert_null(sd_shape_check(SD_F32, 2, d));
    assert_non_null(st = sd_shape_check(SD_F32, 2, big));
    sd_status_free(st);
    assert_non_null(st = sd_shape_check(SD_F32, 3, zero));
    sd_status_free(st);
    assert_non_null(st = sd_shape_check(SD_F32, 1, negative));
    sd_status_free(st);
    assert_non_null(st = sd_shape_check(SD_F32, SD_MAX_RANK + 1, d));
    sd_status_free(st);
    sd_arena_destroy(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(narrow_floats_round_to_nearest_even),
        cmocka_unit_test(narrow_floats_overflow_as_their_kind_does),
        cmocka_unit_test(integers_wrap_and_clamp),
        cmocka_unit_test(types_are_found_by_each_of_their_names),
        cmocka_unit_test(shapes_print_and_refuse_what_overflows),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
