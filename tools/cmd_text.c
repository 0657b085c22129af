/* opt, dump, compile, devices: what needs no execution. */
#include <stdio.h>
#include <stdlib.h>

#include "frontend.h"
#include "passes.h"
#include "plan.h"
#include "sundog.h"

#include <sys/stat.h>
#include <unistd.h>

/* Protobuf has small numbers everywhere, text none of them. */
static bool is_text(const sd_buf *b)
{
    for (size_t i = 0; i < b->len && i < 256; i++)
        if ((uint8_t)b->at[i] < '\t')
            return false;
    return true;
}

/* Both messages begin with field 1: here the module, whose own first field is
 * its name, there the name, in which no newline stands. */
static bool has_config(const sd_buf *b)
{
    sd_cursor c = sd_cursor_of((sd_bytes){(uint8_t *)b->at, b->len});

    sd_read_u8(&c);
    sd_read_leb(&c);
    return sd_read_u8(&c) == 0x0a;
}

static bool ends_in(const char *s, const char *end)
{
    size_t n = strlen(s), k = strlen(end);

    return n >= k && strcmp(s + n - k, end) == 0;
}

sd_status tool_read(const char *path, sd_buf *bytes, const char **format)
{
    sd_status st = sd_file_read(path, bytes);

    if (st)
        return st;
    *format = bytes->len >= 4 && !memcmp(bytes->at, "ML\xEFR", 4) ? "mlir"
              : is_text(bytes) && ends_in(path, ".mlir")          ? "mlir"
              : is_text(bytes)                                    ? "hlo_text"
              : has_config(bytes) ? "hlo_with_config"
                                  : "hlo";
    return NULL;
}

sd_status tool_module(sd_arena *a, const char *path, hlo_module **out)
{
    sd_buf bytes = {0};
    const char *format;
    sd_status st = tool_read(path, &bytes, &format);

    if (!st)
        st = sd_note(frontend_read(a, format, strlen(format),
                                   (sd_bytes){(uint8_t *)bytes.at, bytes.len},
                                   out),
                     "%s", path);
    sd_buf_finish(&bytes);
    return st;
}

static sd_status find_target(const tool_args *t, device_desc *out)
{
    const char *name = t->target ? t->target : "host:v3";
    sd_buf names = {0};
    sd_status st;

    if (device_desc_of_name(name, out))
        return NULL;
    for (int i = 0; i < device_desc_count(); i++)
        sd_buf_fmt(&names, "%s%s", i ? ", " : "", device_desc_at(i)->name);
    st = sd_error(SD_NOT_FOUND, "no device is called %s; there are %.*s", name,
                  (int)names.len, names.at);
    sd_buf_finish(&names);
    return st;
}

static void print_buf(sd_buf *b)
{
    fwrite(b->at, 1, b->len, stdout);
    sd_buf_finish(b);
}

static sd_status named_passes(hlo_module *m, const device_desc *dev,
                              const char *list)
{
    char name[64];

    while (*list) {
        size_t n = strcspn(list, ",");
        const hlo_pass *p;

        snprintf(name, sizeof name, "%.*s", (int)n, list);
        if (!(p = hlo_pass_of_name(name)))
            return sd_error(SD_NOT_FOUND,
                            "no pass is called %s; sundog passes has them",
                            name);
        p->run(m, dev);
        list += n + (list[n] == ',');
    }
    return hlo_verify(m);
}

sd_status tool_passes(const tool_args *t)
{
    (void)t;
    for (int i = 0; i < hlo_pass_count; i++) {
        const hlo_pass *p = &hlo_pass_table[i];

        printf("%-21s %s%s\n", p->name, p->help,
               p->needed ? " (cannot be left out)" : "");
    }
    return NULL;
}

sd_status tool_opt(const tool_args *t)
{
    sd_arena *a = sd_arena_create();
    sd_options o = {0};
    sd_buf text = {0};
    device_desc dev;
    hlo_module *m;
    plan *p = NULL;
    sd_status st;

    sd_options_from_env(&o);
    sd_options_warn();
    if ((st = sd_options_check(&o)) || (st = find_target(t, &dev)) ||
        (st = tool_module(a, t->file[0], &m)))
        goto done;
    st = t->passes ? named_passes(m, &dev, t->passes)
                   : hlo_optimize(m, &dev, &o, NULL, NULL);
    if (st)
        goto done;
    if (t->plan) {
        if ((st = plan_make(a, m, &dev, &o, &p)))
            goto done;
        plan_print(&text, p);
    } else {
        hlo_print(&text, m);
    }
    print_buf(&text);
done:
    plan_destroy(p);
    sd_arena_destroy(a);
    return st;
}

