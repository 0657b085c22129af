/* Arrays on their way to devices, between them and back. */
#include <stdlib.h>

#include "test_xpu.h"
#include "xpu_by_hand.h"
#include "xpu_device.h"

static void count_delete(void *pointer, void *ctx)
{
    (void)pointer;
    ++*(int *)ctx;
}

static void fetch_bytes(xpu_buffer *b, size_t from, void *to, size_t n)
{
    xpu_event *done;

    ok(xpu_buffer_to_host(b, from, to, n, &done));
    ok(xpu_event_wait(done));
    xpu_event_release(done);
}

void test_strided_transfers(void **state)
{
    xpu_client *c = open_client("1", "2");
    xpu_device *d = xpu_client_device(c, 0);
    int32_t v[3][4] = {{0, 1, 2, 3}, {4, 5, 6, 7}, {8, 9, 10, 11}};
    int64_t dim[] = {2, 3}, back[] = {-16, 8}, transposed[] = {4, 16};
    int32_t got[6];
    xpu_buffer *b;
    xpu_event *done;

    (void)state;
    /* Rows backwards, every other column. */
    ok(xpu_buffer_from_host(d, XPU_MEM_DEVICE, SD_S32, 1, &dim[0], &v[2][1],
                            back, true, &b, NULL));
    fetch_bytes(b, 0, got, 8);
    assert_int_equal(got[0], 9);
    assert_int_equal(got[1], 5);
    xpu_buffer_release(b);
    ok(xpu_buffer_from_host(d, XPU_MEM_PINNED_HOST, SD_S32, 2, dim, v,
                            transposed, false, &b, &done));
    ok(xpu_event_wait(done));
    xpu_event_release(done);
    fetch_bytes(b, 4, got, 20);
    for (int i = 0; i < 5; i++)
        assert_int_equal(got[i], v[(i + 1) % 3][(i + 1) / 3]);
    fails(xpu_buffer_to_host(b, 8, got, 20, &done), SD_INVALID);
    xpu_buffer_release(b);
    xpu_client_destroy(c);
}

void test_empty_transfers(void **state)
{
    xpu_client *c = open_client("1", "2");
    int64_t zero[] = {3, 0};
    xpu_buffer *b;
    xpu_event *done;

    (void)state;
    ok(xpu_buffer_from_host(xpu_client_device(c, 0), XPU_MEM_DEVICE, SD_F64, 2,
                            zero, NULL, NULL, false, &b, &done));
    assert_true(xpu_event_is_ready(done));
    xpu_event_release(done);
    fetch_bytes(b, 0, NULL, 0);
    xpu_buffer_delete(b);
    fails(xpu_buffer_to_host(b, 0, NULL, 0, &done), SD_INVALID);
    xpu_buffer_release(b);
    xpu_client_destroy(c);
}

/* Queued, then to another device and back. */
void test_large_transfers(void **state)
{
    xpu_client *c = open_client("1", "2");
    xpu_device *d = xpu_client_device(c, 0);
    int64_t big = 2000000;
    int32_t *large = malloc((size_t)big * 4);
    xpu_buffer *b, *other;
    xpu_event *done;

    (void)state;
    for (int64_t i = 0; i < big; i++)
        large[i] = (int32_t)(i * 7);
    ok(xpu_buffer_from_host(d, XPU_MEM_DEVICE, SD_S32, 1, &big, large, NULL,
                            false, &b, &done));
    if (xpu_client_count(c) > 1)
        d = xpu_client_device(c, 1);
    ok(xpu_buffer_copy(b, d, XPU_MEM_DEVICE, &other));
    xpu_buffer_delete(b);
    ok(xpu_event_wait(done));
    memset(large, 0, (size_t)big * 4);
    fetch_bytes(other, 0, large, (size_t)big * 4);
    for (int64_t i = 0; i < big; i++)
        assert_int_equal(large[i], (int32_t)(i * 7));
    xpu_event_release(done);
    xpu_buffer_release(b);
    xpu_buffer_release(other);
    free(large);
    xpu_client_destroy(c);
}

/* Large copies are shared out among threads; those onto themselves are not. */
void test_large_copies(void **state)
{
    enum { N = 5 * (1 << 18) + 3, BEHIND = 100 };
    xpu_client *c = open_client("3", "1");
    xpu_device *d = xpu_client_device(c, 0);
    uint8_t *from = malloc(N), *to = malloc(N);

    (void)state;
    for (int64_t i = 0; i < N; i++)
        from[i] = (uint8_t)(i * i / 256 + i);
    if (d->ops->shared_memory) {
        ok(d->ops->copy(d, XPU_COMPUTE, to, from, N));
        assert_memory_equal(to, from, N);
        ok(d->ops->copy(d, XPU_COMPUTE, to + BEHIND, to, N - BEHIND));
        assert_memory_equal(to + BEHIND, from, N - BEHIND);
        ok(d->ops->copy(d, XPU_COMPUTE, to, to + BEHIND, N - BEHIND));
        assert_memory_equal(to, from, N - BEHIND);
    }
    free(from);
    free(to);
    xpu_client_destroy(c);
}

/* Memory of the caller's is used as it lies, and given back once. */
void test_views(void **state)
{
    xpu_client *c = open_client("1", "2");
    xpu_device *d = xpu_client_device(c, 0);
    xpu_program *x = simple(d, "square", 32, 1);
    void *mine = aligned_alloc(64, 128);
    xpu_buffer *b, *out;
    int64_t n = 32;
    int deleted = 0;

    (void)state;
    memset(mine, 0, 128);
    ok(xpu_buffer_view(d, XPU_MEM_DEVICE, SD_F32, 1, &n, mine, count_delete,
                       &deleted, &b));
    ok(run1(x, b, &out, NULL));
    assert_ptr_equal(xpu_buffer_pointer(b), mine);
    xpu_buffer_delete(b);
    ok(xpu_device_sync(d));
    assert_int_equal(deleted, 1);
    xpu_buffer_release(b);
    xpu_buffer_release(out);
    assert_int_equal(deleted, 1);
    xpu_program_release(x);
    free(mine);
    xpu_client_destroy(c);
}
