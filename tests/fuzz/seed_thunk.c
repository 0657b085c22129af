/* Writes seeds of fuzz_thunk: the body of what a program compiles to.
 *
 *   seed_thunk DEVICE FILE.hlo OUT */
#include "compile.h"

#include <stdio.h>

enum { HEADER = 8 + 4 + 8 + 8 }; /* magic, version, length, sum */

static sd_status write_body(const char *device, const char *from,
                            const char *to)
{
    sd_options o = {0};
    compile_services sv = {.env = &o};
    device_desc dev;
    sd_buf text = {0}, saved = {0};
    thunk_program *p = NULL;
    sd_status st;

    if (!device_desc_of_name(device, &dev))
        return sd_error(SD_NOT_FOUND, "no device %s", device);
    compile_request rq = {
        .format = "hlo_text", .format_len = 8, .device = &dev};

    if ((st = sd_file_read(from, &text)))
        return st;
    rq.program = (sd_bytes){(uint8_t *)text.at, text.len};
    if (!(st = sundog_compile(&rq, &sv, &p)) && !(st = thunk_save(p, &saved)))
        st = sd_file_write(to, saved.at + HEADER, saved.len - HEADER);
    thunk_program_release(p);
    sd_buf_finish(&text);
    sd_buf_finish(&saved);
    return st;
}

int main(int argc, char **argv)
{
    sd_status st;

    if (argc != 4) {
        fprintf(stderr, "usage: seed_thunk DEVICE FILE.hlo OUT\n");
        return 2;
    }
    if (!(st = write_body(argv[1], argv[2], argv[3])))
        return 0;
    fprintf(stderr, "%s: %s\n", argv[2], st->message);
    sd_status_free(st);
    return 1;
}
