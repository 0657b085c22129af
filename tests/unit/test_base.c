/* base: memory, containers, bytes, errors, options, devices by name. */
#include "base.h"
#include "device_desc.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

static void arena_is_zeroed_aligned_and_apart(void **state)
{
    sd_arena *a = sd_arena_create();
    uint8_t *last = NULL;
    size_t last_n = 0;

    (void)state;
    for (size_t n = 0; n < 70000; n = n * 3 / 2 + 1) {
        uint8_t *p = sd_arena_alloc(a, n);

        assert_int_equal((uintptr_t)p % 16, 0);
        for (size_t i = 0; i < n; i++)
            assert_int_equal(p[i], 0);
        memset(p, 0xff, n);
        if (last)
            assert_true(p >= last + last_n || p + n <= last);
        last = p;
        last_n = n;
    }
    assert_null(sd_arena_try(a, SIZE_MAX - 3));
    assert_null(sd_arena_try(a, SIZE_MAX / 2));
    assert_string_equal(sd_arena_fmt(a, "%0*d", 300, 7) + 299, "7");
    sd_arena_destroy(a);
    sd_arena_destroy(NULL);
}

static void vector_and_map_keep_what_they_are_given(void **state)
{
    sd_arena *a = sd_arena_create();
    sd_map *m = sd_map_create(a);
    sd_vec(int) v = {0};

    (void)state;
    for (int i = 0; i < 5000; i++) {
        *sd_push(a, &v) = 3 * i;
        sd_map_set(m, (uint64_t)i * 64, (void *)(uintptr_t)(i + 1));
    }
    sd_map_set(m, 7, NULL);
    for (int i = 0; i < v.n; i++) {
        assert_int_equal(v.at[i], 3 * i);
        assert_int_equal((uintptr_t)sd_map_get(m, (uint64_t)i * 64), i + 1);
    }
    assert_true(sd_map_has(m, 0));
    assert_true(sd_map_has(m, 7));
    assert_null(sd_map_get(m, 7));
    assert_false(sd_map_has(m, 8));
    sd_map_set(m, 64, NULL);
    assert_null(sd_map_get(m, 64));
    sd_arena_destroy(a);
}

static void errors_carry_code_place_and_notes(void **state)
{
    sd_status st = sd_error(SD_NOT_FOUND, "no %s", "x"), copy, oom;

    (void)state;
    st = sd_note(st, "pass %d", 2);
    copy = sd_status_copy(st);
    assert_string_equal(st->message, "pass 2: no x");
    assert_int_equal(copy->code, SD_NOT_FOUND);
    assert_non_null(strstr(copy->where, "test_base.c:"));
    sd_status_free(st);
    assert_string_equal(copy->message, "pass 2: no x");
    sd_status_free(copy);
    oom = sd_no_memory(5);
    assert_int_equal(sd_note(oom, "note")->code, SD_EXHAUSTED);
    assert_ptr_equal(sd_status_copy(oom), oom);
    sd_status_free(oom);
    assert_null(sd_note(NULL, "nothing"));
    assert_null(sd_status_copy(NULL));
    sd_status_free(NULL);
}

static void says(sd_status st, const char *text)
{
    assert_non_null(st);
    assert_string_equal(st->message, text);
    sd_status_free(st);
}

static void buffer_lists_numbers(void **state)
{
    const int64_t v[] = {1, -2, INT64_MAX};
    sd_buf b = {0};

    (void)state;
    sd_buf_ints(&b, v, 0, ",");
    assert_int_equal(b.len, 0);
    sd_buf_ints(&b, v, 3, ", ");
    sd_buf_ints(&b, v, 1, ", ");
    sd_buf_u8(&b, 0);
    assert_string_equal(b.at, "1, -2, 92233720368547758071");
    sd_buf_finish(&b);
}

/* In an arena nothing of it is malloc's: the leak checker would see it. */
static void buffer_grows_in_an_arena(void **state)
{
    sd_arena *a = sd_arena_create();
    sd_buf b = {.arena = a}, other = {.arena = a};
    const char *was, *empty = sd_buf_take(&b);
    char *text;

    (void)state;
    assert_string_equal(empty, "");
    for (int i = 0; i < 3000; i++)
        sd_buf_fmt(&b, "%d ", i);
    sd_buf_str(&other, "between");
    sd_buf_fmt(&b, "%2000d", 1);
    text = sd_buf_take(&b);
    assert_int_equal(strlen(text), 13890 + 2000);
    assert_null(b.at);
    assert_string_equal(other.at, "between");
    sd_buf_str(&b, "given back");
    was = b.at;
    sd_buf_finish(&b);
    for (int i = 0; i < 64; i++)
        assert_int_equal(was[i], 0); /* what an arena hands out is zero */
    assert_ptr_equal(sd_arena_alloc(a, 1), was);
    sd_arena_destroy(a);
}

