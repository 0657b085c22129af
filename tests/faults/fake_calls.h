/* What a fake library counts: its calls, of which one fails, and the objects
 * that it has made and nobody has destroyed. */
#ifndef FAKE_CALLS_H
#define FAKE_CALLS_H

#include <stdatomic.h>
#include <stdlib.h>

static _Atomic long ncall, nlive;
static long bad_call;
static int bad_error;

/* Calls are counted anew; -1: none fails. */
static void fail_at(long call, int error)
{
    ncall = 0;
    bad_call = call;
    bad_error = error;
}

static int answer(void)
{
    return ++ncall == bad_call ? bad_error : 0;
}

static int make(void **out)
{
    int bad = answer();

    if (bad)
        return bad;
    *out = malloc(1);
    nlive++;
    return 0;
}

static int drop(void *p)
{
    free(p);
    nlive--;
    return 0;
}

#endif
