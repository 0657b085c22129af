/* Graphs broken by hand, which hlo_verify and inference must name, and texts
 * too long or too deep to be written down. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "hlo.h"

static const char text[] =
    "HloModule m\n"
    "f { x = f32[] parameter(0) y = f32[] parameter(1) ROOT z = f32[] add(x, y)"
    " }\n"
    "ENTRY e { a = f32[] parameter(0) b = f32[] parameter(1) n = f32[] "
    "negate(a)"
    " k = f32[] constant(1) t = f32[] custom-call(k), custom_call_target=\"t\""
    " ROOT c = f32[] call(n, b), to_apply=f }\n";

/* The module of the text, and its parts by their names there. */
typedef struct {
    sd_arena *arena;
    hlo_module *m;
    hlo_comp *f, *e;
    hlo_inst *x, *z, *a, *b, *n, *k, *t, *c;
} parts;

static void read_parts(parts *p)
{
    sd_status st;
    hlo_inst *in;

    p->arena = sd_arena_create();
    if ((st = hlo_parse(p->arena, text, strlen(text), &p->m)) ||
        (st = hlo_verify(p->m)))
        fail_msg("%s", st->message);
    p->f = p->m->first;
    p->e = p->m->entry;
    p->x = p->f->first;
    p->z = p->f->root;
    in = p->e->first;
    p->a = in, in = in->next;
    p->b = in, in = in->next;
    p->n = in, in = in->next;
    p->k = in, in = in->next;
    p->t = in, in = in->next;
    p->c = in;
}

static void want_error(sd_status st, sd_code code, const char *message)
{
    if (!st || st->code != code || strcmp(st->message, message) != 0)
        fail_msg("%d \"%s\"\nnot %d \"%s\"", st ? (int)st->code : 0,
                 st ? st->message : "", (int)code, message);
    sd_status_free(st);
}

/* ---- one hurt each ---- */

static void lose_entry(parts *p)
{
    p->m->entry = NULL;
}

static void lose_comp_link(parts *p)
{
    p->e->prev = NULL;
}

static void lose_root(parts *p)
{
    p->f->root = NULL;
}

static void lose_link(parts *p)
{
    p->n->prev = NULL;
}

static void lose_last(parts *p)
{
    p->e->last = p->n;
}

static void lose_name(parts *p)
{
    p->n->name = NULL;
}

/* A list of users too long to be held against the operands one by one. */
static void count_a_use_twice(parts *p)
{
    enum { N = 70 };

    for (int i = 0; i < N; i++)
        hlo_make_unary((hlo_at){p->e, p->c, NULL}, HLO_NEGATE, p->k);
    p->k->user[p->k->nuse] = p->k->user[p->k->nuse - 1];
    p->k->nuse++;
}

static void take_an_outer_operand(parts *p)
{
    p->n->arg[0] = p->x;
    p->a->nuse = 0;
}

static void take_an_outer_user(parts *p)
{
    p->a->user[0] = p->z;
}

static void take_a_wrong_user(parts *p)
{
    p->b->user[0] = p->n;
}

static void call_outside(parts *p)
{
    hlo_module *other = hlo_module_create(p->arena, "other");

    p->c->comp[0] = hlo_comp_create(other, "f");
}

static void forget_the_caller(parts *p)
{
    p->f->ncaller = 0;
}

static void change_the_caller(parts *p)
{
    p->f->caller = p->n;
}

static void renumber_a_parameter(parts *p)
{
    p->a->u.param.index = 1;
}

static void list_a_parameter_more(parts *p)
{
    p->e->nparam = 3;
}

static void share_an_id(parts *p)
{
    p->n->id = p->a->id;
}

static void root_outside(parts *p)
{
    p->e->root = sd_arena_copy(p->arena, p->c, sizeof *p->c);
}

static void call_itself(parts *p)
{
    hlo_inst *in = hlo_inst_create(p->f, NULL, HLO_CALL, p->z->shape, 2,
                                   (hlo_inst *[]){p->x, p->z});

    hlo_set_comps(in, 1, &p->f);
}

static void call_a_comp_without_root(parts *p)
{
    hlo_comp *g = hlo_comp_create(p->m, "g");

    hlo_set_comps(p->c, 1, &g);
}

static void nest_calls(parts *p)
{
    hlo_comp *inner = p->f;

    for (int i = 0; i < 2010; i++) {
        hlo_comp *c = hlo_comp_create(p->m, "deep");
        hlo_inst *arg[2] = {hlo_make_param(c, p->z->shape, "x"),
                            hlo_make_param(c, p->z->shape, "y")};
        hlo_inst *in = hlo_inst_create(c, NULL, HLO_CALL, p->z->shape, 2, arg);

        hlo_set_comps(in, 1, &inner);
        hlo_set_root(c, in);
        inner = c;
    }
    hlo_set_comps(p->c, 1, &inner);
}

static void number_a_parameter_below_0(parts *p)
{
    p->a->u.param.index = -1;
}

static void cut_a_constant(parts *p)
{
    p->k->u.literal.bytes = 2;
}

static void change_the_api(parts *p)
{
    hlo_custom *c = sd_arena_copy(p->arena, p->t->u.custom, sizeof *c);

    c->api_version = 7;
    p->t->u.custom = c;
}

