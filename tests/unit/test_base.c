/* base: memory, containers, bytes, element types, shapes, options, threads. */
#include "base.h"
#include "device_desc.h"

#include <math.h>
#include <sched.h>
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
         "(oneDNN, LAPACK) where they fit)"},
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

typedef struct {
    int *worker;
    int nworker;
    sd_pool *pool;
    int nested;
} job;

static void note_worker(void *ctx, int64_t i, int w)
{
    job *j = ctx;

    assert_true(w >= 0 && w < j->nworker);
    j->worker[i]++;
}

static void run_inside(void *ctx, int64_t i, int w)
{
    job *j = ctx, inner = {.worker = (int[7]){0}, .nworker = j->nworker};

    sd_pool_run(j->pool, 7, note_worker, &inner);
    for (int k = 0; k < 7; k++)
        assert_int_equal(inner.worker[k], 1);
    note_worker(ctx, i, w);
}

static void pool_runs_each_item_once(void **state)
{
    int ran[1000];

    (void)state;
    for (int threads = 1; threads <= 5; threads += 2) {
        sd_pool *p;
        job j = {.worker = ran};

        assert_null(sd_pool_create(threads, &p));
        assert_int_equal(sd_pool_size(p), threads);
        j.nworker = threads;
        j.pool = p;
        for (int64_t n = 0; n <= 1000; n = n * 2 + 1) {
            memset(ran, 0, sizeof ran);
            sd_pool_run(p, n, n % 3 ? note_worker : run_inside, &j);
            for (int64_t i = 0; i < 1000; i++)
                assert_int_equal(ran[i], i < n);
            usleep(n % 2 ? 100 : 0); /* asleep or still awake */
        }
        sd_pool_destroy(p);
    }
    sd_pool_destroy(NULL);
    assert_true(sd_cpu_count() >= 1);
}

typedef struct {
    cpu_set_t all;
    bool widen; /* the worker may run anywhere from now on */
    _Atomic bool came;
    int cpu, nallowed;
} place;

/* Item 0 is the caller's, who waits for the worker to take item 1. */
static void note_place(void *ctx, int64_t i, int worker)
{
    place *p = ctx;
    cpu_set_t now;

    (void)worker;
    for (uint64_t end = sd_now_ns() + 10000000000u; !i && !p->came;)
        assert_true(sd_now_ns() < end);
    if (!i)
        return;
    if (p->widen)
        (void)sched_setaffinity(0, sizeof p->all, &p->all);
    p->cpu = sched_getcpu();
    CPU_ZERO(&now);
    (void)sched_getaffinity(0, sizeof now, &now);
    p->nallowed = CPU_COUNT(&now);
    p->came = true;
}

