/* An error is of that code and says that text; `what` is for the reader of a
 * test that fails. */
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

#endif
