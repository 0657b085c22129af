/* The graph as protobuf: HloModuleProto, and with its configuration. */
#include "hlo_proto.h"

typedef struct {
    sd_arena *arena; /* of what is written and forgotten */
    sd_buf *b;
    int64_t most;
    /* by our ids, of which a module that was worked on has used some up */
    int64_t *number;
    bool *fused; /* is the computation a fusion's? */
} writer;

/* ---- instructions ---- */

static pb_metadata *metadata(writer *w, const hlo_inst *in)
{
    pb_metadata *m;

    m = sd_arena_new(w->arena, pb_metadata);
    m->op_name = pb_str(in->op_name);
    m->source_file = pb_str(in->source_file);
    m->source_line = m->source_file.len ? in->source_line : 0;
    return m->op_name.len || m->source_file.len ? m : NULL;
}

static pb_attributes *attributes(writer *w, const char *text)
{
    pb_attributes *at = sd_arena_new(w->arena, pb_attributes);

    return text && hlo_attributes_parse(w->arena, text, at) ? at : NULL;
}

/* Kept text that XLA's grammar does not have travels as an attribute. */
static void add_kept(writer *w, pb_inst *p, const char *key, const char *text)
{
    if (!p->frontend_attrs)
        p->frontend_attrs = sd_arena_new(w->arena, pb_attributes);
    *sd_push(w->arena, &p->frontend_attrs->map) =
        (pb_entry){pb_str(key), pb_str(text)};
}

static void notes(writer *w, const hlo_inst *in, pb_inst *p)
{
    pb_sharding s;

    p->metadata = metadata(w, in);
    if (in->frontend_attrs &&
        !(p->frontend_attrs = attributes(w, in->frontend_attrs)))
        add_kept(w, p, HLO_KEPT_ATTRIBUTES, in->frontend_attrs);
    if (!in->sharding)
        return;
    if (hlo_sharding_parse(w->arena, in->sharding, &s))
        p->sharding = sd_arena_copy(w->arena, &s, sizeof s);
    else
        add_kept(w, p, HLO_KEPT_SHARDING, in->sharding);
}

static pb_ints callees(writer *w, const hlo_inst *in)
{
    pb_ints v = {0};
    bool loop = in->op == HLO_WHILE; /* XLA: the body first */

    for (int i = 0; i < in->ncomp; i++)
        *sd_push(w->arena, &v) = w->number[in->comp[loop ? 1 - i : i]->id];
    return v;
}

static void write_inst(writer *w, const hlo_inst *in)
{
    hlo_guise mask;
    const hlo_inst *as = hlo_masked(in, &mask);
    sd_buf literal = {.arena = w->arena};
    pb_shape shape;
    pb_inst p = {.name = pb_str(in->name),
                 .opcode = pb_str(hlo_info(as)->name),
                 .shape = &shape,
                 .id = w->number[in->id]};

    hlo_shape_to_pb(w->arena, in->shape, &shape);
    for (int i = 0; i < in->narg; i++)
        *sd_push(w->arena, &p.operands) = w->number[in->arg[i]->id];
    p.comps = callees(w, in);
    hlo_attrs_to_pb(w->arena, as, &p);
    notes(w, in, &p);
    if (in->op == HLO_CONSTANT && sd_shape_count(in->shape) <= w->most) {
        hlo_literal_to_pb(w->arena, in->shape, in->u.literal.data, &literal);
        p.literal = (sd_bytes){(const uint8_t *)literal.at, literal.len};
    }
    pb_write(w->b, &pb_inst_table, &p);
}

/* ---- computations ---- */

static void set_space(pb_shape *s, int64_t space)
{
    if (space && s->layout)
        s->layout->memory_space = space;
}

static pb_program_shape *program_shape(writer *w, const hlo_comp *c)
{
    const hlo_module *m = c->module;
    pb_program_shape *p = sd_arena_new(w->arena, pb_program_shape);

    p->param.at = sd_arena_array(w->arena, pb_shape, c->nparam + 1);
    p->param.n = c->nparam;
    for (int i = 0; i < c->nparam; i++) {
        hlo_shape_to_pb(w->arena, c->param[i]->shape, &p->param.at[i]);
        *sd_push(w->arena, &p->param_name) = pb_str(c->param[i]->name);
        if (c == m->entry)
            set_space(&p->param.at[i], hlo_memory_space(m->param_memory, i));
    }
    p->result = sd_arena_new(w->arena, pb_shape);
    hlo_shape_to_pb(w->arena, c->root->shape, p->result);
    if (c == m->entry && c->root->shape->dtype != SD_TUPLE)
        set_space(p->result, hlo_memory_space(m->output_memory, 0));
    for (int i = 0; c == m->entry && i < p->result->elem.n; i++)
        set_space(&p->result->elem.at[i],
                  hlo_memory_space(m->output_memory, i));
    return p;
}

