/* Shardings: text of every form in, tiles and names out.  With an argument
 * (`convert`): lines of "participants;rank;text" from stdin, for a test that
 * asks another library the same. */
#include "hlo_sharding.h"
#include "ref.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static hlo_module *module_of(sd_arena *a, int n, const char *meshes)
{
    hlo_module *m = hlo_module_create(a, "m");
    sd_status st;

    m->nreplica = 1;
    m->npartition = n;
    m->frontend_attrs = meshes;
    st = hlo_meshes_read(m);
    if (st)
        fail_msg("%s", st->message);
    return m;
}

#define MESHES(text) "{xla.sdy.meshes=\"{" text "}\"}"
#define XY           "mesh = #sdy.mesh<[\\\"x\\\"=4, \\\"y\\\"=2]>"

static void want_tiles(hlo_module *m, const char *text, int rank,
                       const char *tiles, const char *names)
{
    const hlo_sharding *s, *again;
    sd_status st = hlo_sharding_read(m, text, rank, &s);
    sd_buf b = {0};

    if (st)
        fail_msg("%s", st->message);
    hlo_sharding_tiles(&b, s);
    sd_buf_u8(&b, 0);
    assert_string_equal(b.at, tiles);
    b.len = 0;
    hlo_sharding_text(&b, s);
    sd_buf_u8(&b, 0);
    assert_string_equal(b.at, names);
    st = hlo_sharding_read(m, b.at, rank, &again);
    if (st)
        fail_msg("%s", st->message);
    sd_buf_finish(&b);
}

#define V3 "{mesh['x'=4,'y'=2], "

static void by_names(void **state)
{
    sd_arena *a = sd_arena_create();
    hlo_module *m = module_of(a, 8, MESHES(XY));

    (void)state;
    want_tiles(m, "#sdy.sharding<@mesh, [{\"x\"}, {}]>", 2,
               "{devices=[4,1,2]<=[8] last_tile_dim_replicate}",
               V3 "[{'x'}, {}]}");
    want_tiles(m, "#sdy.sharding<@mesh, [{\"y\"}, {\"x\"}]>", 2,
               "{devices=[2,4]<=[4,2]T(1,0)}", V3 "[{'y'}, {'x'}]}");
    want_tiles(m, "#sdy.sharding<@mesh, [{\"x\", \"y\"}, {?}]>", 2,
               "{devices=[8,1]<=[8]}", V3 "[{'x', 'y'}, {?}]}");
    want_tiles(m, "#sdy.sharding<@mesh, [{}, {\"y\"}]>", 2,
               "{devices=[1,2,4]<=[4,2]T(1,0) last_tile_dim_replicate}",
               V3 "[{}, {'y'}]}");
    want_tiles(m, "#sdy.sharding<@mesh, [{\"x\":(2)2, ?}]>", 1,
               "{devices=[2,4]<=[2,2,2]T(1,0,2) last_tile_dim_replicate}",
               V3 "[{'x':(2)2, ?}]}");
    want_tiles(m, "#sdy.sharding<@mesh, [{}], replicated={\"x\"}>", 1,
               "{replicated}", V3 "[{}], replicated={'x'}}");
    want_tiles(m, "#sdy.sharding<@mesh, [{\"x\"}], unreduced={\"y\"}>", 1,
               "{devices=[4,2]<=[8] last_tile_dims={unreduced}}",
               V3 "[{'x'}], unreduced={'y'}}");
    want_tiles(m, "#sdy.sharding<@mesh, []>", 0, "{replicated}", V3 "[]}");
    sd_arena_destroy(a);
}