static void cursor_reads_and_sticks_at_the_first_error(void **state)
{
    sd_buf b = {0};
    sd_cursor c;
    sd_status st;

    (void)state;
    sd_buf_u8(&b, 0xab);
    sd_buf_u32(&b, 0x01020304);
    sd_buf_u64(&b, UINT64_MAX - 1);
    sd_buf_leb(&b, UINT64_MAX);
    sd_buf_leb(&b, 300);
    c = sd_cursor_of((sd_bytes){(uint8_t *)b.at, b.len});
    assert_int_equal(sd_read_u8(&c), 0xab);
    assert_int_equal(sd_read_u32(&c), 0x01020304);
    assert_true(sd_read_u64(&c) == UINT64_MAX - 1);
    assert_true(sd_read_leb(&c) == UINT64_MAX);
    assert_int_equal(sd_read_leb(&c), 300);
    assert_int_equal(sd_cursor_left(&c), 0);
    assert_null(sd_cursor_status(&c, "all"));
    assert_int_equal(sd_read_u32(&c), 0);
    assert_int_equal(sd_read_u8(&c), 0);
    st = sd_cursor_status(&c, "rest");
    assert_non_null(strstr(st->message, "rest"));
    assert_non_null(strstr(st->message, "offset 25"));
    sd_status_free(st);
    /* Eleven bytes of a number, or more than 64 bits, are none. */
    memset(b.at, 0x80, b.len);
    c = sd_cursor_of((sd_bytes){(uint8_t *)b.at, b.len});
    assert_int_equal(sd_read_leb(&c), 0);
    says(sd_cursor_status(&c, "tag"),
         "tag: expected a varint of at most 64 bits at offset 10");
    c = sd_cursor_of((sd_bytes){(uint8_t *)b.at, 4});
    assert_int_equal(sd_read_bytes(&c, 5).len, 0);
    assert_non_null(c.bad);
    c = sd_cursor_of((sd_bytes){NULL, 0});
    assert_int_equal(sd_read_u8(&c), 0);
    says(sd_cursor_status(&c, "none"), "none: expected a byte at offset 0");
    sd_cursor_fail(&c, "nothing"); /* the first stays */
    says(sd_cursor_status(&c, "none"), "none: expected a byte at offset 0");
    sd_buf_finish(&b);
}

static void builder_formats_what_is_longer_than_its_room(void **state)
{
    sd_buf b = {0};

    (void)state;
    for (int i = 0; i < 100; i++)
        sd_buf_fmt(&b, "%*d,", i, i);
    assert_int_equal(b.len, strlen(b.at));
    assert_string_equal(b.at + b.len - 4, " 99,");
    sd_buf_finish(&b);
    assert_null(b.at);
}

static void files_come_back_as_written(void **state)
{
    char path[] = "/tmp/sundog-test-XXXXXX";
    int fd = mkstemp(path);
    sd_buf text = {0}, back = {0};
    sd_status st;

    (void)state;
    assert_true(fd >= 0);
    close(fd);
    for (uint32_t i = 0; i < 50000; i++)
        sd_buf_u32(&text, i * 2654435761u);
    assert_null(sd_file_write(path, text.at, text.len));
    assert_null(sd_file_read(path, &back));
    assert_int_equal(back.len, text.len);
    assert_memory_equal(back.at, text.at, text.len);
    unlink(path);
    sd_buf_finish(&back);
    st = sd_file_read(path, &back);
    assert_int_equal(st->code, SD_NOT_FOUND);
    sd_status_free(st);
    sd_buf_finish(&text);
}

static void files_that_cannot_be_had_are_told_of(void **state)
{
    static const char text[100000];
    sd_buf none;

    (void)state;
    says(sd_file_write("/dev/full", text, sizeof text),
         "writing /dev/full: No space left on device");
    says(sd_file_read("/", &none), "reading /: Is a directory");
    says(sd_file_write("/nowhere/file", text, 1),
         "cannot create /nowhere/file: No such file or directory");
}