static void broken_graphs_are_named(void **state)
{
    static const struct {
        void (*hurt)(parts *);
        sd_code code;
        const char *message;
    } of[] = {
        {lose_entry, SD_INTERNAL, "broken graph: m has no entry"},
        {lose_comp_link, SD_INTERNAL, "broken graph: links of e"},
        {lose_root, SD_INTERNAL, "broken graph: root or module of f"},
        {lose_link, SD_INTERNAL, "broken graph: n of e: links or parent"},
        {lose_last, SD_INTERNAL, "broken graph: last of e"},
        {lose_name, SD_INTERNAL,
         "broken graph: ? of e: op, name or shape is missing"},
        {count_a_use_twice, SD_INTERNAL,
         "broken graph: e has 74 operands and 75 uses"},
        {take_an_outer_operand, SD_INTERNAL,
         "broken graph: n of e: an operand is of another computation"},
        {take_an_outer_user, SD_INTERNAL,
         "broken graph: a of e: a user is of another computation"},
        {take_a_wrong_user, SD_INTERNAL,
         "broken graph: b of e: a user does not use it"},
        {call_outside, SD_INTERNAL,
         "broken graph: c of e: calls a computation of another module"},
        {forget_the_caller, SD_INTERNAL,
         "broken graph: c of e: is not counted as a caller"},
        {change_the_caller, SD_INTERNAL,
         "broken graph: c of e: calls what has another caller"},
        {renumber_a_parameter, SD_INTERNAL,
         "broken graph: a of e: is not in the parameter list"},
        {list_a_parameter_more, SD_INTERNAL,
         "broken graph: e lists 3 parameters, has 2"},
        {share_an_id, SD_INTERNAL,
         "broken graph: n of e: its id is not its own"},
        {root_outside, SD_INTERNAL,
         "broken graph: c of e: the root is not in its computation"},
        {call_itself, SD_INVALID, "f calls itself"},
        {call_a_comp_without_root, SD_INVALID,
         "call of f32[], f32[]: g has no root"},
        {nest_calls, SD_INVALID, "deep.9: calls nest deeper than 2000"},
        {number_a_parameter_below_0, SD_INVALID,
         "parameter f32[]: no parameter -1"},
        {cut_a_constant, SD_INVALID,
         "constant f32[]: holds 2 bytes, its shape 4"},
        {change_the_api, SD_INVALID,
         "custom-call of f32[]: API version 7 is not in 0..4"},
    };

    (void)state;
    for (size_t i = 0; i < SD_COUNTOF(of); i++) {
        parts p;

        read_parts(&p);
        of[i].hurt(&p);
        want_error(hlo_verify(p.m), of[i].code, of[i].message);
        sd_arena_destroy(p.arena);
    }
}

/* Rules that start from what is declared; verifying asks for it before. */
static void a_shape_is_asked_for(void **state)
{
    const sd_shape *s;
    hlo_inst *in;
    parts p;

    (void)state;
    read_parts(&p);
    in = hlo_inst_create(p.e, NULL, HLO_CONVERT, NULL, 1, &p.a);
    want_error(hlo_infer(p.m, in, &s), SD_INVALID,
               "convert of f32[]: needs its result's shape");
    sd_arena_destroy(p.arena);
}

/* ---- long and deep texts ---- */

static void want_parse_error(sd_buf *b, const char *part)
{
    sd_arena *a = sd_arena_create();
    hlo_module *m;
    sd_status st = hlo_parse(a, b->at, b->len, &m);

    if (!st || st->code != SD_INVALID || !strstr(st->message, part))
        fail_msg("\"%s\"\nnot \"%s\"", st ? st->message : "", part);
    sd_status_free(st);
    sd_arena_destroy(a);
    sd_buf_finish(b);
}

static void texts_have_limits(void **state)
{
    sd_buf b = {0};

    (void)state;
    sd_buf_str(&b, "ENTRY e ");
    for (int i = 0; i < 70; i++)
        sd_buf_str(&b, "{ x = f32[2] parameter(0) ROOT r = f32[2] map(x), "
                       "dimensions={0}, to_apply=");
    sd_buf_str(&b, "f");
    for (int i = 0; i < 70; i++)
        sd_buf_str(&b, " }");
    want_parse_error(&b, "expected computations nested less deep");

    sd_buf_str(&b, "ENTRY e { a = f32[] parameter(0) ROOT r = f32[] "
                   "collective-permute(a), source_target_pairs={{0");
    for (int i = 1; i < 1025; i++)
        sd_buf_fmt(&b, ",%d", i);
    sd_buf_str(&b, "}");
    for (int i = 1; i < 1025; i++)
        sd_buf_str(&b, ",{}");
    sd_buf_str(&b, "} }");
    want_parse_error(&b, "expected smaller groups");

    sd_buf_str(&b, "ENTRY e { a = pred[70368744177664] parameter(0) ROOT r = "
                   "pred[2] concatenate(a");
    for (int i = 1; i < 1 << 17; i++)
        sd_buf_str(&b, ",a");
    sd_buf_str(&b, "), dimensions={0} }");
    want_parse_error(&b, "pred array of rank 1 is larger than 2^50 bytes");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(broken_graphs_are_named),
        cmocka_unit_test(a_shape_is_asked_for),
        cmocka_unit_test(texts_have_limits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
