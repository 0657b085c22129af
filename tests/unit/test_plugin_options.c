/* Compile options as the runtime reads them: on which devices a program is to
 * run.  The bytes are protobuf and may be anybody's. */
#include "plugin_test.h"

/* ---- options in bytes ---- */

static void put_field(sd_buf *b, int number, const void *at, size_t n)
{
    sd_buf_u8(b, (uint8_t)(number << 3 | 2));
    sd_buf_leb(b, n);
    sd_buf_add(b, at, n);
}

/* CompileOptionsProto of these build options, or of an assignment in them. */
static sd_buf options_of(const void *at, size_t n, bool is_assignment)
{
    sd_buf build = {0}, all = {0};

    if (is_assignment)
        put_field(&build, 9, at, n);
    else
        sd_buf_add(&build, at, n);
    put_field(&all, 3, build.at, build.len);
    sd_buf_finish(&build);
    return all;
}

/* Takes the options; the program is never looked at. */
static void compile_refuses(sd_buf b, const char *says)
{
    char none[] = "";
    PJRT_Program p = {.struct_size = PJRT_Program_STRUCT_SIZE, .code = none};

    BAD(INVALID_ARGUMENT, says, Client_Compile, .client = client, .program = &p,
        .compile_options = b.at, .compile_options_size = b.len);
    sd_buf_finish(&b);
}

/* ---- tests ---- */

static void damaged_options_are_refused(void **state)
{
    sd_buf whole = {0}, other = {0};

    (void)state;
    sd_buf_u8(&whole, 3 << 3 | 3);
    compile_refuses(whole,
                    "compile_options: expected a field of its wire type");
    sd_buf_add(&other, "\0\1", 2);
    compile_refuses(other, "compile_options: expected a field's tag");
    compile_refuses(options_of("\x20", 1, false),
                    "compile_options: expected a varint at offset 3");
}

/* An assignment has its sizes and a row of device ids a partition. */
static void assignments_that_do_not_add_up_are_refused(void **state)
{
    static const struct {
        const char *bytes, *says;
        size_t n;
    } c[] = {
        {"\x08", "compile_options: expected a varint at offset 5", 1},
        {"\x10\1", "device assignment of 0 replicas x 1 partitions", 2},
        {"\x08\1\x10\1\x1a\3\x0a\1\0\x1a\3\x0a\1\0",
         "device assignment: 2 rows for 1 partitions", 14},
        {"\x08\1\x10\1", "device assignment: 0 rows for 1 partitions", 4},
        {"\x08\1\x10\1\x1a\4\x0a\2\0\1",
         "device assignment: 2 devices for 1 replicas", 10},
        {"\x08\1\x10\1\x1a\3\x0a\1\x80",
         "compile_options: expected a varint at offset 13", 9},
        {"\x08\1\x10\1\x1a\3\x0a\1\7",
         "compiling for device 7: there are 0 to 1", 9},
    };

    (void)state;
    for (size_t i = 0; i < SD_COUNTOF(c); i++)
        compile_refuses(options_of(c[i].bytes, c[i].n, true), c[i].says);
}

static void a_load_on_other_devices_is_refused(void **state)
{
    PJRT_LoadedExecutable *l = program(1, false);
    sd_buf far = options_of("\x08\1\x10\1\x1a\3\x0a\1\7", 9, true);
    sd_buf many = options_of("\x20\2\x28\1", 4, false);

    (void)state;
    DO(g, LoadedExecutable_GetExecutable, .loaded_executable = l);
    BAD(INVALID_ARGUMENT, "jit_copy is to run on device 7: there are 0 to 1",
        Client_Load, .client = client, .executable = g.executable,
        .compile_options = far.at, .compile_options_size = far.len);
    BAD(INVALID_ARGUMENT,
        "options of 2 replicas x 1 partitions for jit_copy, which was "
        "compiled for 1 x 1",
        Client_Load, .client = client, .executable = g.executable,
        .compile_options = many.at, .compile_options_size = many.len);
    DO(e, Executable_Destroy, .executable = g.executable);
    unload(l);
    sd_buf_finish(&far);
    sd_buf_finish(&many);
}

TESTS(options, T(damaged_options_are_refused),
      T(assignments_that_do_not_add_up_are_refused),
      T(a_load_on_other_devices_is_refused))
