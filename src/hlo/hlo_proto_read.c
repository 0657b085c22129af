/* Protobuf to the graph.  Instructions come operands first and computations
 * callees first, so what is not there yet is a mistake, and no cycle can be
 * made.  Each instruction is verified as it comes. */
#include "hlo_proto.h"

typedef struct {
    sd_arena *arena;
    hlo_module *m;
    sd_map *comps; /* by id */
    sd_map *insts; /* by id, of the computation that is read */
    pb_frames *frames;
} reader;

/* ---- notes ---- */

/* File and line of a frame, 1-based as all its numbers; 0 is none. */
static void read_frame(reader *r, int64_t frame, hlo_inst *in)
{
    const pb_frames *f = r->frames;
    int64_t at, file;

    if (!f || frame < 1 || frame > f->frame.n)
        return;
    at = f->frame.at[frame - 1].location;
    if (at < 1 || at > f->location.n)
        return;
    file = f->location.at[at - 1].file;
    if (file < 1 || file > f->file.n)
        return;
    in->source_file = pb_text(r->arena, f->file.at[file - 1]);
    in->source_line = (int)f->location.at[at - 1].line;
}

/* The kept text under a key of ours, which is taken out of the list. */
static const char *take_kept(reader *r, pb_attributes *at, const char *key)
{
    for (int i = 0; at && i < at->map.n; i++) {
        pb_entry *e = &at->map.at[i];
        const char *text;

        if (e->key.len != strlen(key) || memcmp(e->key.at, key, e->key.len))
            continue;
        text = pb_text(r->arena, e->value);
        memmove(e, e + 1, sizeof *e * (size_t)(--at->map.n - i));
        return text;
    }
    return NULL;
}

static const char *attributes_text(reader *r, const pb_attributes *at)
{
    sd_buf b = {.arena = r->arena};

    if (!at || !at->map.n)
        return NULL;
    hlo_attributes_print(&b, at);
    return sd_buf_take(&b);
}

static void read_notes(reader *r, const pb_inst *p, hlo_inst *in)
{
    const char *attrs = take_kept(r, p->frontend_attrs, HLO_KEPT_ATTRIBUTES);
    sd_buf b = {.arena = r->arena};

    in->sharding = take_kept(r, p->frontend_attrs, HLO_KEPT_SHARDING);
    in->frontend_attrs = attrs ? attrs : attributes_text(r, p->frontend_attrs);
    if (p->sharding) {
        hlo_sharding_print(&b, p->sharding);
        in->sharding = sd_buf_take(&b);
    }
    if (!p->metadata)
        return;
    in->op_name = pb_text(r->arena, p->metadata->op_name);
    in->source_file = pb_text(r->arena, p->metadata->source_file);
    in->source_line = in->source_file ? (int)p->metadata->source_line : 0;
    if (!in->source_file)
        read_frame(r, p->metadata->frame, in);
}

/* ---- instructions ---- */

/* Newer XLA puts the computation's number above an instruction's own, in some
 * fields and not in others: within a computation the low half tells all. */
static uint64_t local_id(int64_t id)
{
    return (uint32_t)id;
}

static sd_status read_operands(reader *r, const pb_inst *p, hlo_inst ***out)
{
    hlo_inst **arg = sd_arena_array(r->arena, hlo_inst *, p->operands.n + 1);

    for (int i = 0; i < p->operands.n; i++)
        if (!(arg[i] = sd_map_get(r->insts, local_id(p->operands.at[i]))))
            return sd_error(SD_INVALID,
                            "operand %d, id %" PRId64 ", does not stand before "
                            "it in its computation",
                            i, p->operands.at[i]);
    *out = arg;
    return NULL;
}

static sd_status read_comps(reader *r, const pb_inst *p, hlo_inst *in)
{
    int n = p->comps.n;
    hlo_comp **c = sd_arena_array(r->arena, hlo_comp *, n + 1);

    if (n && !(hlo_info(in)->props & HLO_P_REGION) && in->op != HLO_CUSTOM_CALL)
        return sd_error(SD_INVALID, "it calls a computation, which no %s does",
                        hlo_info(in)->name);
    for (int i = 0; i < n; i++)
        if (!(c[in->op == HLO_WHILE && n == 2 ? 1 - i : i] =
                  sd_map_get(r->comps, (uint64_t)(p->comps.at[i]))))
            return sd_error(SD_INVALID,
                            "it calls computation %" PRId64
                            ", which does not stand before its own",
                            p->comps.at[i]);
    if (n)
        hlo_set_comps(in, n, c);
    return NULL;
}

static sd_status read_parameter(hlo_comp *c, const pb_inst *p, int most,
                                hlo_inst *in)
{
    int64_t i = p->parameter_number;

    if (i < 0 || i >= most || (i < c->nparam && c->param[i]))
        return sd_error(SD_INVALID,
                        "parameter number %" PRId64
                        " is used already, or over the computation's %d "
                        "instructions",
                        i, most);
    in->u.param.index = i;
    hlo_comp_put_param(c, in);
    return NULL;
}

