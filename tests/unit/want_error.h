/* What a call gives is success, or an error of that code that says that text;
 * `what` is for the reader of a test that fails. */
#ifndef WANT_ERROR_H
#define WANT_ERROR_H

#include <string.h>

#include "base.h"

static inline void want_error(sd_status st, sd_code code, const char *text,
                              const char *what)
{
    if (!st || st->code != code || !strstr(st->message, text))
        fail_msg("%s\ngives %d \"%s\", not %d \"%s\"", what,
                 st ? (int)st->code : 0, st ? st->message : "", (int)code,
                 text);
    sd_status_free(st);
}

/* The same of a call whose error says enough for the reader. */
static inline void want_refusal(sd_status st, sd_code code, const char *text)
{
    want_error(st, code, text, "what should be refused");
}

static inline void want_success(sd_status st)
{
    if (st)
        fail_msg("%s: %s", st->where, st->message);
}

#endif
