/* A program from nowhere, down the whole road: reader, verifier, printer and
 * back, passes, plan, and the emitters' IR; now and then LLVM's code too.  At
 * each station it is refused with a status, or the next one takes it.  A
 * status that blames ourselves (INTERNAL) is a finding.
 *
 * FUZZ_FORMAT is the format's name as PJRT gives it; the device is one of the
 * described ones, chosen by the bytes, so that an input always does the same.
 */
#include "frontend.h"
#include "passes.h"
#include "plan.h"
#include "target.h"

#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void fail(const char *what, sd_status st)
{
    fprintf(stderr, "%s: %s\n", what, st->message);
    abort();
}

/* Refused?  Frees st. */
static bool refused(const char *station, sd_status st)
{
    if (!st)
        return false;
    if (st->code == SD_INTERNAL)
        fail(station, st);
    sd_status_free(st);
    return true;
}

/* The module that came back prints the same text. */
static void same_text(const sd_buf *text, sd_status st, const hlo_module *back)
{
    sd_buf again = {0};

    if (st || (st = hlo_verify(back)))
        fail("a module does not read back",
             sd_note(st, "%.*s", (int)text->len, text->at));
    hlo_print(&again, back);
    if (again.len != text->len || memcmp(again.at, text->at, text->len))
        fail("a module reads back as another",
             sd_error(SD_INTERNAL, "%.*s\n%.*s", (int)text->len, text->at,
                      (int)again.len, again.at));
    sd_buf_finish(&again);
}

/* Text and protobuf hold all that a module says. */
static void check_writing(sd_arena *a, const hlo_module *m)
{
    enum { MOST = 1 << 18 };
    sd_buf text = {0}, proto = {0};
    hlo_module *back = NULL;
    sd_status st;

    hlo_print(&text, m);
    if (text.len < MOST) {
        st = hlo_parse(a, text.at, text.len, &back);
        same_text(&text, st, back);
        hlo_proto_write(&proto, m, true, INT64_MAX);
        st = hlo_proto_read(a, (sd_bytes){(uint8_t *)proto.at, proto.len}, true,
                            &back);
        same_text(&text, st, back);
    }
    sd_buf_finish(&text);
    sd_buf_finish(&proto);
}

/* LLVM takes longer than all the rest together; for SPIR-V even more, which
 * comes from a process of its own. */
static sd_status build(plan *p, uint64_t hash)
{
    uint64_t rare = p->dev->kind == DEVICE_HOST ? 64 : 1024;

    return hash / 64 % rare ? target_check(p)
                            : target_build(p, NULL, NULL, NULL, NULL, NULL);
}

static void compile(sd_arena *a, hlo_module *m, uint64_t hash)
{
    const device_desc *dev =
        device_desc_at((int)(hash % (uint64_t)device_desc_count()));
    const sd_options none = {0};
    plan *p = NULL;

    if (refused("passes", hlo_optimize(m, dev, &none, NULL, NULL)) ||
        refused("plan", plan_make(a, m, dev, &none, &p)))
        return;
    if (!refused("plan's checks", plan_verify(p)))
        refused("target", build(p, hash));
    plan_destroy(p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char format[] = FUZZ_FORMAT;
    sd_arena *a = sd_arena_create();
    hlo_module *m;

    if (!refused("reader", frontend_read(a, format, sizeof format - 1,
                                         (sd_bytes){data, size}, &m)) &&
        !refused("verifier", hlo_verify(m))) {
        check_writing(a, m);
        compile(a, m, sd_hash(data, size, 0));
    }
    sd_arena_destroy(a);
    return 0;
}
