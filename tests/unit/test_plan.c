/* Plans: expressions by themselves; whole programs (tests/plan/ *.hlo, as JAX
 * sends them after the passes) planned for host and GPU, run by the letter of
 * the kernel form, and held against the evaluator; numbers of kernels. */
#include "passes.h"
#include "plan_room.h"
#include "plan_run.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "plan_made.h"
#include "ref.h"

/* ---- expressions ---- */

static void split_axes_join_again(void **state)
{
    sd_arena *a = sd_arena_create();
    plan_px *p = plan_px_create(a);
    const plan_expr *i = plan_px_axis(p, 0, 6), *j = plan_px_axis(p, 1, 35);
    const plan_expr *x = plan_px_mad(p, j, 35, i), *index[3];
    int64_t dim[3] = {6, 5, 7};

    (void)state;
    plan_px_delinear(p, x, 3, dim, index);
    assert_ptr_equal(index[0], i);
    assert_ptr_equal(index[1], plan_px_div(p, j, 7));
    assert_ptr_equal(index[2], plan_px_mod(p, j, 7));
    assert_ptr_equal(plan_px_linear(p, 3, dim, index), x);
    /* (4 i + 35 * 4 j + 3) / 4 and % 4 */
    x = plan_px_mad(p, plan_px_const(p, 3), 4, plan_px_mad(p, i, 35, j));
    assert_ptr_equal(plan_px_div(p, x, 4), plan_px_mad(p, i, 35, j));
    assert_ptr_equal(plan_px_mod(p, x, 4), plan_px_const(p, 3));
    sd_arena_destroy(a);
}

static int64_t value_at(const plan_expr *e, const int64_t *pos)
{
    switch (e->kind) {
    case PX_CONST:
        return e->c;
    case PX_AXIS:
        return pos[e->axis];
    case PX_ADD:
        return value_at(e->a, pos) + value_at(e->b, pos);
    case PX_MUL:
        return value_at(e->a, pos) * e->c;
    case PX_DIV:
        return value_at(e->a, pos) / e->c;
    default:
        return value_at(e->a, pos) % e->c;
    }
}

/* Every way to write 60 elements as three dimensions, into every other. */
static void reshapes_keep_their_elements(void **state)
{
    static const int64_t dims[][3] = {{60, 1, 1}, {4, 15, 1}, {3, 4, 5},
                                      {5, 12, 1}, {2, 2, 15}, {10, 1, 6}};
    sd_arena *a = sd_arena_create();
    plan_px *p = plan_px_create(a);

    (void)state;
    for (size_t f = 0; f < SD_COUNTOF(dims); f++)
        for (size_t t = 0; t < SD_COUNTOF(dims); t++) {
            const sd_shape *from = sd_shape_make(a, SD_F32, 3, dims[f]);
            const sd_shape *to = sd_shape_make(a, SD_F32, 3, dims[t]);
            const plan_expr *in[3], *out[3], *x, *y;

            for (int d = 0; d < 3; d++)
                in[d] = plan_px_axis(p, d, dims[f][d]);
            plan_px_reshape(p, from, in, to, out);
            x = plan_px_linear(p, 3, dims[f], in);
            y = plan_px_linear(p, 3, dims[t], out);
            assert_ptr_equal(x, y);
            for (int64_t n = 0; n < 60; n++) {
                int64_t pos[3] = {n / dims[f][2] / dims[f][1],
                                  n / dims[f][2] % dims[f][1], n % dims[f][2]};

                for (int d = 0; d < 3; d++) {
                    int64_t v = value_at(out[d], pos);

                    assert_in_range(v, 0, dims[t][d] - 1);
                    assert_in_range(v, out[d]->lo, out[d]->hi);
                }
                assert_int_equal(value_at(y, pos), n);
            }
        }
    sd_arena_destroy(a);
}

/* ---- programs ---- */

static uint64_t seed;

