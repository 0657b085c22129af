/* A saved program's body from nowhere, under a header whose sum is right: a
 * status, or a program that verifies, prints, saves to the same again, and is
 * loaded on the host: its code is taken apart, placed and relocated, its
 * constants copied.
 *
 * Machine code is not believed to be harmless: what a kernel does to its slots
 * no loader can see, so a program is only as good as the sum over it, which
 * says that our compiler wrote it.  So only programs without kernels, library
 * calls and loops (which may not end) are run here. */
#include "guarded.h"
#include "thunk.h"

#include <stdio.h>
#include <stdlib.h>

enum { MOST_ARGS = GUARDED_MOST, MOST_BYTES = 1 << 22 };

static void fail(const char *what, sd_status st)
{
    fprintf(stderr, "%s: %s\n", what, st ? st->message : "");
    abort();
}

static sd_bytes bytes(const sd_buf *b)
{
    return (sd_bytes){(const uint8_t *)b->at, b->len};
}

/* ---- running ---- */

static xpu_device *host(void)
{
    static xpu_client *client; /* one thread: libFuzzer's */

    if (!client) {
        sd_options o = {0};
        sd_status st;

        o.value[SD_OPT_DEVICE] = "host";
        o.value[SD_OPT_THREADS] = "1";
        if ((st = xpu_client_create(&o, &client)))
            fail("no host device", st);
    }
    return xpu_client_device(client, 0);
}

static bool is_harmless(const thunk_seq *s)
{
    for (int i = 0; i < s->n; i++) {
        const thunk *t = &s->at[i];

        if (t->kind == THUNK_KERNEL || t->kind == THUNK_LIBCALL ||
            t->kind == THUNK_WHILE)
            return false;
        for (int k = 0; k < t->nseq; k++)
            if (!is_harmless(&t->seq[k]))
                return false;
    }
    return true;
}

static bool is_small(const thunk_program *p)
{
    uint64_t sum = p->temp_bytes;

    if (p->nparam > MOST_ARGS || p->noutput > MOST_ARGS || sum > MOST_BYTES)
        return false;
    for (int i = 0; i < p->nparam; i++)
        sum += SD_MIN(p->param[i].bytes, (uint64_t)MOST_BYTES);
    for (int i = 0; i < p->noutput; i++)
        sum += SD_MIN(p->output[i].bytes, (uint64_t)MOST_BYTES);
    return sum <= MOST_BYTES;
}

static sd_status execute(const thunk_program *p, xpu_program *x)
{
    guarded_call c = {0};
    bool keep[MOST_ARGS];
    xpu_call call = {.arg = c.in, .narg = p->nparam, .keep = keep};
    xpu_event *done = NULL;
    sd_status st = NULL;

    memset(keep, true, sizeof keep); /* the memory is ours */
    for (int i = 0; i < p->nparam && !st; i++) {
        const thunk_type *t = &p->param[i];

        st = guarded_argument(&c, i, host(), t->dtype, t->rank, t->dim, NULL,
                              t->bytes);
    }
    if (!st && !(st = xpu_execute(x, &call, c.out, &done)))
        st = xpu_event_wait(done);
    xpu_event_release(done);
    guarded_finish(&c);
    return st;
}

static void load_and_run(thunk_program *p)
{
    xpu_program *x = NULL;
    sd_status st = xpu_program_load(host(), p, &x);

    if (!st && is_harmless(&p->seq) && is_small(p))
        st = execute(p, x);
    if (st && st->code == SD_INTERNAL)
        fail("loading or running", st);
    sd_status_free(st);
    xpu_program_release(x);
}

/* ---- the file ---- */

static void check_saving(const thunk_program *p)
{
    sd_buf text = {0}, saved = {0}, again = {0};
    thunk_program *q = NULL;

    if (thunk_verify(p))
        fail("a loaded program does not verify", NULL);
    thunk_print(&text, p);
    if (thunk_save(p, &saved) || thunk_load(bytes(&saved), &q))
        fail("a loaded program does not save and load", NULL);
    if (thunk_save(q, &again) || again.len != saved.len ||
        memcmp(again.at, saved.at, saved.len))
        fail("a program changes by being saved and loaded", NULL);
    thunk_program_release(q);
    sd_buf_finish(&text);
    sd_buf_finish(&saved);
    sd_buf_finish(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    sd_buf file = {0};
    thunk_program *p;
    sd_status st;

    sd_buf_add(&file, "SDTHUNK", 8);
    sd_buf_u32(&file, THUNK_VERSION);
    sd_buf_u64(&file, size);
    sd_buf_u64(&file, sd_hash(data, size, THUNK_VERSION));
    sd_buf_add(&file, data, size);
    st = thunk_load(bytes(&file), &p);
    sd_buf_finish(&file);
    if (st) {
        sd_status_free(st);
        return 0;
    }
    check_saving(p);
    load_and_run(p);
    thunk_program_release(p);
    return 0;
}