static void by_tiles(void **state)
{
    sd_arena *a = sd_arena_create();
    hlo_module *m = module_of(a, 12, NULL);

    (void)state;
    want_tiles(m, "{devices=[4,3]<=[12]}", 2, "{devices=[4,3]<=[12]}",
               "{mesh['axis_0'=2,'axis_1'=2,'axis_2'=3], [{'axis_0', "
               "'axis_1'}, {'axis_2'}]}");
    want_tiles(m, "{devices=[3,1,4]<=[4,3]T(1,0) last_tile_dim_replicate}", 2,
               "{devices=[3,1,4]<=[4,3]T(1,0) last_tile_dim_replicate}",
               "{mesh['axis_0'=2,'axis_1'=2,'axis_2'=3], [{'axis_2'}, {}]}");
    want_tiles(m, "{devices=[6,2]<=[3,4]T(1,0)}", 2,
               "{devices=[6,2]0,4,8,1,5,9,2,6,10,3,7,11}",
               "{mesh['axis_0'=2,'axis_1'=3,'axis_2'=2], "
               "device_ids=(0,4,8,1,5,9,2,6,10,3,7,11), [{'axis_0', "
               "'axis_1'}, {'axis_2'}]}");
    want_tiles(m, "{maximal device=3}", 2, "{maximal device=3}",
               "{maximal_mesh[device_id=3]}");
    sd_arena_destroy(a);
}

static void equal_ones_are_one(void **state)
{
    sd_arena *a = sd_arena_create();
    hlo_module *m =
        module_of(a, 8,
                  MESHES(XY ", b = #sdy.mesh<[\\\"x\\\"=4, \\\"y\\\"=2]>, "
                            "d = #sdy.mesh<[\\\"d\\\"=8]>"));
    const hlo_sharding *x, *y;

    (void)state;
    assert_null(hlo_sharding_read(m, "#sdy.sharding<@mesh, [{\"x\"}]>", 1, &x));
    assert_null(hlo_sharding_read(m, "#sdy.sharding<@b, [{\"x\"}]>", 1, &y));
    assert_ptr_equal(x, y);
    assert_ptr_equal(hlo_mesh_find(m, "d", 1)->grid,
                     hlo_mesh_find(m, "mesh", 4)->grid);
    sd_arena_destroy(a);
}

static void want_refused(hlo_module *m, const char *text, const char *why)
{
    const hlo_sharding *s;
    sd_status st = hlo_sharding_read(m, text, 2, &s);

    if (!st || !strstr(st->message, why))
        fail_msg("%s is not refused as %s", text, why);
    sd_status_free(st);
}

static void refused(void **state)
{
    sd_arena *a = sd_arena_create();
    hlo_module *m =
        module_of(a, 8, MESHES(XY ", four = #sdy.mesh<[\\\"x\\\"=4]>"));

    (void)state;
    want_refused(m, "#sdy.sharding<@no, [{}, {}]>", "a mesh of the module");
    want_refused(m, "#sdy.sharding<@mesh, [{\"z\"}, {}]>", "an axis");
    want_refused(m, "#sdy.sharding<@mesh, [{\"x\"}, {\"x\"}]>", "each axis");
    want_refused(m, "#sdy.sharding<@mesh, [{}, {}, {}]>", "dimensions");
    want_refused(m, "#sdy.sharding<@mesh, [{\"x\":(3)2}, {}]>", "factors");
    want_refused(m, "{devices=[4,4]<=[8]}", "tiles");
    want_refused(m, "{devices=[8]<=[8]T(0,99999)}", "tiles");
    want_refused(
        m, "#sdy.sharding<@mesh, [{}], unreduced={\"x\"}, manual={\"x\"}>",
        "each axis");
    want_refused(m, "{mesh['x'=4", "");
    want_refused(m, "{mesh['x=4", "the end of a name");
    want_refused(m, "#sdy.sharding<@, [{}, {}]>", "a name");
    want_refused(m, "{mesh['x'=a], [{}, {}]}", "an integer");
    want_refused(m, "{mesh['x'=-1], [{}, {}]}", "a number from 0 on");
    want_refused(m, "{mesh['x'=4000000], [{}, {}]}", "2^20 participants");
    want_refused(m, "{mesh['x'=2], device_ids=(0), [{}, {}]}", "as many");
    want_refused(m, "#sdy.sharding<@four, [{\"x\"}, {}]>", "of all part");
    want_refused(m, "{mesh['x'=4], [{'x'}, {}]}", "of all participants");
    want_refused(m, "#sdy.sharding<mesh<[\"x\"=4]>, [{}, {}]>", "of all part");
    want_refused(m, "{mesh['x'=8], device_ids=(0,1,2,3,4,5,6,8), [{}, {}]}",
                 "each participant once");
    want_refused(m, "{mesh['x'=8], device_ids=(0,1,2,3,4,5,6,6), [{}, {}]}",
                 "each participant once");
    want_refused(m, "{devices=[4,1]<=[4]}", "tiles that share out all");
    want_refused(m, "{devices=[1,1]0}", "tiles that share out all");
    want_refused(m, "{devices=[8,1]0,1,2,3,4,5,6,6}", "tiles that share");
    want_refused(m, "{nothing}", "a sharding");
    want_refused(m, "{{replicated}, {replicated}}", "for each value");
    want_refused(m, "#sdy.sharding<@mesh, [{}], other={\"x\"}>", "manual or");
    want_refused(m, "#sdy.sharding<@mesh, [{}]> more", "the end");
    sd_arena_destroy(a);
}