static double random_number(void)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (double)(seed >> 11) / 9007199254740992.0;
}

static void fill(const sd_shape *s, char *p)
{
    size_t bytes = sd_dtype_bytes(s->dtype);

    for (int64_t i = sd_shape_count(s); i-- > 0; p += bytes) {
        sd_dtype part = sd_dtype_part(s->dtype);
        double v = random_number();

        if (sd_dtype_kind(part) == SD_K_FLOAT) {
            sd_scalar_of_f64(part, v * 4 - 2, p);
            if (part != s->dtype)
                sd_scalar_of_f64(part, random_number(),
                                 p + sd_dtype_bytes(part));
        } else if (s->dtype == SD_PRED) {
            *p = v < 0.6;
        } else { /* as indices: some outside */
            sd_scalar_of_s64(
                s->dtype,
                (int64_t)(v * 40) - 3 * (sd_dtype_kind(part) == SD_K_SINT), p);
        }
    }
}

static void close_to(const char *name, const hlo_value *want, const void *got)
{
    sd_dtype t = sd_dtype_part(want->shape->dtype);
    size_t bytes = sd_dtype_bytes(t);
    int64_t n = (int64_t)(sd_shape_bytes(want->shape) / bytes);
    double tolerance = t == SD_BF16 ? 2e-2 : 2e-4;

    for (int64_t i = 0; i < n; i++) {
        const char *x = (const char *)want->data + (size_t)i * bytes;
        const char *y = (const char *)got + (size_t)i * bytes;
        double u, v;

        if (sd_dtype_kind(t) != SD_K_FLOAT) {
            if (memcmp(x, y, bytes) != 0)
                fail_msg("%s: element %" PRId64 " is %" PRId64 ", not %" PRId64,
                         name, i, sd_scalar_to_s64(t, y),
                         sd_scalar_to_s64(t, x));
            continue;
        }
        u = sd_scalar_to_f64(t, x);
        v = sd_scalar_to_f64(t, y);
        if (u != v && !(isnan(u) && isnan(v)) &&
            !(fabs(u - v) <= tolerance * (1 + fabs(u))))
            fail_msg("%s: element %" PRId64 " is %g, not %g", name, i, v, u);
    }
}

typedef struct {
    int kernel, libcall, copy;
    uint64_t temp;
} counts;

static void count_steps(const thunk_seq *s, counts *c)
{
    for (int i = 0; i < s->n; i++) {
        c->kernel += s->at[i].kind == THUNK_KERNEL;
        c->libcall += s->at[i].kind == THUNK_LIBCALL;
        c->copy += s->at[i].kind == THUNK_COPY;
        for (int j = 0; j < s->at[i].nseq; j++)
            count_steps(&s->at[i].seq[j], c);
    }
}

static const hlo_value *leaf_of(const hlo_value *v, int i)
{
    return v->elem ? &v->elem[i] : v;
}

/* Plans `name` for each of n devices, runs that and counts its steps. */
static void run_program(const char *name, const device_desc *dev, int n,
                        counts *count)
{
    sd_arena *a = sd_arena_create();
    hlo_comp *c = read_program(a, name)->entry;
    hlo_value *arg = sd_arena_array(a, hlo_value, c->nparam + 1), want;
    void **in = sd_arena_array(a, void *, c->nparam + 1);

    for (int i = 0; i < c->nparam; i++) {
        arg[i] = hlo_value_make(a, c->param[i]->shape);
        fill(arg[i].shape, arg[i].data);
        in[i] = arg[i].data;
    }
    want_success(ref_eval(a, c, arg, c->nparam, &want));
    for (int k = 0; k < 2 * n; k++) {
        plan *p = make(a, name, &dev[k / 2]);
        void **out = sd_arena_array(a, void *, p->program->noutput + 1);

        for (int i = 0; i < p->program->noutput; i++)
            out[i] = sd_arena_alloc(a, p->program->output[i].bytes + 1);
        want_success(plan_run(p, in, out, k % 2));
        for (int i = 0; i < p->program->noutput; i++)
            close_to(name, leaf_of(&want, i), out[i]);
        count[k / 2] = (counts){.temp = p->program->temp_bytes};
        count_steps(&p->program->seq, &count[k / 2]);
        plan_destroy(p);
    }
    sd_arena_destroy(a);
}

