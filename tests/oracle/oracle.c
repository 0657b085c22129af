/* The oracle for Python: a program read by our frontend and computed by the
 * reference evaluator, and nothing else of the road.  A test's library of a
 * few C calls (tests/python/oracle.py); never shipped. */
#include "frontend.h"
#include "ref.h"

#define ORACLE __attribute__((visibility("default")))

typedef struct {
    sd_arena *arena, *run; /* the module's; the last run's values */
    hlo_module *module;
    sd_status error; /* of the last call */
    const sd_shape **result;
    const hlo_value **value; /* leaves of the last run's result */
    int nresult;
} oracle;

ORACLE oracle *oracle_create(void);
ORACLE void oracle_destroy(oracle *o);
ORACLE const char *oracle_message(const oracle *o);
ORACLE int oracle_code(const oracle *o);
ORACLE bool oracle_read(oracle *o, const char *format, const void *program,
                        size_t bytes);
ORACLE bool oracle_run(oracle *o, const void *const *arg, int narg);
ORACLE const char *oracle_text(oracle *o);
ORACLE int oracle_nparam(const oracle *o);
ORACLE int oracle_nresult(const oracle *o);
ORACLE const char *oracle_param(oracle *o, int i);
ORACLE const char *oracle_result(oracle *o, int i);
ORACLE const void *oracle_data(const oracle *o, int i);

static bool done(oracle *o, sd_status st)
{
    sd_status_free(o->error);
    o->error = st;
    return !st;
}

static const char *shape_text(sd_arena *a, const sd_shape *s)
{
    sd_buf b = {0};
    const char *text;

    sd_shape_print(&b, s, false);
    text = sd_arena_str(a, b.at, b.len);
    sd_buf_finish(&b);
    return text;
}

/* ---- reading ---- */

oracle *oracle_create(void)
{
    sd_arena *a = sd_arena_create();
    oracle *o = sd_arena_new(a, oracle);

    o->arena = a;
    return o;
}

void oracle_destroy(oracle *o)
{
    sd_status_free(o->error);
    sd_arena_destroy(o->run);
    sd_arena_destroy(o->arena);
}

const char *oracle_message(const oracle *o)
{
    return o->error ? o->error->message : "";
}

int oracle_code(const oracle *o)
{
    return o->error ? o->error->code : SD_OK;
}

static int count_leaves(const sd_shape *s)
{
    int n = 0;

    if (s->dtype != SD_TUPLE)
        return 1;
    for (int i = 0; i < s->nelem; i++)
        n += count_leaves(s->elem[i]);
    return n;
}

static void list_leaves(oracle *o, const sd_shape *s)
{
    if (s->dtype != SD_TUPLE)
        o->result[o->nresult++] = s;
    else
        for (int i = 0; i < s->nelem; i++)
            list_leaves(o, s->elem[i]);
}

/* Once a handle. */
bool oracle_read(oracle *o, const char *format, const void *program,
                 size_t bytes)
{
    const sd_shape *root;
    sd_status st;

    if ((st = frontend_read(o->arena, format, strlen(format),
                            (sd_bytes){program, bytes}, &o->module)) ||
        (st = hlo_verify(o->module)))
        return done(o, st);
    root = o->module->entry->root->shape;
    o->result =
        sd_arena_array(o->arena, const sd_shape *, count_leaves(root) + 1);
    list_leaves(o, root);
    return done(o, NULL);
}

const char *oracle_text(oracle *o)
{
    sd_buf b = {0};
    const char *text;

    hlo_print(&b, o->module);
    text = sd_arena_str(o->arena, b.at, b.len);
    sd_buf_finish(&b);
    return text;
}

int oracle_nparam(const oracle *o)
{
    return o->module->entry->nparam;
}

int oracle_nresult(const oracle *o)
{
    return o->nresult;
}

/* "f32[2,3]" */
const char *oracle_param(oracle *o, int i)
{
    return shape_text(o->arena, o->module->entry->param[i]->shape);
}

const char *oracle_result(oracle *o, int i)
{
    return shape_text(o->arena, o->result[i]);
}

/* ---- running ---- */

static void list_values(oracle *o, const hlo_value *v)
{
    if (v->shape->dtype != SD_TUPLE)
        o->value[o->nresult++] = v;
    else
        for (int i = 0; i < v->shape->nelem; i++)
            list_values(o, &v->elem[i]);
}

/* arg: dense row-major arrays of what oracle_param says; not written. */
bool oracle_run(oracle *o, const void *const *arg, int narg)
{
    hlo_comp *c = o->module->entry;
    hlo_value *in, *out;
    sd_status st;

    if (narg != c->nparam)
        return done(o, sd_error(SD_INVALID, "%s takes %d arguments, not %d",
                                o->module->name, c->nparam, narg));
    sd_arena_destroy(o->run);
    o->run = sd_arena_create();
    in = sd_arena_array(o->run, hlo_value, narg + 1);
    out = sd_arena_new(o->run, hlo_value);
    for (int i = 0; i < narg; i++) {
        in[i].shape = c->param[i]->shape;
        if (in[i].shape->dtype == SD_TUPLE)
            return done(
                o, sd_error(SD_UNIMPLEMENTED, "parameter %d is a tuple", i));
        in[i].data = (void *)(uintptr_t)arg[i];
    }
    o->value = sd_arena_array(o->run, const hlo_value *, o->nresult + 1);
    if ((st = ref_eval(o->run, c, in, narg, out)))
        return done(o, st);
    o->nresult = 0;
    list_values(o, out);
    return done(o, NULL);
}

/* Dense row-major; NULL for a token.  Until the next run. */
const void *oracle_data(const oracle *o, int i)
{
    return o->value[i]->data;
}