/* A module names meshes that it does not use; one participant needs none of
 * them, and all of it may be one's. */
static void one_participant_is_enough(void **state)
{
    sd_arena *a = sd_arena_create();
    hlo_module *m = module_of(
        a, 8,
        MESHES("one = #sdy.mesh<[], device_ids=[3]>, "
               "none = #sdy.mesh<[]>, four = #sdy.mesh<[\\\"x\\\"=4]>"));
    const hlo_sharding *s;

    (void)state;
    assert_null(hlo_sharding_read(m, "#sdy.sharding<@one, [{}]>", 1, &s));
    assert_int_equal(s->single, 3);
    assert_null(hlo_sharding_read(m, "#sdy.sharding<@none, [{}]>", 1, &s));
    assert_true(hlo_sharding_is_whole(s));
    assert_null(hlo_sharding_read(m, "{mesh['x'=1], [{'x'}]}", 1, &s));
    assert_true(hlo_sharding_is_whole(s));
    sd_arena_destroy(a);
}

static void groups_of_a_call(void **state)
{
    static const struct {
        const char *config;
        int n, size; /* 0: none */
    } list[] = {
        {"{replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>}", 2, 2},
        {"{replica_groups = dense<[[0, 1], [2, -1]]> : tensor<2x2xi64>}", 0, 0},
        {"{replica_groups = dense<[[0, 1], [2]]> : tensor<2x2xi64>}", 0, 0},
        {"{replica_groups = dense<[[0, 4]]> : tensor<1x2xi64>}", 0, 0},
        {"{other = 1}", 0, 0},
    };
    sd_arena *a = sd_arena_create();
    hlo_module *m = module_of(a, 4, NULL);

    (void)state;
    for (size_t i = 0; i < SD_COUNTOF(list); i++) {
        hlo_custom u = {.config = list[i].config};
        hlo_collective c;

        assert_int_equal(hlo_config_groups(m, &u, &c), list[i].n > 0);
        if (list[i].n) {
            assert_int_equal(c.ngroup, list[i].n);
            assert_int_equal(c.group_size, list[i].size);
        }
    }
    sd_arena_destroy(a);
}

static void many_meshes_are_refused(void **state)
{
    sd_arena *a = sd_arena_create();
    hlo_module *m = module_of(a, 2, MESHES(XY));
    sd_buf text = {0};
    sd_status st;

    (void)state;
    sd_buf_str(&text, "{xla.sdy.meshes=\"{");
    for (int i = 0; i < 257; i++)
        sd_buf_fmt(&text, "%sm%d = #sdy.mesh<[\\\"x%d\\\"=2]>", i ? ", " : "",
                   i, i);
    sd_buf_str(&text, "}\"}");
    sd_buf_u8(&text, 0);
    m->mesh = NULL;
    m->frontend_attrs = (const char *)text.at;
    st = hlo_meshes_read(m);
    assert_non_null(st);
    if (!strstr(st->message, "fewer meshes"))
        fail_msg("%s", st->message);
    sd_status_free(st);
    sd_buf_finish(&text);
    sd_arena_destroy(a);
}