static void options_come_by_either_name(void **state)
{
    sd_arena *a = sd_arena_create();
    sd_options o = {0};
    uint64_t key = sd_options_key(&o);

    (void)state;
    assert_true(sd_options_set(a, &o, "--xla_dump_to", 13, "/tmp/x.", 6));
    assert_string_equal(sd_opt_str(&o, SD_OPT_DUMP_TO), "/tmp/x");
    assert_true(sd_options_key(&o) == key); /* changes no code */
    assert_true(sd_options_set(a, &o, "SUNDOG_LIBRARIES", 16, "0", 1));
    assert_false(sd_opt_bool(&o, SD_OPT_LIBRARIES));
    assert_true(sd_options_key(&o) != key);
    assert_false(sd_options_set(a, &o, "xla_no_such", 11, "1", 1));
    assert_int_equal(sd_opt_int(&o, SD_OPT_CL_SPLIT), -1);
    assert_null(sd_opt_str(&o, SD_OPT_CPU_LEVEL));
    sd_arena_destroy(a);
}

/* XLA's default is to allow it, so what jaxlib hands over does not tell. */
static void excess_precision_is_read_from_xla_flags_as_written(void **state)
{
    static const struct {
        const char *flags;
        bool allowed;
    } c[] = {{"", false},
             {"--xla_allow_excess_precision=true", true},
             {"--xla_allow_excess_precision", true},
             {"-xla_allow_excess_precision=1 --xla_x=2", true},
             {" --xla_x  '--xla_allow_excess_precision=True'\n", true},
             {"--xla_allow_excess_precision=false", false},
             {"--xla_allow_excess_precision=true "
              "--xla_allow_excess_precision=0",
              false},
             {"--xla_allow_excess_precision=", false},
             {"--no_xla_allow_excess_precision=true", false},
             {"xla_allow_excess_precision=true", false},
             {"--xla_allow_excess_precision_more=true", false}};

    (void)state;
    unsetenv("SUNDOG_EXCESS_PRECISION");
    for (size_t i = 0; i < SD_COUNTOF(c); i++) {
        sd_options o;

        setenv("XLA_FLAGS", c[i].flags, 1);
        sd_options_from_env(&o);
        if (sd_opt_bool(&o, SD_OPT_EXCESS) != c[i].allowed)
            fail_msg("XLA_FLAGS=%s", c[i].flags);
    }
    setenv("SUNDOG_EXCESS_PRECISION", "0", 1);
    setenv("XLA_FLAGS", c[1].flags, 1);
    sd_options o;
    sd_options_from_env(&o);
    assert_false(sd_opt_bool(&o, SD_OPT_EXCESS));
    unsetenv("SUNDOG_EXCESS_PRECISION");
    unsetenv("XLA_FLAGS");
}

static void settings_of_the_wrong_kind_are_refused(void **state)
{
    static const struct {
        sd_option id;
        const char *value, *says;
    } c[] = {
        {SD_OPT_THREADS, "many",
         "SUNDOG_THREADS=many: a whole number from 0 to 1024 is wanted (host "
         "threads; 0: as many as affinity and quota give)"},
        {SD_OPT_THREADS, "-1", "SUNDOG_THREADS=-1: a whole number from 0"},
        {SD_OPT_THREADS, "2 ", "SUNDOG_THREADS=2 : a whole number"},
        {SD_OPT_COMPILE_MEMORY, "99999999999999999999", "a whole number"},
        {SD_OPT_LOG, "war",
         "SUNDOG_LOG=war: one of error, warn, info, debug is wanted (what is "
         "said on stderr: this and worse)"},
        {SD_OPT_LIBRARIES, "maybe",
         "SUNDOG_LIBRARIES=maybe: 0 or 1 is wanted (use vendor libraries "
         "(oneDNN, LAPACK, cuSOLVER) where they fit)"},
    };
    sd_options good = {.value = {[SD_OPT_THREADS] = "0x10",
                                 [SD_OPT_LOG] = "debug",
                                 [SD_OPT_LIBRARIES] = "Off"}};

    (void)state;
    for (size_t i = 0; i < SD_COUNTOF(c); i++) {
        sd_options o = {0};
        sd_status st;

        o.value[c[i].id] = c[i].value;
        st = sd_options_check(&o);
        assert_non_null(st);
        assert_non_null(strstr(st->message, c[i].says));
        sd_status_free(st);
    }
    assert_null(sd_options_check(&good));
    assert_int_equal(sd_opt_int(&good, SD_OPT_THREADS), 16);
    assert_false(sd_opt_bool(&good, SD_OPT_LIBRARIES));
}

static void described_devices_are_found_by_name(void **state)
{
    device_desc d;

    (void)state;
    assert_true(device_desc_count() >= 5);
    for (int i = 0; i < device_desc_count(); i++) {
        assert_true(device_desc_of_name(device_desc_at(i)->name, &d));
        assert_int_equal(d.kind, device_desc_at(i)->kind);
    }
    assert_false(device_desc_of_name("host:v5", &d));
    assert_null(device_desc_at(device_desc_count()));
}