/* A tuple's literal becomes constants and the tuple of them. */
static sd_status read_constant(reader *r, hlo_comp *c, const char *name,
                               sd_bytes bytes, const sd_shape *s, int depth,
                               hlo_inst **out)
{
    pb_literal l = {0};
    hlo_inst **arg, *in;
    sd_status st = pb_read(r->arena, &pb_literal_table, bytes, &l);

    if (st)
        return st;
    if (s->dtype != SD_TUPLE) {
        in = hlo_inst_create_named(c, NULL, HLO_CONSTANT, name, s, 0, NULL);
        *out = in;
        if (!sd_shape_is_array(s))
            return sd_error(SD_INVALID, "a constant of a token");
        return hlo_literal_of_pb(r->arena, &l, s, (void **)&in->u.literal.data,
                                 &in->u.literal.bytes);
    }
    if (l.elem.n != s->nelem || depth == 16)
        return sd_error(SD_INVALID,
                        "a literal of %d elements for a tuple of "
                        "%d, or one nested too deep",
                        l.elem.n, s->nelem);
    arg = sd_arena_array(r->arena, hlo_inst *, s->nelem + 1);
    for (int i = 0; i < s->nelem; i++)
        if ((st = read_constant(r, c, name, l.elem.at[i], s->elem[i], depth + 1,
                                &arg[i])))
            return st;
    *out = hlo_inst_create_named(c, NULL, HLO_TUPLE, name, s, s->nelem, arg);
    return NULL;
}

static sd_status unknown_op(reader *r, sd_bytes name)
{
    if (hlo_op_not_done(name.len ? (const char *)name.at : "", name.len))
        return sd_error(SD_UNIMPLEMENTED, "XLA's op %s",
                        pb_shown(r->arena, name));
    return sd_error(SD_INVALID, "\"%s\" is no op of HLO",
                    pb_shown(r->arena, name));
}

static sd_status make_inst(reader *r, hlo_comp *c, const pb_inst *p, int most,
                           hlo_inst **out)
{
    const char *name = p->name.len ? pb_text(r->arena, p->name) : "_";
    hlo_inst **arg = NULL, *in;
    const sd_shape *s;
    sd_status st;
    hlo_op op;
    int n;

    if (!hlo_op_of_name((const char *)p->opcode.at, p->opcode.len, &op))
        return unknown_op(r, p->opcode);
    if ((st = hlo_shape_of_pb(r->arena, p->shape, &s)) ||
        (st = read_operands(r, p, &arg)))
        return st;
    if (op == HLO_CONSTANT) {
        if (!p->literal.len)
            return sd_error(SD_INVALID, "its elements were left out when it "
                                        "was written");
        return read_constant(r, c, name, p->literal, s, 0, out);
    }
    n = hlo_new_operands(c, op, name, p->operands.n, &arg);
    in = hlo_inst_create_named(c, NULL, op, name, s, n, arg);
    *out = in;
    if ((st = read_comps(r, p, in)))
        return st;
    if (op == HLO_PARAMETER)
        return read_parameter(c, p, most, in);
    return hlo_attrs_of_pb(r->m, p, in);
}

static sd_status read_inst(reader *r, hlo_comp *c, sd_bytes bytes, int most)
{
    hlo_inst *in = NULL;
    pb_inst p = {0};
    sd_status st = pb_read(r->arena, &pb_inst_table, bytes, &p);

    if (!st && sd_map_has(r->insts, local_id(p.id)))
        st = sd_error(SD_INVALID, "its id %" PRId64 " is another's", p.id);
    if (!st && !(st = make_inst(r, c, &p, most, &in))) {
        read_notes(r, &p, in);
        sd_map_set(r->insts, local_id(p.id), in);
        st = hlo_admit(r->m, in);
    }
    if (!st)
        return NULL;
    return sd_note(st, "%s %s", pb_shown(r->arena, p.opcode),
                   pb_shown(r->arena, p.name));
}

/* ---- computations ---- */

static sd_status check_comp(reader *r, hlo_comp *c, int64_t root)
{
    hlo_inst *in = sd_map_get(r->insts, local_id(root));

    if (!in)
        return sd_error(SD_INVALID, "root, id %" PRId64 ", is not in it", root);
    for (int i = 0; i < c->nparam; i++)
        if (!c->param[i])
            return sd_error(SD_INVALID, "parameter %d is missing", i);
    hlo_set_root(c, in);
    return NULL;
}

static sd_status read_comp(reader *r, sd_bytes bytes)
{
    pb_comp p = {0};
    sd_status st = pb_read(r->arena, &pb_comp_table, bytes, &p);
    const char *name = p.name.len ? pb_text(r->arena, p.name) : "_";
    hlo_comp *c;

    if (st)
        return st;
    c = hlo_comp_create(r->m, name);
    r->insts = sd_map_create(r->arena);
    for (int i = 0; i < p.inst.n; i++)
        if ((st = read_inst(r, c, p.inst.at[i], p.inst.n)))
            return sd_note(st, "computation %s", c->name);
    if (sd_map_has(r->comps, (uint64_t)(p.id)))
        st = sd_error(SD_INVALID, "its id %" PRId64 " is another's", p.id);
    if (st || (st = check_comp(r, c, p.root)))
        return sd_note(st, "computation %s", c->name);
    sd_map_set(r->comps, (uint64_t)(p.id), c);
    return NULL;
}