/* ---- all participants at once ---- */

static const char psum[] =
    "HloModule m, num_partitions=2\n"
    "add { a = f32[] parameter(0) b = f32[] parameter(1)\n"
    "  ROOT s = f32[] add(a, b) }\n"
    "yes { p = f32[2]{0} parameter(0)\n"
    "  ROOT r = f32[2]{0} all-reduce(p), channel_id=1,\n"
    "    replica_groups=%s, use_global_device_ids=true, to_apply=add }\n"
    "no { ROOT p = f32[2]{0} parameter(0) }\n"
    "ENTRY e { x = f32[2]{0} parameter(0) id = u32[] partition-id()\n"
    "  one = u32[] constant(1)\n"
    "  c = pred[] compare(id, one), direction=EQ\n"
    "  ROOT r = f32[2]{0} conditional(c, x, x), true_computation=yes,\n"
    "    false_computation=no }\n";

static sd_status sum_in_branch(sd_arena *a, const char *groups, hlo_value *out)
{
    char text[1024];
    int n = snprintf(text, sizeof text, psum, groups);
    float x[2][2] = {{1, 2}, {3, 4}};
    hlo_module *m;
    sd_status st = hlo_parse(a, text, (size_t)n, &m);
    hlo_value v[2];
    const hlo_value *arg[2] = {&v[0], &v[1]};

    if (st)
        return st;
    for (int p = 0; p < 2; p++) {
        v[p] = hlo_value_make(a, m->entry->param[0]->shape);
        memcpy(v[p].data, x[p], sizeof x[p]);
    }
    return ref_eval_all(a, m->entry, arg, 1, out);
}

/* Participant 1 alone takes the branch: a group of its own is whole there. */
static void who_is_missing_is_told(void **state)
{
    sd_arena *a = sd_arena_create();
    hlo_value out[2];
    sd_status st = sum_in_branch(a, "{{0},{1}}", out);

    (void)state;
    if (st)
        fail_msg("%s", st->message);
    assert_true(((float *)out[0].data)[0] == 1);
    assert_true(((float *)out[1].data)[1] == 4);
    st = sum_in_branch(a, "{{0,1}}", out);
    if (!st || !strstr(st->message, "participant 0 does not come"))
        fail_msg("%s", st ? st->message : "no error");
    sd_status_free(st);
    sd_arena_destroy(a);
}

/* ---- for another library ---- */

static void convert(char *line)
{
    char *n = strtok(line, ";"), *rank = strtok(NULL, ";"),
         *text = strtok(NULL, "\n");
    sd_arena *a = sd_arena_create();
    hlo_module *m = module_of(a, atoi(n), NULL);
    const hlo_sharding *s;
    sd_status st = hlo_sharding_read(m, text, atoi(rank), &s);
    sd_buf b = {0};

    if (st) {
        printf("error;%s\n", st->message);
        sd_status_free(st);
    } else {
        hlo_sharding_proto(&b, s);
        for (size_t i = 0; i < b.len; i++)
            printf("%02x", (unsigned char)b.at[i]);
        b.len = 0;
        hlo_sharding_tiles(&b, s);
        printf(";%.*s", (int)b.len, b.at);
        b.len = 0;
        hlo_sharding_text(&b, s);
        printf(";%.*s\n", (int)b.len, b.at);
    }
    sd_buf_finish(&b);
    sd_arena_destroy(a);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(by_names),
        cmocka_unit_test(by_tiles),
        cmocka_unit_test(equal_ones_are_one),
        cmocka_unit_test(refused),
        cmocka_unit_test(one_participant_is_enough),
        cmocka_unit_test(groups_of_a_call),
        cmocka_unit_test(many_meshes_are_refused),
        cmocka_unit_test(who_is_missing_is_told),
    };
    char line[4096];

    if (argc > 1 && strcmp(argv[1], "convert") == 0) {
        while (fgets(line, sizeof line, stdin))
            convert(line);
        return 0;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
