/* Saved executables made step by step: nothing is compiled for them. */
#include "saved_by_hand.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static const char host[] = "host:v3";
static const int64_t of_four[] = {4};

static int add_buffer(thunk_program *p, thunk_buffer_kind kind, int i,
                      bool alias)
{
    return thunk_add_buffer(
        p, (thunk_buffer){
               .kind = kind, .index = i, .bytes = 16, .alias = alias ? 0 : -1});
}

static thunk *add_step(thunk_program *p, thunk_kind kind, int narg)
{
    thunk *t = &p->seq.at[p->seq.n++];

    *t = (thunk){
        .kind = kind, .name = thunk_kind_name[kind], .narg = narg, .trip = -1};
    t->arg = sd_arena_array(p->arena, thunk_slice, narg);
    return t;
}

static void add_copy(thunk_program *p, int i, bool alias)
{
    int from = add_buffer(p, THUNK_B_PARAM, i, false);
    int to = add_buffer(p, THUNK_B_OUTPUT, i, alias);
    thunk *t;

    if (alias)
        return;
    t = add_step(p, THUNK_COPY, 2);
    t->arg[0] = (thunk_slice){from, 0, 16};
    t->arg[1] = (thunk_slice){to, 0, 16};
}

/* Argument 0 goes to channel 2; what comes by channel 3 is the result. */
static void add_channels(thunk_program *p)
{
    int at[2] = {add_buffer(p, THUNK_B_PARAM, 0, false),
                 add_buffer(p, THUNK_B_OUTPUT, 0, false)};

    for (int i = 0; i < 2; i++) {
        thunk *t = add_step(p, i ? THUNK_RECV : THUNK_SEND, 1);
        int64_t *channel = sd_arena_array(p->arena, int64_t, 1);

        *channel = 2 + i;
        t->attr = channel;
        t->nattr = 1;
        t->arg[0] = (thunk_slice){at[i], 0, 16};
    }
}

static thunk_program *make_program(const char *device, const char *name, int n,
                                   bool donate)
{
    device_desc d;
    thunk_program *p;

    assert_true(device_desc_of_name(device, &d));
    d.features = 0;
    d.libs = 0;
    p = thunk_program_create(name, &d);
    p->nparam = p->noutput = n;
    p->param = sd_arena_array(p->arena, thunk_type, n);
    p->output = sd_arena_array(p->arena, thunk_type, n);
    p->donatable = sd_arena_array(p->arena, bool, n);
    p->donatable[0] = donate;
    p->seq.at = sd_arena_array(p->arena, thunk, n + 1);
    for (int i = 0; i < n; i++)
        p->param[i] = p->output[i] = (thunk_type){SD_F32, 1, of_four, 16, NULL};
    p->fingerprint = 0xabc;
    return p;
}

/* Takes p. */
static sd_buf save(thunk_program *p)
{
    static const char options[] = {0x1a, 4, 0x20, 1, 0x28, 1};
    sd_buf body = {0}, b = {0};

    assert_null(thunk_save(p, &body));
    thunk_program_release(p);
    sd_buf_str(&b, "SDEXECUT");
    sd_buf_u32(&b, 1);
    sd_buf_u64(&b, sizeof options);
    sd_buf_u64(&b, sd_hash(options, sizeof options, 1));
    sd_buf_add(&b, options, sizeof options);
    sd_buf_add(&b, body.at, body.len);
    sd_buf_finish(&body);
    return b;
}

sd_buf saved(int n, bool donate)
{
    thunk_program *p = make_program(host, "jit_copy", n, donate);

    for (int i = 0; i < n; i++)
        add_copy(p, i, donate && !i);
    return save(p);
}

sd_buf saved_layouts(const char *layouts, size_t bytes)
{
    thunk_program *p = make_program(host, "jit_copy", 1, false);

    add_copy(p, 0, false);
    thunk_add_section(p, "layouts", layouts, bytes);
    return save(p);
}

sd_buf saved_channels(const char *device)
{
    thunk_program *p = make_program(device, "jit_call", 1, false);

    add_channels(p);
    return save(p);
}

sd_buf saved_custom(const char *target, const char *attributes)
{
    static const int64_t types[] = {1, 11, 1, 4, 11, 1, 4}; /* 11: F32 */
    thunk_program *p = make_program(host, "jit_custom", 1, false);
    int from = add_buffer(p, THUNK_B_PARAM, 0, false);
    int to = add_buffer(p, THUNK_B_OUTPUT, 0, false);
    thunk *t = add_step(p, THUNK_CUSTOM, 2);

    t->target = target;
    t->config = attributes;
    t->attr = types;
    t->nattr = SD_COUNTOF(types);
    t->arg[0] = (thunk_slice){from, 0, 16};
    t->arg[1] = (thunk_slice){to, 0, 16};
    return save(p);
}