/* Of the runs before which the worker fell asleep where the caller is. */
static void pool_wakes_apart_from_its_caller(void **state)
{
    place p = {.widen = true};
    cpu_set_t one;
    sd_pool *pool;
    int here = 0, was = -1, met = 0, apart = 0;

    (void)state;
    assert_int_equal(sched_getaffinity(0, sizeof p.all, &p.all), 0);
    if (CPU_COUNT(&p.all) < 2)
        skip();
    while (!CPU_ISSET((size_t)here, &p.all))
        here++;
    CPU_ZERO(&one);
    CPU_SET((size_t)here, &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    assert_null(sd_pool_create(2, &pool));
    for (int k = 0; k < 100; k++) {
        p.came = false;
        sd_pool_run(pool, 2, note_place, &p);
        met += was == here;
        apart += was == here && p.cpu != here;
        was = p.cpu;
        assert_int_equal(p.nallowed, CPU_COUNT(&p.all));
        p.widen = false;
        usleep(200); /* it falls asleep */
    }
    assert_true(apart * 2 >= met); /* the kernel may move it afterwards */
    sd_pool_destroy(pool);
    assert_int_equal(sched_setaffinity(0, sizeof p.all, &p.all), 0);
}

static int ndestroyed;

static void count_destroyed(void *thing)
{
    ndestroyed += *(int *)thing;
}

static void shelf_gives_each_thing_to_one(void **state)
{
    sd_shelf *s = sd_shelf_create();
    int one = 1;
    const char *kind = "kind", *other = "other";

    (void)state;
    ndestroyed = 0;
    assert_null(sd_shelf_take(NULL, kind, 1));
    sd_shelf_put(NULL, kind, 1, &one, count_destroyed);
    assert_int_equal(ndestroyed, 1);
    assert_null(sd_shelf_take(s, kind, 1));
    sd_shelf_put(s, kind, 1, &one, count_destroyed);
    assert_null(sd_shelf_take(s, kind, 2));
    assert_null(sd_shelf_take(s, other, 1));
    assert_ptr_equal(sd_shelf_take(s, kind, 1), &one);
    assert_null(sd_shelf_take(s, kind, 1));
    for (int i = 0; i < 100; i++) /* more than there is room for */
        sd_shelf_put(s, kind, i, &one, count_destroyed);
    assert_in_range(ndestroyed, 2, 100);
    sd_shelf_destroy(s);
    assert_int_equal(ndestroyed, 101);
    sd_shelf_destroy(NULL);
}

static void put_file(const char *root, const char *path, const char *text)
{
    char cmd[512];

    snprintf(cmd, sizeof cmd, "mkdir -p $(dirname %s%s) && printf '%s' > %s%s",
             root, path, text, root, path);
    assert_int_equal(system(cmd), 0);
}

/* Two CPUs at most by affinity, fewer by quota: the group's own or a
 * parent's, in both versions of cgroups. */
static void cpus_follow_affinity_and_quota(void **state)
{
    static const struct {
        const char *group, *file, *text;
        int most;
    } cases[] = {
        {"0::/a/b\\n", "/sys/fs/cgroup/a/b/cpu.max", "50000 100000\\n", 1},
        {"0::/a/b\\n", "/sys/fs/cgroup/a/cpu.max", "100000 100000\\n", 1},
        {"0::/\\n", "/sys/fs/cgroup/cpu.max", "max 100000\\n", 1 << 20},
        {"0::/\\n", "/sys/fs/cgroup/cpu.max", "150000 100000\\n", 2},
        {"3:cpu,cpuacct:/x\\n", "/sys/fs/cgroup/cpu/x/cpu.cfs_quota_us",
         "20000\\n", 1},
    };
    char root[] = "/tmp/sundog-cpus-XXXXXX", cmd[64];
    cpu_set_t all, one;
    int many;

    (void)state;
    assert_non_null(mkdtemp(root));
    many = sd_cpu_count_at(root); /* no quota there: affinity alone */
    for (size_t i = 0; i < SD_COUNTOF(cases); i++) {
        put_file(root, "/proc/self/cgroup", cases[i].group);
        put_file(root, cases[i].file, cases[i].text);
        if (strstr(cases[i].file, "cfs"))
            put_file(root, "/sys/fs/cgroup/cpu/x/cpu.cfs_period_us",
                     "100000\\n");
        assert_int_equal(sd_cpu_count_at(root), SD_MIN(many, cases[i].most));
        snprintf(cmd, sizeof cmd, "rm -r %s/*", root);
        assert_int_equal(system(cmd), 0);
    }
    rmdir(root);
    assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
    CPU_ZERO(&one);
    for (int i = 0; i < CPU_SETSIZE && !CPU_COUNT(&one); i++)
        if (CPU_ISSET(i, &all))
            CPU_SET(i, &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    assert_int_equal(sd_cpu_count(), 1);
    assert_int_equal(sched_setaffinity(0, sizeof all, &all), 0);
}

static void memory_left(void **state)
{
    char root[] = "/tmp/test_base.XXXXXX", cmd[64];
    const char *v2 = "/sys/fs/cgroup", *v1 = "/sys/fs/cgroup/memory";
    char path[64];

    (void)state;
    assert_true(sd_memory_left() > 0 && sd_memory_left() < sd_memory_size());
    assert_non_null(mkdtemp(root));
    put_file(root, "/proc/meminfo",
             "MemTotal: 9000 kB\nMemFree: 10 kB\nMemAvailable: 2000 kB\n");
    assert_int_equal(sd_memory_left_at(root), 2000 << 10);
    snprintf(path, sizeof path, "%s/memory.max", v2);
    put_file(root, path, "max\n"); /* no limit */
    snprintf(path, sizeof path, "%s/memory.current", v2);
    put_file(root, path, "900000\n");
    assert_int_equal(sd_memory_left_at(root), 2000 << 10);
    snprintf(path, sizeof path, "%s/memory.max", v2);
    put_file(root, path, "1000000\n");
    assert_int_equal(sd_memory_left_at(root), 100000);
    snprintf(path, sizeof path, "%s/memory.stat", v2);
    put_file(root, path, "anon 5\nfile 200000\nfile_mapped 7\n");
    assert_int_equal(sd_memory_left_at(root), 300000);
    snprintf(path, sizeof path, "%s/memory.limit_in_bytes", v1);
    put_file(root, path, "500000\n");
    snprintf(path, sizeof path, "%s/memory.usage_in_bytes", v1);
    put_file(root, path, "600000\n");
    assert_int_equal(sd_memory_left_at(root), 0);
    snprintf(cmd, sizeof cmd, "rm -r %s", root);
    assert_int_equal(system(cmd), 0);
}

/* Work that its caller wants ended: where an arena grows, and where it asks. */
static int nasked;

static bool at_the_third(void *ctx)
{
    return ++*(int *)ctx > 2;
}

static sd_status grow(void *ctx)
{
    sd_arena *a = sd_arena_create();

    (void)ctx;
    while (sd_arena_alloc(a, 1 << 20)) /* ended by a jump, which frees a */
        ;
    return NULL;
}

static sd_status ask(void *ctx)
{
    sd_status st = NULL;

    while (!st)
        st = sd_stopped();
    assert_ptr_equal(sd_stop_current(), ctx);
    return st;
}

static sd_status nested(void *ctx)
{
    (void)ctx;
    return sd_catch_oom(0, grow, NULL);
}

static void test_stop(void **state)
{
    sd_stop stop = {at_the_third, &nasked};
    sd_status (*const work[])(void *) = {grow, ask, nested};

    (void)state;
    assert_null(sd_stop_current());
    assert_null(sd_stopped());
    for (size_t i = 0; i < SD_COUNTOF(work); i++) {
        sd_status st;

        nasked = 0;
        st = sd_catch(&stop, 0, work[i], &stop);
        assert_non_null(st);
        assert_int_equal(st->code, SD_CANCELLED);
        assert_string_equal(st->message,
                            "interrupted (SIGINT): ended before it was done");
        assert_int_equal(nasked, 3);
        sd_status_free(st);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stop),
        cmocka_unit_test(arena_is_zeroed_aligned_and_apart),
        cmocka_unit_test(vector_and_map_keep_what_they_are_given),
        cmocka_unit_test(errors_carry_code_place_and_notes),
        cmocka_unit_test(cursor_reads_and_sticks_at_the_first_error),
        cmocka_unit_test(builder_formats_what_is_longer_than_its_room),
        cmocka_unit_test(files_come_back_as_written),
        cmocka_unit_test(files_that_cannot_be_had_are_told_of),
        cmocka_unit_test(narrow_floats_round_to_nearest_even),
        cmocka_unit_test(narrow_floats_overflow_as_their_kind_does),
        cmocka_unit_test(integers_wrap_and_clamp),
        cmocka_unit_test(types_are_found_by_each_of_their_names),
        cmocka_unit_test(shapes_print_and_refuse_what_overflows),
        cmocka_unit_test(options_come_by_either_name),
        cmocka_unit_test(excess_precision_is_read_from_xla_flags_as_written),
        cmocka_unit_test(settings_of_the_wrong_kind_are_refused),
        cmocka_unit_test(described_devices_are_found_by_name),
        cmocka_unit_test(quirks_are_those_drivers_alone),
        cmocka_unit_test(pool_runs_each_item_once),
        cmocka_unit_test(pool_wakes_apart_from_its_caller),
        cmocka_unit_test(shelf_gives_each_thing_to_one),
        cmocka_unit_test(cpus_follow_affinity_and_quota),
        cmocka_unit_test(memory_left),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
