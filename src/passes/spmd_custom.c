/* Custom calls that are partitioned in a way of their own (JAX's
 * custom_partitioning).  Shardy's rule says which dimensions go together, and
 * whoever registered the target what each participant runs of its parts: that
 * takes the call's place. */
#include "hlo_text.h"
#include "spmd_flow.h"

enum { MOST_FACTORS = 64 };

typedef struct {
    uint8_t n, at[SD_MAX_RANK];
} factors; /* major to minor */

typedef struct {
    int nvalue; /* operands, then results */
    const sd_shape **shape;
    factors **dim; /* of each value's dimensions */
    int64_t size[MOST_FACTORS];
    bool whole[MOST_FACTORS]; /* must not be cut */
    bool is_said;
} rule;

/* ---- the rule, as text: #sdy.op_sharding_rule<([i, j], [j, k])->([i, k])
 *      {i=8, j=4, k=2} reduction={j}, custom> ---- */

/* i to z, then z_1, z_2, ...; -1: it is none. */
static int take_factor(hlo_lexer *x)
{
    int64_t k;

    hlo_skip_space(x);
    if (x->at == x->end || *x->at < 'i' || *x->at > 'z')
        return -1;
    k = *x->at++ - 'i';
    if (k == 'z' - 'i' && x->at < x->end && *x->at == '_') {
        int64_t more;

        x->at++;
        more = hlo_take_int(x);
        k = more < 0 || more >= MOST_FACTORS ? -1 : k + more;
    }
    if (k >= 0 && k < MOST_FACTORS)
        return (int)k;
    x->bad = "one of the first factors";
    return -1;
}

static void take_dims(hlo_lexer *x, const sd_shape *s, factors *dim)
{
    hlo_expect(x, "[");
    for (int d = 0; d < s->rank && !x->bad; d++) {
        if (d)
            hlo_expect(x, ",");
        for (int f; (f = take_factor(x)) >= 0;) {
            if (dim[d].n == SD_MAX_RANK) {
                x->bad = "fewer factors";
                return;
            }
            dim[d].at[dim[d].n++] = (uint8_t)f;
        }
    }
    hlo_expect(x, "]");
}

static void take_values(hlo_lexer *x, rule *r, int from, int to)
{
    hlo_expect(x, "(");
    for (int v = from; v < to && !x->bad; v++) {
        if (v > from)
            hlo_expect(x, ",");
        take_dims(x, r->shape[v], r->dim[v]);
    }
    hlo_expect(x, ")");
}

static void take_sizes(hlo_lexer *x, rule *r)
{
    hlo_expect(x, "{");
    while (!x->bad && !hlo_accept(x, "}")) {
        int f = take_factor(x);

        hlo_expect(x, "=");
        if (f >= 0)
            r->size[f] = hlo_take_int(x);
        else
            x->bad = "a factor";
        hlo_accept(x, ",");
    }
}

/* need_replication={k} and the like: all but reduced ones stay whole. */
static void take_sets(hlo_lexer *x, rule *r)
{
    while (!x->bad && !hlo_accept(x, ">")) {
        bool whole;

        if (hlo_accept(x, ",") || hlo_accept_word(x, "custom"))
            continue;
        whole = !hlo_accept_word(x, "reduction");
        if (whole && !hlo_accept_word(x, "need_replication") &&
            !hlo_accept_word(x, "permutation") &&
            !hlo_accept_word(x, "blocked_propagation"))
            x->bad = "a set of factors";
        hlo_expect(x, "=");
        hlo_expect(x, "{");
        while (!x->bad && !hlo_accept(x, "}")) {
            int f = take_factor(x);

            if (f < 0)
                x->bad = "a factor";
            else
                r->whole[f] |= whole;
            hlo_accept(x, ",");
        }
    }
}

/* What the factors of each dimension are to make. */
static bool fits(const rule *r)
{
    for (int v = 0; v < r->nvalue; v++) {
        uint64_t seen = 0; /* a factor is a part of one dimension */

        for (int d = 0; d < r->shape[v]->rank; d++) {
            int64_t n = 1;

            for (int i = 0; i < r->dim[v][d].n; i++) {
                int f = r->dim[v][d].at[i];

                if (seen >> f & 1 || r->size[f] < 1 ||
                    !sd_mul_i64(n, r->size[f], &n))
                    return false;
                seen |= UINT64_C(1) << f;
            }
            if (r->dim[v][d].n && n != r->shape[v]->dim[d])
                return false;
        }
    }
    return true;
}

static sd_status read_rule(const hlo_inst *in, rule *r, const char *text)
{
    hlo_lexer x = hlo_lexer_of(in->parent->module->arena, text, strlen(text));

    hlo_expect(&x, "#sdy.op_sharding_rule<");
    take_values(&x, r, 0, in->narg);
    hlo_expect(&x, "->");
    take_values(&x, r, in->narg, r->nvalue);
    take_sizes(&x, r);
    take_sets(&x, r);
    if (!x.bad && fits(r))
        return NULL;
    return sd_error(SD_INVALID,
                    "sharding rule \"%.200s\": it is not one of these %d "
                    "operands and %d results",
                    text, in->narg, r->nvalue - in->narg);
}

