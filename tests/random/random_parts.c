/* A random program over several participants: a mesh, shardings of arguments,
 * of results and of values in between, inside of loops and branches, too. */
#include "random.h"

enum { MOST_AXES = 3 };

typedef struct {
    int n;
    int64_t size[MOST_AXES];
} axes;

static const axes meshes[] = {
    {1, {2}},    {1, {3}},    {1, {4}},       {2, {2, 2}},
    {2, {4, 2}}, {2, {2, 3}}, {3, {2, 2, 2}}, {2, {3, 4}},
};

static const char *kept(random_gen *g, sd_buf *b)
{
    const char *text;

    if (b->oom)
        sd_oom(0);
    text = sd_arena_str(g->a, b->at, b->len);
    sd_buf_finish(b);
    return text;
}

static const char *mesh_text(random_gen *g, const axes *x)
{
    sd_buf b = {0};

    sd_buf_str(&b, "{xla.sdy.meshes=\"{mesh = #sdy.mesh<[");
    for (int i = 0; i < x->n; i++)
        sd_buf_fmt(&b, "%s\\\"%c\\\"=%" PRId64, i ? ", " : "", 'a' + i,
                   x->size[i]);
    sd_buf_str(&b, "]>}\"}");
    return kept(g, &b);
}

/* Each axis cuts a dimension that it divides, or any (odd), or none.  Extents
 * of random programs are small: one that nothing divides is often met. */
static const char *sharding_text(random_gen *g, const axes *x,
                                 const sd_shape *s, bool odd)
{
    int64_t left[SD_MAX_RANK];
    int at[MOST_AXES];
    sd_buf b = {0};

    for (int d = 0; d < s->rank; d++)
        left[d] = s->dim[d];
    for (int i = 0; i < x->n; i++) {
        int first = (int)random_below(g, s->rank);

        at[i] = -1;
        for (int k = 0; k < s->rank && at[i] < 0; k++) {
            int d = (first + k) % s->rank;

            if ((odd || left[d] % x->size[i] == 0) && random_chance(g, 80)) {
                at[i] = d;
                left[d] = (left[d] + x->size[i] - 1) / x->size[i];
            }
        }
    }
    sd_buf_str(&b, "{xla.sdy.sharding=\"#sdy.sharding<@mesh, [");
    for (int d = 0; d < s->rank; d++) {
        bool any = false;

        sd_buf_str(&b, d ? ", {" : "{");
        for (int i = 0; i < x->n; i++)
            if (at[i] == d) {
                sd_buf_fmt(&b, "%s\\\"%c\\\"", any ? ", " : "", 'a' + i);
                any = true;
            }
        sd_buf_str(&b, "}");
    }
    sd_buf_str(&b, "]>\"}");
    return kept(g, &b);
}

static bool is_cuttable(const hlo_inst *in)
{
    return sd_shape_is_array(in->shape) && in->shape->rank;
}

static hlo_inst *marked(random_gen *g, const axes *x, const char *target,
                        hlo_inst *in, hlo_inst *before)
{
    hlo_custom *u = sd_arena_new(g->a, hlo_custom);
    hlo_inst *to =
        hlo_inst_create(in->parent, before, HLO_CUSTOM_CALL, in->shape, 1, &in);

    u->target = target;
    to->u.custom = u;
    to->frontend_attrs =
        sharding_text(g, x, in->shape,
                      strcmp(target, "Sharding") == 0 && random_chance(g, 50));
    return to;
}

static void constrain(random_gen *g, const axes *x, hlo_inst *in)
{
    hlo_inst *to;

    if (!is_cuttable(in) || in->op == HLO_PARAMETER || !in->nuse ||
        !random_chance(g, 15))
        return;
    to = marked(g, x, "Sharding", in, in->next);
    for (int k = 0; k < in->nuse;)
        if (in->user[k] != to)
            hlo_replace_use(in->user[k], in, to);
        else
            k++;
}

static void ask_for_results(random_gen *g, const axes *x, hlo_comp *c)
{
    hlo_inst *root = c->root;

    if (root->op == HLO_TUPLE) {
        for (int i = 0; i < root->narg; i++)
            if (is_cuttable(root->arg[i]) && random_chance(g, 40))
                hlo_set_arg(root, i,
                            marked(g, x, "xla.sdy.FuncResultSharding",
                                   root->arg[i], root));
    } else if (is_cuttable(root) && random_chance(g, 40)) {
        hlo_set_root(c, marked(g, x, "xla.sdy.FuncResultSharding", root, NULL));
    }
}

/* Regions of reductions and the like are of one element at a time. */
static bool is_run(const hlo_comp *c)
{
    const hlo_inst *in = c->caller;

    return c == c->module->entry ||
           (in && (in->op == HLO_WHILE || in->op == HLO_CONDITIONAL ||
                   in->op == HLO_CALL));
}

bool random_parts(hlo_module *m, uint64_t seed)
{
    random_gen g = {.state = seed, .a = m->arena, .m = m};
    const axes *x;

    hlo_for_each_comp(c, m)
        hlo_for_each_inst(in, c)
            if (hlo_info(in)->cls == HLO_C_COLLECTIVE)
                return false;
    random_next(&g);
    x = &meshes[random_below(&g, SD_COUNTOF(meshes))];
    m->npartition = 1;
    for (int i = 0; i < x->n; i++)
        m->npartition *= (int)x->size[i];
    m->frontend_attrs = mesh_text(&g, x);
    for (int i = 0; i < m->entry->nparam; i++)
        if (is_cuttable(m->entry->param[i]) && random_chance(&g, 85))
            m->entry->param[i]->frontend_attrs =
                sharding_text(&g, x, m->entry->param[i]->shape, false);
    hlo_for_each_comp(c, m)
        if (is_run(c))
            hlo_for_each_inst(in, c)
                constrain(&g, x, in);
    ask_for_results(&g, x, m->entry);
    m->open_param = hlo_dims_copy(m->arena, (int64_t[]){1}, 1);
    if (random_chance(&g, 10))
        m->open_output = hlo_dims_copy(m->arena, (int64_t[]){0}, 1);
    return true;
}