sd_status tool_dump(const tool_args *t)
{
    const char *to = t->to ? t->to : "hlo_text";
    bool proto = !strcmp(to, "hlo"), config = !strcmp(to, "hlo_with_config");
    sd_arena *a = sd_arena_create();
    sd_buf out = {0};
    hlo_module *m;
    sd_status st = tool_module(a, t->file[0], &m);

    if (!st && !proto && !config && strcmp(to, "hlo_text"))
        st = sd_error(SD_NOT_FOUND,
                      "--to=%s: there are hlo_text, hlo and hlo_with_config",
                      to);
    if (!st) {
        if (proto || config)
            hlo_proto_write(&out, m, config, INT64_MAX);
        else
            hlo_print(&out, m);
        print_buf(&out);
    }
    sd_arena_destroy(a);
    return st;
}

/* A dump that cannot be written is a warning to a framework, which goes on;
 * here it is what was asked for. */
static sd_status find_folder(const char *dir)
{
    struct stat s;

    if (!stat(dir, &s) && S_ISDIR(s.st_mode) && !access(dir, W_OK))
        return NULL;
    return sd_error(SD_INVALID, "--out=%s: no folder that can be written to",
                    dir);
}

static sd_status check_dump(const char *dir, bool undumped)
{
    sd_status st = find_folder(dir);

    if (!st && undumped)
        st = sd_error(SD_INVALID,
                      "--out=%s: not every file could be written; the warning "
                      "says why",
                      dir);
    return st;
}

sd_status tool_compile(const tool_args *t)
{
    sd_options o = {0};
    sd_buf bytes = {0};
    device_desc dev;
    thunk_program *p = NULL;
    compile_request rq = {.device = &dev};
    bool undumped = false;
    compile_services sv = {.env = &o, .undumped = &undumped};
    const char *dir = t->out ? t->out : ".";
    compile_fn compile;
    sd_status st;

    if (t->time)
        setenv("SUNDOG_LOG", "debug", 1); /* the compiler says it there */
    sd_options_from_env(&o);
    if (!t->time) {
        o.value[SD_OPT_DUMP_TO] = dir;
        o.value[SD_OPT_DUMP_PASSES] = ".*";
    }
    sd_options_warn();
    if ((st = sd_options_check(&o)) || (st = find_target(t, &dev)) ||
        (st = tool_read(t->file[0], &bytes, &rq.format)) ||
        (st = tool_compiler(&compile)))
        goto done;
    rq.format_len = strlen(rq.format);
    rq.program = (sd_bytes){(uint8_t *)bytes.at, bytes.len};
    if ((st = compile(&rq, &sv, &p)))
        goto done;
    if (!t->time && (st = check_dump(dir, undumped)))
        goto done;
    printf("%s for %s: %d %s, %d %s, %" PRIu64 " temp bytes%s%s\n", p->name,
           dev.name, p->nkernel, p->nkernel == 1 ? "kernel" : "kernels",
           p->nbuffer, p->nbuffer == 1 ? "buffer" : "buffers", p->temp_bytes,
           t->time ? "" : "; files in ", t->time ? "" : dir);
done:
    thunk_program_release(p);
    sd_buf_finish(&bytes);
    return st;
}

static void print_device(const char *what, const device_desc *d)
{
    printf("%s %-12s units %d, lanes %d, group %d, local %zu B%s%s%s%s%s\n",
           what, d->name, d->units, d->lanes, d->group, d->local_bytes,
           d->features & DEVICE_HAS_F64 ? ", f64" : "",
           d->libs & DEVICE_LIB_ONEDNN ? ", oneDNN" : "",
           d->libs & DEVICE_LIB_LAPACK && d->kind == DEVICE_HOST ? ", LAPACK"
                                                                 : "",
           *d->driver ? ", " : "", d->driver);
}

sd_status tool_devices(const tool_args *t)
{
    sd_options o = {0};
    xpu_client *c;
    sd_status st;

    (void)t;
    printf("sundog %s\n", tool_build);
    setenv("SUNDOG_LOG", "info", 0); /* why a GPU was not taken */
    sd_log_init();
    sd_options_from_env(&o);
    st = xpu_client_create(&o, &c);
    for (int i = 0; !st && i < xpu_client_count(c); i++)
        print_device("here      ", xpu_device_desc(xpu_client_device(c, i)));
    for (int i = 0; i < device_desc_count(); i++)
        print_device("described ", device_desc_at(i));
    if (!st)
        xpu_client_destroy(c);
    return st;
}