/* Without a rule no dimension goes with another: operands are had as they are,
 * results whole. */
static sd_status rule_of(const hlo_inst *in, rule *r)
{
    sd_arena *a = in->parent->module->arena;
    const char *text =
        hlo_attribute(a, in->frontend_attrs, "xla.sdy.sharding_rule");

    *r = (rule){.nvalue = in->narg + hlo_nresult(in), .is_said = text};
    r->shape = sd_arena_array(a, const sd_shape *, r->nvalue + 1);
    r->dim = sd_arena_array(a, factors *, r->nvalue + 1);
    for (int v = 0; v < r->nvalue; v++) {
        r->shape[v] = v < in->narg ? in->arg[v]->shape
                                   : hlo_result_shape(in, v - in->narg);
        r->dim[v] = sd_arena_array(a, factors, r->shape[v]->rank + 1);
    }
    return text ? read_rule(in, r, text) : NULL;
}

/* ---- what cuts the factors ---- */

typedef struct {
    const hlo_sharding *like; /* the first operand in parts; NULL: none is */
    hlo_atoms cut[MOST_FACTORS];
    uint32_t used;
} choice;

/* Atoms of one dimension go to its factors, as many to each as divide it. */
static void take_dim(const rule *r, const factors *dim, const hlo_atoms *a,
                     choice *c)
{
    int k = 0;

    for (int i = 0; i < dim->n && k < a->n; i++) {
        int f = dim->at[i];
        hlo_atoms *cut = &c->cut[f];
        int64_t left = r->size[f];
        bool known = cut->n > 0;
        int n = 0;

        for (; k < a->n && !r->whole[f]; k++, n++) {
            int64_t size = c->like->grid->size[a->at[k]];
            bool is_used = c->used >> a->at[k] & 1;

            if (left % size ||
                (known ? n >= cut->n || cut->at[n] != a->at[k] : is_used))
                break;
            left /= size;
            if (known)
                continue;
            cut->at[cut->n++] = a->at[k];
            c->used |= UINT32_C(1) << a->at[k];
        }
        if (left != 1)
            return;
    }
}

/* How x is had where its parts are equal: no partitioner sees others. */
static const hlo_sharding *even_part(const spmd_flow *f, const hlo_inst *x)
{
    return spmd_evenly(f->m, x->shape, spmd_part_sharding(f, x));
}

/* The largest operand first: it is the dearest to move. */
static void choose(const spmd_flow *f, const hlo_inst *in, const rule *r,
                   choice *c)
{
    uint8_t *done =
        sd_arena_array(in->parent->module->arena, uint8_t, in->narg + 1);

    for (;;) {
        const hlo_sharding *s = NULL;
        int best = -1;

        for (int k = 0; k < in->narg; k++)
            if (!done[k] && spmd_part_sharding(f, in->arg[k]) &&
                (best < 0 || sd_shape_bytes(in->arg[k]->shape) >
                                 sd_shape_bytes(in->arg[best]->shape)))
                best = k;
        if (best < 0)
            return;
        done[best] = 1;
        s = even_part(f, in->arg[best]);
        if (!c->like)
            c->like = s;
        for (int d = 0; d < s->rank && s->grid == c->like->grid; d++)
            take_dim(r, &r->dim[best][d], &s->dim[d].cut, c);
    }
}

static const hlo_sharding *blank(hlo_module *m, const choice *c, int rank)
{
    return c->like ? hlo_sharding_blank(m, c->like, rank)
                   : hlo_sharding_replicated(m, rank);
}

static const hlo_sharding *proposed(hlo_module *m, const rule *r,
                                    const choice *c, int v)
{
    const hlo_sharding *s = blank(m, c, r->shape[v]->rank);

    for (int d = 0; d < s->rank; d++) {
        const factors *of = &r->dim[v][d];
        hlo_atoms cut = {0};

        for (int i = 0; i < of->n; i++) {
            const hlo_atoms *a = &c->cut[of->at[i]];

            hlo_atoms_add(&cut, a);
            if (a->n && hlo_atoms_size(s->grid, a) != r->size[of->at[i]])
                break;
            if (!a->n && r->size[of->at[i]] != 1)
                break;
        }
        if (cut.n)
            s = hlo_sharding_with(m, s, d, cut);
    }
    return s;
}

/* What was answered, of the mesh that the program names. */
static const hlo_sharding *of_mesh(hlo_module *m, const choice *c,
                                   const hlo_sharding *s)
{
    const hlo_sharding *to = blank(m, c, s->rank);

    if (to->grid != s->grid)
        return spmd_cuts(m, s, s->rank, HLO_ALL_ATOMS);
    for (int d = 0; d < s->rank; d++)
        to = hlo_sharding_with(m, to, d, s->dim[d].cut);
    return to;
}

