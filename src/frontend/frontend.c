/* Program bytes to a module, by format. */
#include "frontend.h"

#include "mlir.h"

static bool is_format(const char *s, size_t len, const char *name)
{
    return len == strlen(name) && memcmp(s, name, len) == 0;
}

void mlir_read_either(mlir_reader *r, sd_bytes program)
{
    if (mlir_is_bytecode(program))
        mlir_read(r, program);
    else
        mlir_read_text(r, program);
}

/* Everything the reader makes dies here; what the module keeps is copied. */
static sd_status read_mlir(sd_arena *a, sd_bytes program,
                           const hlo_module *whole, hlo_module **out)
{
    mlir_reader r = {.a = sd_arena_create(), .out = a, .whole = whole};

    mlir_read_either(&r, program);
    vhlo_import_module(&r, NULL, out);
    sd_arena_destroy(r.a);
    return r.st;
}

sd_status frontend_read_part(sd_arena *a, sd_bytes program,
                             const hlo_module *whole, hlo_module **out)
{
    return read_mlir(a, program, whole, out);
}

static bool looks_like_text(sd_bytes p)
{
    for (size_t i = 0; i < p.len && i < 256; i++)
        if (p.at[i] < 9 || p.at[i] == 0x7f)
            return false;
    return p.len > 0;
}

sd_status frontend_read(sd_arena *a, const char *format, size_t format_len,
                        sd_bytes program, hlo_module **out)
{
    if (is_format(format, format_len, "hlo_text"))
        return hlo_parse(a, (const char *)program.at, program.len, out);
    if (is_format(format, format_len, "hlo"))
        return hlo_proto_read(a, program, false, out);
    if (is_format(format, format_len, "hlo_with_config"))
        return hlo_proto_read(a, program, true, out);
    if (!is_format(format, format_len, "mlir"))
        return sd_error(SD_INVALID,
                        "program format '%.*s'; \"mlir\" (VHLO bytecode or "
                        "StableHLO text), \"hlo\", \"hlo_with_config\" "
                        "(protobuf) and "
                        "\"hlo_text\" are read",
                        (int)SD_MIN(format_len, (size_t)64), format);
    if (mlir_is_bytecode(program) || looks_like_text(program))
        return read_mlir(a, program, NULL, out);
    return sd_error(SD_INVALID,
                    "offset 0: expected MLIR bytecode's magic 4D 4C EF 52, or "
                    "MLIR's text, in a program of %zu bytes",
                    program.len);
}