/* ---- modules ---- */

static sd_status read_aliases(reader *r, const pb_alias *p)
{
    sd_vec(hlo_alias) v = {0};

    for (int i = 0; p && i < p->entry.n; i++) {
        const pb_alias_entry *e = &p->entry.at[i];

        if (e->output_index.n > 1 || e->param_index.n)
            return sd_error(SD_UNIMPLEMENTED,
                            "input_output_alias inside nested tuples");
        *sd_push(r->arena, &v) =
            (hlo_alias){e->output_index.n ? e->output_index.at[0] : 0, e->param,
                        e->kind == 2};
    }
    r->m->alias = v.at;
    r->m->nalias = v.n;
    return NULL;
}

static sd_status read_donors(reader *r, const pb_donor *p)
{
    pb_ints v = {0};
    sd_status st;

    for (int i = 0; p && i < p->entry.n; i++) {
        if (p->entry.at[i].param_index.n)
            return sd_error(SD_UNIMPLEMENTED, "buffer_donor inside a tuple");
        *sd_push(r->arena, &v) = p->entry.at[i].param;
    }
    if ((st = hlo_check_entry(r->m, pb_dims(v))) || !v.n)
        return st;
    r->m->donor = sd_arena_array(r->arena, bool, r->m->entry->nparam + 1);
    for (int i = 0; i < v.n; i++)
        r->m->donor[v.at[i]] = true;
    return NULL;
}

static int64_t space_of(const pb_shape *s)
{
    return s->layout ? s->layout->memory_space : 0;
}

/* Memories of the entry's arguments and results: a layout's memory space. */
static sd_status read_memories(reader *r, const pb_program_shape *p)
{
    hlo_module *m = r->m;
    const pb_shape *out = p ? p->result : NULL;
    int nout = hlo_nresult(m->entry->root);
    bool ok = true;

    if (!p)
        return NULL;
    if (p->param.n != m->entry->nparam || !out ||
        (out->elem.n && out->elem.n != nout))
        return sd_error(SD_INVALID, "the program's shape is not the entry's");
    for (int i = 0; i < p->param.n; i++)
        ok &= hlo_set_memory(r->arena, &m->param_memory, p->param.n, i,
                             space_of(&p->param.at[i]));
    for (int i = 0; i < out->elem.n; i++)
        ok &= hlo_set_memory(r->arena, &m->output_memory, nout, i,
                             space_of(&out->elem.at[i]));
    if (!out->elem.n && nout == 1)
        ok &=
            hlo_set_memory(r->arena, &m->output_memory, nout, 0, space_of(out));
    return ok ? NULL : hlo_bad_memory();
}

static sd_status read_module(reader *r, const pb_module *p,
                             const pb_config *config)
{
    const pb_program_shape *shape = config && config->program_shape
                                        ? config->program_shape
                                        : p->program_shape;
    sd_status st;

    for (int i = 0; i < p->comp.n; i++)
        if ((st = read_comp(r, p->comp.at[i])))
            return st;
    r->m->entry = sd_map_get(r->comps, (uint64_t)(p->entry_id));
    if (!r->m->entry)
        return sd_error(SD_INVALID,
                        "no computation has the entry's id %" PRId64,
                        p->entry_id);
    r->m->frontend_attrs = attributes_text(r, p->frontend_attrs);
    if ((st = read_aliases(r, p->alias)) || (st = read_donors(r, p->donor)))
        return st;
    return read_memories(r, shape);
}

static sd_status read_counts(hlo_module *m, const pb_config *c)
{
    const int64_t most = 1 << 20;

    if (!c)
        return NULL;
    if (c->nreplica < 0 || c->nreplica > most || c->npartition < 0 ||
        c->npartition > most)
        return sd_error(SD_INVALID,
                        "%" PRId64 " replicas and %" PRId64 " partitions",
                        c->nreplica, c->npartition);
    m->nreplica = c->nreplica ? (int)c->nreplica : 1;
    m->npartition = c->npartition ? (int)c->npartition : 1;
    return NULL;
}

sd_status hlo_proto_read(sd_arena *a, sd_bytes b, bool with_config,
                         hlo_module **out)
{
    reader r = {.arena = a, .comps = sd_map_create(a)};
    pb_with_config outer = {.module = b};
    pb_module p = {0};
    sd_status st = NULL;

    if (with_config)
        st = pb_read(a, &pb_with_config_table, b, &outer);
    if (st || (st = pb_read(a, &pb_module_table, outer.module, &p)))
        return sd_note(st, "HLO protobuf");
    r.m = hlo_module_create(a, p.name.len ? pb_text(a, p.name) : "module");
    r.frames = p.frames;
    if ((st = read_counts(r.m, outer.config)) ||
        (st = read_module(&r, &p, outer.config)))
        return sd_note(st, "HLO protobuf, module %s", r.m->name);
    *out = r.m;
    return NULL;
}