/* ---- what takes the call's place ---- */

static sd_status misfit(const char *what, int i)
{
    return sd_error(SD_INVALID,
                    "%s %d of its partitioned form does not have the shape of "
                    "its part",
                    what, i);
}

/* Its constraints are of what one participant has, and say nothing here. */
static void drop_marks(hlo_module *body)
{
    hlo_for_each_comp(c, body)
        hlo_for_each_inst(in, c) {
            in->sharding = NULL;
            if (in->op == HLO_CUSTOM_CALL && in->narg == 1 &&
                (strcmp(in->u.custom->target, "Sharding") == 0 ||
                 strcmp(in->u.custom->target, "xla.sdy.FuncResultSharding") ==
                     0))
                pass_replace(in, in->arg[0]);
        }
}

static sd_status parts_of(spmd_flow *f, const hlo_inst *in,
                          const hlo_module *body, const hlo_sharding **s,
                          hlo_inst **x)
{
    hlo_module *m = in->parent->module;
    hlo_at p = pass_at((hlo_inst *)(uintptr_t)in);
    const sd_shape *local;
    sd_status st;

    if (body->entry->nparam != in->narg)
        return misfit("operand", in->narg);
    for (int i = 0; i < in->narg; i++) {
        if ((st = spmd_local_shape(m, in->arg[i]->shape, s[i], HLO_ALL_ATOMS,
                                   &local)))
            return st;
        if (!sd_shape_equal(local, body->entry->param[i]->shape))
            return misfit("operand", i);
        x[i] = hlo_sharding_is_whole(s[i]) ? spmd_whole(f, in->arg[i])
                                           : spmd_as(f, p, in->arg[i], s[i]);
    }
    return NULL;
}

static sd_status put_results(spmd_flow *f, hlo_inst *in, hlo_inst *call,
                             const hlo_sharding **s)
{
    hlo_module *m = in->parent->module;
    int n = hlo_nresult(in);
    hlo_inst **x = sd_arena_array(m->arena, hlo_inst *, n + 1);
    hlo_at p = pass_at(in);
    const sd_shape *local;
    sd_status st;

    if (call->shape->dtype != in->shape->dtype || hlo_nresult(call) != n)
        return misfit("result", n);
    for (int i = 0; i < n; i++) {
        const sd_shape *whole = hlo_result_shape(in, i);

        if ((st = spmd_local_shape(m, whole, s[i], HLO_ALL_ATOMS, &local)))
            return st;
        if (!sd_shape_equal(local, hlo_result_shape(call, i)))
            return misfit("result", i);
        x[i] = pass_result(p, call, i);
        if (!hlo_sharding_is_whole(s[i]))
            x[i] = spmd_stand_in(f, in, whole, x[i], s[i]);
    }
    pass_replace(in, pass_results(p, in->shape, x));
    return NULL;
}

bool spmd_is_custom(const hlo_inst *in)
{
    const hlo_partitioner *p = in->parent->module->partitioner;

    return p && in->op == HLO_CUSTOM_CALL &&
           p->knows(p->ctx, in->u.custom->target);
}

sd_status spmd_custom(spmd_flow *f, hlo_inst *in)
{
    hlo_module *m = in->parent->module, *body;
    const hlo_partitioner *by = m->partitioner;
    const hlo_sharding **s;
    choice c = {0};
    hlo_inst **x, *call;
    hlo_comp *comp;
    sd_status st;
    rule r;

    if ((st = rule_of(in, &r)))
        goto fail;
    choose(f, in, &r, &c);
    s = sd_arena_array(m->arena, const hlo_sharding *, r.nvalue + 1);
    x = sd_arena_array(m->arena, hlo_inst *, in->narg + 1);
    for (int v = 0; v < r.nvalue; v++)
        s[v] = r.is_said || v >= in->narg || !spmd_part_sharding(f, in->arg[v])
                   ? proposed(m, &r, &c, v)
                   : of_mesh(m, &c, even_part(f, in->arg[v]));
    if ((st = by->partition(by->ctx, in, s, s + in->narg, &body)))
        goto fail;
    for (int v = 0; v < r.nvalue; v++)
        s[v] = of_mesh(m, &c, s[v]);
    drop_marks(body);
    spmd_groups(body);
    if ((st = parts_of(f, in, body, s, x)))
        goto fail;
    comp = hlo_comp_clone(m, body->entry, "partitioned");
    call = hlo_inst_create(in->parent, in, HLO_CALL, comp->root->shape,
                           in->narg, x);
    hlo_take_source(call, in);
    hlo_set_comps(call, 1, &comp);
    if (!(st = put_results(f, in, call, s + in->narg)))
        return NULL;
fail:
    return sd_note(st, "%s", hlo_describe(m, in));
}