/* The fields around the instructions go by tag, as everywhere. */
static void write_comp(writer *w, const hlo_comp *c)
{
    pb_comp head = {.name = pb_str(c->name)};
    pb_comp rest = {.program_shape = program_shape(w, c),
                    .id = w->number[c->id],
                    .root = w->number[c->root->id],
                    .is_fusion = w->fused[c->id]};

    pb_write(w->b, &pb_comp_table, &head);
    hlo_for_each_inst(in, c) {
        size_t at = pb_open(w->b, PB_TAG_comp_inst);

        write_inst(w, in);
        pb_close(w->b, at);
    }
    pb_write(w->b, &pb_comp_table, &rest);
}

/* ---- modules ---- */

static pb_alias *aliases(writer *w, const hlo_module *m)
{
    pb_alias *to = sd_arena_new(w->arena, pb_alias);
    bool tuple = m->entry->root->shape->dtype == SD_TUPLE;

    for (int i = 0; i < m->nalias; i++) {
        pb_alias_entry e = {.param = m->alias[i].param,
                            .kind = m->alias[i].must ? 2 : 1};

        if (tuple)
            *sd_push(w->arena, &e.output_index) = m->alias[i].output_index;
        *sd_push(w->arena, &to->entry) = e;
    }
    return m->nalias ? to : NULL;
}

static pb_donor *donors(writer *w, const hlo_module *m)
{
    pb_donor *to = sd_arena_new(w->arena, pb_donor);

    for (int i = 0; m->donor && i < m->entry->nparam; i++)
        if (m->donor[i])
            *sd_push(w->arena, &to->entry) = (pb_donor_entry){.param = i};
    return to->entry.n ? to : NULL;
}

/* Computations and instructions counted in the order of writing. */
static void number_all(writer *w, const hlo_module *m, hlo_comp_list comps)
{
    int64_t n = 0;

    w->number = sd_arena_array(w->arena, int64_t, m->next_id + 1);
    w->fused = sd_arena_array(w->arena, bool, m->next_id + 1);
    for (int i = 0; i < comps.n; i++) {
        w->number[comps.at[i]->id] = i;
        hlo_for_each_inst(in, comps.at[i]) {
            w->number[in->id] = n++;
            if (in->op == HLO_FUSION)
                w->fused[in->comp[0]->id] = true;
        }
    }
}

static void write_module(writer *w, const hlo_module *m)
{
    hlo_comp_list comps = hlo_callees_first(w->arena, m);

    number_all(w, m, comps);
    pb_module head = {.name = pb_str(m->name),
                      .entry_name = pb_str(m->entry->name)};
    pb_module rest = {.program_shape = program_shape(w, m->entry),
                      .entry_id = w->number[m->entry->id],
                      .alias = aliases(w, m),
                      .donor = donors(w, m),
                      .frontend_attrs = attributes(w, m->frontend_attrs)};

    pb_write(w->b, &pb_module_table, &head);
    for (int i = 0; i < comps.n; i++) {
        size_t at = pb_open(w->b, PB_TAG_module_comp);

        write_comp(w, comps.at[i]);
        pb_close(w->b, at);
    }
    pb_write(w->b, &pb_module_table, &rest);
}

void hlo_proto_write(sd_buf *b, const hlo_module *m, bool with_config,
                     int64_t most)
{
    writer w = {.arena = sd_arena_create(), .b = b, .most = most};
    pb_config config = {.nreplica = m->nreplica, .npartition = m->npartition};
    pb_with_config rest = {.config = &config};
    size_t at;

    if (!with_config) {
        write_module(&w, m);
    } else {
        at = pb_open(b, PB_TAG_with_config_module);
        write_module(&w, m);
        pb_close(b, at);
        config.program_shape = program_shape(&w, m->entry);
        pb_write(b, &pb_with_config_table, &rest);
    }
    sd_arena_destroy(w.arena);
}
