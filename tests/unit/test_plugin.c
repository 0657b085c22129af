/* The tests of the plugin, each theme a file, run once for each size that a
 * caller's structs may have; and what holds for every function alike. */
#include "plugin_test.h"

#include <dlfcn.h>

static void the_table_is_full(void **state)
{
    void *const *slot = (void *const *)((const char *)plugin + 40);
    size_t n = (sizeof *plugin - 40) / 8;

    (void)state;
    assert_int_equal(plugin->struct_size, sizeof *plugin);
    assert_int_equal(plugin->pjrt_api_version.major_version, PJRT_API_MAJOR);
    assert_int_equal(plugin->pjrt_api_version.minor_version, PJRT_API_MINOR);
    assert_int_equal(n, 138);
    for (size_t i = 0; i < n; i++)
        assert_non_null(slot[i]);
    for (int i = 0; i < nfunction; i++)
        if (!functions[i].row)
            fail_msg("test_plugin.def has no row for %s", functions[i].name);
}

/* Structs without what every version has are refused, naming both sizes. */
static void short_structs_are_refused(void **state)
{
    (void)state;
    for (int i = 0; i < nfunction; i++) {
        const function_row *f = &functions[i];
        size_t room[32];
        char says[80];

        if (f->tells)
            continue;
        for (size_t size = 8; size < f->least; size++) {
            memset(room, 0xff, sizeof room);
            room[0] = size;
            snprintf(says, sizeof says,
                     "struct_size is %zu, at least %zu is needed", size,
                     f->least);
            wrong(f->call(room), PJRT_Error_Code_INVALID_ARGUMENT, says);
        }
    }
}

static void handles_that_are_null_are_named(void **state)
{
    (void)state;
    for (int i = 0; i < nfunction; i++) {
        const function_row *f = &functions[i];

        for (const field *g = f->needs; g->name; g++) {
            uintptr_t room[32];
            char says[160];

            memset(room, 0xff, sizeof room);
            room[0] = f->now;
            room[g->at / sizeof *room] = 0;
            snprintf(says, sizeof says, "%s: %s is NULL", f->name, g->name);
            wrong(f->call(room), PJRT_Error_Code_INVALID_ARGUMENT, says);
        }
    }
}

static void nothing_may_be_destroyed(void **state)
{
    (void)state;
    for (int i = 0; i < nfunction; i++) {
        const function_row *f = &functions[i];
        size_t room[32] = {f->now};

        if (f->repeat != ENDS || !strstr(f->name, "_Destroy"))
            continue;
        ok(call_plugin(f, room), f->name);
    }
}

/* What a deleted buffer still answers, and what it refuses. */
static void deleted_buffers_are_refused_where_data_are_needed(void **state)
{
    float x[4] = {1, 2, 3, 4}, to[4];

    (void)state;
    for (int i = 0; i < nfunction; i++) {
        const function_row *f = &functions[i];
        _Alignas(16) uint8_t room[256] = {0};
        PJRT_Buffer *b;
        PJRT_Error *e;

        if (f->deleted == NONE)
            continue;
        delete(b = put_f32(x, 4));
        memcpy(room, &f->now, sizeof f->now);
        for (const field *g = f->needs; g->name; g++) {
            const void *v = !strcmp(g->name, "dst_memory")   ? (void *)memory
                            : !strcmp(g->name, "dst_device") ? (void *)device
                                                             : b;
            memcpy(room + g->at, &v, sizeof v);
        }
        if (!strcmp(f->name, "PJRT_Buffer_ToHostBuffer")) {
            ((PJRT_Buffer_ToHostBuffer_Args *)room)->dst = to;
            ((PJRT_Buffer_ToHostBuffer_Args *)room)->dst_size = sizeof to;
        } else if (!strcmp(f->name, "PJRT_Buffer_Bitcast")) {
            static const int64_t dims[] = {2, 2};

            ((PJRT_Buffer_Bitcast_Args *)room)->element_type =
                PJRT_Buffer_Type_F32;
            ((PJRT_Buffer_Bitcast_Args *)room)->dims = dims;
            ((PJRT_Buffer_Bitcast_Args *)room)->num_dims = 2;
        }
        e = f->call(room);
        if (f->deleted == REFUSED && !e)
            fail_msg("%s takes a deleted buffer", f->name);
        if (f->deleted == REFUSED)
            wrong(e, PJRT_Error_Code_INVALID_ARGUMENT,
                  strstr(f->name, "Decrease") ? "reference" : "deleted");
        else
            ok(e, f->name);
        if (!strcmp(f->name, "PJRT_Buffer_ReadyEvent"))
            await_error(((PJRT_Buffer_ReadyEvent_Args *)room)->event,
                        PJRT_Error_Code_INVALID_ARGUMENT, "deleted");
        destroy(b);
    }
}

