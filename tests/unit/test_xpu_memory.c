/* What a device holds of memory that is free again, and a machine that has
 * none. */
#include "test_xpu.h"
#include "xpu_buffer.h"
#include "xpu_by_hand.h"
#include "xpu_device.h"

static int64_t left = -1; /* what the machine is to have; -1: what it has */
int64_t __real_sd_memory_left(void), __wrap_sd_memory_left(void);

int64_t __wrap_sd_memory_left(void)
{
    return left < 0 ? __real_sd_memory_left() : left;
}

void test_machine_without_memory(void **state)
{
    const int64_t some = 3 << 20, many = 224 << 20;
    xpu_client *c = open_client("1", "1");
    xpu_device *d = xpu_client_device(c, 0);
    xpu_buffer *a, *b;
    sd_status st;

    (void)state;
    ok(xpu_buffer_alloc(d, XPU_MEM_DEVICE, SD_U8, 1, &some, &a));
    left = 100 << 20;
    st = xpu_buffer_alloc(d, XPU_MEM_DEVICE, SD_U8, 1, &many, &b);
    assert_non_null(st);
    assert_int_equal(st->code, SD_EXHAUSTED);
    if (!strstr(st->message,
                "allocating 234881024 bytes on device 0 (host:v") ||
        !strstr(st->message,
                ", in use 3145728; held by arrays put there: 3145728: the "
                "machine has 104857600 bytes of memory left"))
        fail_msg("%s", st->message);
    sd_status_free(st);
    left = -1;
    ok(xpu_buffer_alloc(d, XPU_MEM_DEVICE, SD_U8, 1, &many, &b));
    xpu_buffer_release(a);
    xpu_buffer_release(b);
    xpu_client_destroy(c);
}

/* Arrays of ever other sizes, one at a time: what is held beside the largest.
 * Where the same sizes come again and again, more of them stay. */
void test_what_is_held(void **state)
{
    enum { SIZES = 12, MB = 1 << 20 };
    xpu_client *c = open_client("1", "1");
    xpu_device *d = xpu_client_device(c, 0);
    int64_t most = (160 + 160 / 4 + 64) * (int64_t)MB;
    xpu_memory_stats stats;

    (void)state;
    for (int round = 0; round < 40; round++) {
        for (int i = SIZES; i-- > 0;) {
            int64_t bytes = (int64_t)(80 >> (i / 4)) * MB;
            xpu_buffer *b;

            bytes += bytes / 4 * (4 - i % 4);
            ok(xpu_buffer_alloc(d, XPU_MEM_DEVICE, SD_U8, 1, &bytes, &b));
            xpu_buffer_release(b);
        }
        xpu_device_stats(d, &stats);
        assert_int_equal(stats.in_use, 0);
        assert_true(stats.held > 160 * (int64_t)MB);
        if (!round)
            assert_true(stats.held_peak <= most);
    }
    assert_true(stats.held_peak > most);
    assert_true(stats.held_peak <= most + 160 / 4 * (int64_t)MB);
    xpu_client_destroy(c);
}

/* Slabs of small arrays stay: large ones that are used again and again must not
 * go back to the system for them. */
void test_slabs_push_nothing_out(void **state)
{
    enum { MANY = 200, MB = 1 << 20 };
    xpu_client *c = open_client("1", "1");
    xpu_device *d = xpu_client_device(c, 0);
    const int64_t small = MB, large = 3 * MB;
    xpu_buffer *b[MANY];
    xpu_memory_stats stats;
    int64_t held = 0;

    (void)state;
    for (int i = 0; i < MANY; i++)
        ok(xpu_buffer_alloc(d, XPU_MEM_DEVICE, SD_U8, 1, &small, &b[i]));
    for (int i = 0; i < MANY; i++)
        xpu_buffer_release(b[i]);
    for (int i = 0; i < 3 * 4096; i++) { /* the peak is forgotten */
        ok(xpu_buffer_alloc(d, XPU_MEM_DEVICE, SD_U8, 1, &large, &b[0]));
        xpu_buffer_release(b[0]);
        xpu_device_stats(d, &stats);
        held = i ? held : stats.held;
        assert_int_equal(stats.held, held);
    }
    assert_true(held > MANY * (int64_t)MB);
    xpu_client_destroy(c);
}