static void drivers_names_tell_described_devices(void **state)
{
    (void)state;
    assert_string_equal(
        device_name_of_product("Intel(R) Arc(TM) A770 Graphics"), "cl:dg2-g10");
    assert_string_equal(
        device_name_of_product("Intel(R) Arc(TM) A580 Graphics"), "cl:dg2-g10");
    assert_string_equal(
        device_name_of_product("Intel(R) Data Center GPU Max 1100"), "cl:pvc");
    assert_null(device_name_of_product("Intel(R) Arc(TM) B580 Graphics"));
    assert_null(device_name_of_product("Intel(R) Data Center GPU"));
    assert_null(device_name_of_product(""));
}

static bool has_ones_in_mask(const char *name, const char *driver)
{
    device_desc d;

    assert_true(device_desc_of_name(name, &d));
    snprintf(d.driver, sizeof d.driver, "%s", driver);
    return device_has_quirk(&d, DEVICE_QUIRK_ONES_IN_MASK);
}

static void quirks_are_those_drivers_alone(void **state)
{
    (void)state;
    assert_true(has_ones_in_mask("cl:cpu", ""));
    assert_true(has_ones_in_mask("cl:cpu", "OpenCL 2026.21.7.0.1_1, AMD EPYC"));
    assert_true(has_ones_in_mask("cl:cpu", "OpenCL 2024.18, x"));
    assert_false(has_ones_in_mask("cl:cpu", "OpenCL 6.0, cpu-znver4"));
    assert_false(has_ones_in_mask("cl:cpu", "OpenCL 3.1+debian, cpu"));
    assert_false(has_ones_in_mask("cl:cpu", "OpenCL fake, Fake device"));
    assert_false(has_ones_in_mask("cl:pvc", ""));
    assert_false(has_ones_in_mask("cl:dg2-g10", "OpenCL 2026.21, Arc"));
    assert_false(has_ones_in_mask("host:v4", ""));
}

static bool is_driver(const char *driver, const char *devices, int first,
                      int last)
{
    device_desc d;

    assert_true(device_desc_of_name("cuda:sm_90", &d));
    snprintf(d.driver, sizeof d.driver, "%s", driver);
    return device_has_driver(&d, devices, first, last);
}

static void drivers_are_told_by_name_and_version(void **state)
{
    (void)state;
    assert_true(is_driver("CUDA 12.8, NVIDIA H200", "cuda:*", 12000, 12008));
    assert_false(is_driver("CUDA 12.8, NVIDIA H200", "cuda:*", 12000, 12007));
    assert_false(is_driver("CUDA 13.0, NVIDIA H200", "cuda:*", 12000, 12999));
    assert_true(
        is_driver("CUDA 13.0, NVIDIA H200", "cuda:sm_90", 13000, 13000));
    assert_false(is_driver("CUDA 13.0, NVIDIA H200", "cuda:sm_9", 0, 99999));
    assert_false(is_driver("CUDA 13.0, NVIDIA H200", "cl:*", 0, 99999));
    assert_true(is_driver("OpenCL 24.35.30872, Arc", "cuda:*", 24035, 24035));
    assert_false(is_driver("CUDA fake", "cuda:*", 0, 99999));
    assert_true(is_driver("", "cuda:*", 1, 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arena_is_zeroed_aligned_and_apart),
        cmocka_unit_test(vector_and_map_keep_what_they_are_given),
        cmocka_unit_test(errors_carry_code_place_and_notes),
        cmocka_unit_test(buffer_lists_numbers),
        cmocka_unit_test(buffer_grows_in_an_arena),
        cmocka_unit_test(cursor_reads_and_sticks_at_the_first_error),
        cmocka_unit_test(builder_formats_what_is_longer_than_its_room),
        cmocka_unit_test(files_come_back_as_written),
        cmocka_unit_test(files_that_cannot_be_had_are_told_of),
        cmocka_unit_test(options_come_by_either_name),
        cmocka_unit_test(excess_precision_is_read_from_xla_flags_as_written),
        cmocka_unit_test(settings_of_the_wrong_kind_are_refused),
        cmocka_unit_test(described_devices_are_found_by_name),
        cmocka_unit_test(drivers_names_tell_described_devices),
        cmocka_unit_test(quirks_are_those_drivers_alone),
        cmocka_unit_test(drivers_are_told_by_name_and_version),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