TESTS(table, T(the_table_is_full), T(short_structs_are_refused),
      T(handles_that_are_null_are_named), T(nothing_may_be_destroyed),
      T(deleted_buffers_are_refused_where_data_are_needed))

/* ---- running them ---- */

/* After all themes: each function worked, those that may not be called twice
 * have refused it, and each list was once without elements, so NULL. */
static void every_function_was_called(void **state)
{
    int bad = 0;

    (void)state;
    for (int i = 0; i < nfunction; i++) {
        const function_row *f = &functions[i];

        if (!f->nok != (f->repeat == NEVER))
            bad++, print_error("%s: %d calls succeeded\n", f->name, f->nok);
        if ((f->repeat == ONCE || f->repeat == NEVER) && !f->nfailed)
            bad++, print_error("%s was never refused\n", f->name);
        for (int k = 0; f->lists[k].name; k++)
            if (!f->lists[k].nempty)
                bad++, print_error("%s never had %s of length 0\n", f->name,
                                   f->lists[k].name);
    }
    assert_int_equal(bad, 0);
}

static int open_client(void **state)
{
    (void)state;
    for (int i = 0; i < nfunction; i++)
        functions[i].nok = functions[i].nfailed = 0;
    DO(p, Plugin_Initialize, .extension_start = NULL);
    DO(q, Plugin_Initialize, .extension_start = NULL);
    DO(c, Client_Create, .num_options = 0);
    client = c.client;
    DO(d, Client_AddressableDevices, .client = client);
    assert_int_equal(d.num_addressable_devices, 2);
    device = d.addressable_devices[0];
    DO(m, Device_AddressableMemories, .device = device);
    assert_int_equal(m.num_memories, 3);
    memory = m.memories[0];
    pinned = m.memories[1];
    unpinned = m.memories[2];
    return 0;
}

static int close_client(void **state)
{
    (void)state;
    DO(a, Client_Destroy, .client = client);
    return 0;
}

static size_t add_theme(struct CMUnitTest *tests, size_t n, const char *name,
                        const struct CMUnitTest *(*theme)(size_t *),
                        char **named)
{
    size_t k;
    const struct CMUnitTest *of = theme(&k);
    bool wanted = !*named;

    for (; *named; named++)
        wanted |= !strcmp(*named, name);
    if (!wanted)
        return n;
    memcpy(tests + n, of, k * sizeof *of);
    return n + k;
}

/* The themes that are named; without names all, and the count of calls. */
static int run_themes(char **named)
{
    static const char *const mode_name[] = {"now", "0.112", "least", "long"};
    struct CMUnitTest tests[200];
    size_t n = 0;
    char name[40];

#define X(theme) n = add_theme(tests, n, #theme, theme_##theme, named);
    THEMES(X)
#undef X
    if (!*named)
        tests[n++] = (struct CMUnitTest)T(every_function_was_called);
    snprintf(name, sizeof name, "structs: %s", mode_name[mode]);
    return _cmocka_run_group_tests(name, tests, n, open_client, close_client);
}

int main(int argc, char **argv)
{
    const PJRT_Api *(*entry)(void);
    void *lib = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    int failed = 0;

    if (!lib) {
        fprintf(stderr, "usage: test_plugin LIBRARY [THEME...]; %s\n",
                argc > 1 ? dlerror() : "");
        return 2;
    }
    *(void **)&entry = dlsym(lib, "GetPjrtApi");
    if (!entry || dlsym(lib, "sundog_compile") || dlsym(lib, "pjrt_api")) {
        fprintf(stderr, "%s: GetPjrtApi alone must be exported\n", argv[1]);
        return 2;
    }
    library = argv[1];
    setenv("SUNDOG_DEVICE", "host", 1);
    setenv("SUNDOG_HOST_DEVICES", "2", 1);
    plugin_test_open(entry());
    for (mode = 0; mode < SIZE_COUNT; mode++)
        failed |= run_themes(argv + 2);
    return failed;
}