static counts run_on(const char *name, const device_desc *dev)
{
    counts n;

    run_program(name, dev, 1, &n);
    return n;
}

/* Kernels and calls on the described host, kernels on the described GPU,
 * copies on both, bytes of temporaries on the host.  The figures are meant: one
 * that grows is a slower plan, or a larger one. */
static const struct {
    const char *name;
    int kernel, libcall, gpu_kernel, copy, temp;
} programs[] = {
#define PROGRAM(name, kernel, libcall, gpu_kernel, copy, temp) \
    {#name, kernel, libcall, gpu_kernel, copy, temp},
#include "test_plan.def"
#undef PROGRAM
};

static void programs_plan_and_run(void **state)
{
    (void)state;
    for (size_t i = 0; i < SD_COUNTOF(programs); i++) {
        device_desc dev[2] = {described("host:v4"), described("cl:pvc")};
        counts n[2], h, g;

        /* its own, whichever programs stand beside it */
        seed = sd_hash(programs[i].name, strlen(programs[i].name), 0);
        run_program(programs[i].name, dev, 2, n);
        h = n[0];
        g = n[1];
        print_message("%s: %d kernels, %d calls, %d copies, %" PRIu64
                      " bytes; GPU %d, %d\n",
                      programs[i].name, h.kernel, h.libcall, h.copy, h.temp,
                      g.kernel, g.copy);
        assert_int_equal(h.kernel, programs[i].kernel);
        assert_int_equal(h.libcall, programs[i].libcall);
        assert_int_equal(h.copy, programs[i].copy);
        assert_int_equal(h.temp, programs[i].temp);
        assert_int_equal(g.kernel, programs[i].gpu_kernel);
        assert_int_equal(g.libcall, 0);
    }
}

/* f32 [m][k] times bf16 [n][k]: operands of unlike widths, both along k. */
static void products_of_unlike_types_are_one_kernel(void **state)
{
    (void)state;
    for (int i = 0; i < device_desc_count(); i++) {
        device_desc dev = *device_desc_at(i);
        counts n;

        dev.libs = 0;
        seed = (uint64_t)i;
        n = run_on("product_widened", &dev);
        assert_int_equal(n.kernel, 1);
        assert_int_equal(n.libcall + n.copy, 0);
    }
}

/* As where launches cost little, so that rows need not be long.  Other devices
 * of a kind are cut alike. */
static void long_rows_are_sorted_by_digits(void **state)
{
    static const char *const device[] = {"cl:cpu", "cl:pvc", "cuda:sm_90"};

    (void)state;
    for (size_t i = 0; i < SD_COUNTOF(device); i++) {
        device_desc dev = described(device[i]);
        counts n;

        dev.access = 0;
        seed = i;
        n = run_on("sort_digits", &dev);
        /* one digit: count, sum, move; two or more: first and last are others
         */
        assert_int_equal(n.kernel, dev.kind == DEVICE_CUDA ? 14 : 20);
    }
}

/* Two rows of updates, some of which are left out, and others that are computed
 * on their way. */
static void updates_come_by_buckets(void **state)
{
    device_desc dev = described("cuda:sm_90");
    counts n;

    (void)state;
    seed = 5;
    n = run_on("scatter_buckets", &dev);
    /* of each places, three of a digit, buckets; of the second two tables,
     * which are filled before and added after it */
    assert_int_equal(n.kernel, 12);
}

/* Fusions are the same for every device: the module differs in calls only. */
static void devices_share_their_fusions(void **state)
{
    static const char *const same[] = {"softmax", "layer_norm_grad", "argmax",
                                       "scatter_add"};

    (void)state;
    for (size_t i = 0; i < SD_COUNTOF(same); i++) {
        sd_arena *a = sd_arena_create();
        sd_buf x = {0}, y = {0};
        device_desc host = described("host:v3"), gpu = described("cl:dg2-g10");
        plan *p = make(a, same[i], &host), *q = make(a, same[i], &gpu);

        hlo_print(&x, p->m);
        hlo_print(&y, q->m);
        assert_int_equal(x.len, y.len);
        assert_memory_equal(x.at, y.at, x.len);
        sd_buf_finish(&x);
        sd_buf_finish(&y);
        plan_destroy(p);
        plan_destroy(q);
        sd_arena_destroy(a);
    }
}

/* Whole plans as text.  With SUNDOG_BLESS set the files are written instead;
 * the difference is for people to judge. */
static void plans_read_as_before(void **state)
{
    static const struct {
        const char *name;
        size_t first, end; /* of the devices */
    } row[] = {{"mlp", 0, 3},
               {"softmax", 0, 3},
               {"softmax0", 0, 3},
               {"exp_of_integers", 0, 1},
               {"layer_norm_grad", 0, 3},
               {"group_norm", 0, 1},
               {"movement", 0, 3},
               {"while_rows", 0, 3},
               {"turns_in_pairs", 0, 3},
               {"fft", 0, 3},
               {"woven", 0, 3},
               {"streamed", 1, 3},
               {"running", 0, 3},
               {"softmax_columns", 2, 3},
               {"fft_lines", 2, 3},
               {"product", 0, 4},
               {"conv", 3, 4},
               {"matmul_bf16", 1, 3},
               {"matmul_padded", 2, 3},
               {"matmul_s8", 1, 3},
               {"matmul_sliced", 2, 3},
               {"weights_bf16", 1, 2},
               {"large/column_bf16", 1, 2},
               {"large/conv_nchw", 1, 2},
               {"large/conv_few", 1, 2},
               {"large/conv_window", 1, 2},
               {"large/product_odd", 1, 2},
               {"large/beside", 2, 3},
               {"large/gradients", 2, 3},
               {"large/wide_operands", 2, 3},
               {"large/window_gradient", 2, 3},
               {"loop_of_rows", 0, 1},
               {"picked_chain", 0, 1},
               {"picked_pairs", 0, 1},
               {"powers", 0, 1},
               {"scan_heavy", 0, 1},
               {"batch_of_eight", 0, 1},
               {"scan_rows", 0, 1},
               {"scatter_gathered", 0, 1},
               {"scatter_ranges", 0, 1},
               {"scatter_ranges_rows", 0, 1},
               {"small_products", 0, 1},
               {"few_terms", 0, 1},
               {"sum_pieces", 0, 1},
               {"woven_three", 0, 1},
               {"channels", 0, 1},
               {"channels_four", 0, 1},
               {"rows_of_eight", 0, 1},
               {"short_rows", 0, 1},
               {"shifted_rows", 0, 1},
               {"argmax_rows", 0, 1},
               {"moved_bytes", 0, 1},
               {"channels_apart", 0, 1},
               {"channels_widened", 0, 1},
               {"rows_alone", 0, 1},
               {"alpha_left_out", 0, 1},
               {"stretches", 0, 1},
               {"cut_rows", 0, 1},
               {"cut_window", 0, 1},
               {"sines", 0, 1},
               {"kept_narrow", 0, 1},
               {"columns_apart", 0, 1},
               {"rows_any_order", 0, 1},
               {"attend", 1, 3},
               {"attend", 4, 5},
               {"attend_gradient", 1, 3},
               {"product_vector", 0, 1},
               {"matmul_s8", 4, 5},
               {"large/rows_crossed", 2, 3},
               {"large/product_pages", 0, 1}};
    static const char *const device[] = {"host:v4", "cl:pvc", "cuda:sm_90",
                                         "host:v3", "cl:dg2-g10"};
    static const char *const suffix[] = {"v4", "pvc", "sm_90", "own", "dg2"};

    (void)state;
    for (size_t i = 0; i < SD_COUNTOF(row); i++)
        for (size_t j = row[i].first; j < row[i].end; j++) {
            sd_arena *a = sd_arena_create();
            sd_buf is = {0}, was = {0};
            char *path = sd_arena_fmt(a, "%s/%s.%s.txt", plan_folder,
                                      row[i].name, suffix[j]);
            device_desc dev = described(device[j]);
            plan *p;

            if (j == 3)
                dev.libs = 0;
            p = make(a, row[i].name, &dev);
            plan_print(&is, p);
            if (getenv("SUNDOG_BLESS"))
                want_success(sd_file_write(path, is.at, is.len));
            want_success(sd_file_read(path, &was));
            if (is.len != was.len || memcmp(is.at, was.at, is.len) != 0)
                fail_msg("%s is not what is planned now:\n%.*s", path,
                         (int)is.len, is.at);
            sd_buf_finish(&is);
            sd_buf_finish(&was);
            plan_destroy(p);
            sd_arena_destroy(a);
        }
}

/* Where kernels can read what other members have, engines bring what is large
 * and meets beside other kernels all the same. */
static void large_shares_are_brought_beside_kernels(void **state)
{
    static const thunk_kind want[] = {THUNK_KERNEL, THUNK_BESIDE, THUNK_KERNEL,
                                      THUNK_JOIN, THUNK_KERNEL};
    sd_arena *a = sd_arena_create();
    const thunk_seq *s;
    device_desc dev = described("cuda:sm_90");
    plan *p;

    (void)state;
    dev.features |= DEVICE_HAS_PEERS;
    p = make(a, "large/beside", &dev);
    s = &p->program->seq;
    assert_int_equal(s->n, SD_COUNTOF(want));
    for (int i = 0; i < s->n; i++)
        assert_int_equal(s->at[i].kind, want[i]);
    s = &s->at[1].seq[0];
    assert_int_equal(s->n, 3);
    assert_int_equal(s->at[0].kernel, -1);
    plan_destroy(p);
    sd_arena_destroy(a);
}

/* A loop that updates a row a step copies nothing and gives its memory back. */
static void donated_loops_run_in_place(void **state)
{
    sd_arena *a = sd_arena_create();
    device_desc dev = described("host:v4");
    plan *p = make(a, "while_rows", &dev);
    counts n = {0};
    bool aliased = false;

    (void)state;
    for (int i = 0; i < p->program->seq.n; i++)
        if (p->program->seq.at[i].kind == THUNK_WHILE)
            count_steps(&p->program->seq.at[i].seq[1], &n);
    assert_int_equal(n.copy, 0);
    for (int i = 0; i < p->program->nbuffer; i++)
        aliased |= p->program->buffer[i].kind == THUNK_B_OUTPUT &&
                   p->program->buffer[i].alias == 0;
    assert_true(aliased);
    plan_destroy(p);
    sd_arena_destroy(a);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(split_axes_join_again),
        cmocka_unit_test(reshapes_keep_their_elements),
        cmocka_unit_test(programs_plan_and_run),
        cmocka_unit_test(long_rows_are_sorted_by_digits),
        cmocka_unit_test(updates_come_by_buckets),
        cmocka_unit_test(products_of_unlike_types_are_one_kernel),
        cmocka_unit_test(devices_share_their_fusions),
        cmocka_unit_test(large_shares_are_brought_beside_kernels),
        cmocka_unit_test(donated_loops_run_in_place),
        cmocka_unit_test(plans_read_as_before),
    };

    plan_folder = argc > 1 ? argv[1] : "tests/plan";
    if (argc > 2)
        cmocka_set_test_filter(argv[2]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
