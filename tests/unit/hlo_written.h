/* Modules from text and as text, for tests in which both must succeed. */
#ifndef HLO_WRITTEN_H
#define HLO_WRITTEN_H

#include <string.h>

#include "hlo.h"

/* The sum that programs of one type apply. */
#define ADD \
    "add { a = f32[] parameter(0) b = f32[] parameter(1) " \
    "ROOT c = f32[] add(a, b) }\n"

static inline hlo_module *parse(sd_arena *a, const char *text, size_t len)
{
    hlo_module *m = NULL;
    sd_status st = hlo_parse(a, text, len, &m);

    if (st || (st = hlo_verify(m)))
        fail_msg("%s\n%.*s", st->message, (int)len, text);
    return m;
}

static inline hlo_module *parse_text(sd_arena *a, const char *text)
{
    return parse(a, text, strlen(text));
}

static inline char *print(sd_arena *a, const hlo_module *m)
{
    sd_buf b = {0};
    char *s;

    hlo_print(&b, m);
    s = sd_arena_str(a, b.at, b.len);
    sd_buf_finish(&b);
    return s;
}

#endif
