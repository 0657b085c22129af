/* The graph as text, in XLA's grammar, so that people and tools read it. */
#include "hlo_attr.h"

/* ---- small parts ---- */

void hlo_print_shape(sd_buf *b, const sd_shape *s, bool layout)
{
    if (s->dtype != SD_TUPLE) {
        sd_shape_print(b, s, layout);
        return;
    }
    sd_buf_str(b, "(");
    for (int i = 0; i < s->nelem; i++) {
        sd_buf_str(b, i ? ", " : "");
        if (i && i % 5 == 0) /* so that a person can count */
            sd_buf_fmt(b, "/*index=%d*/", i);
        hlo_print_shape(b, s->elem[i], layout);
    }
    sd_buf_str(b, ")");
}

/* Under a key each, or as a list under one. */
static void print_comps(sd_buf *b, const hlo_inst *in)
{
    static const char *const branch[] = {"true_computation",
                                         "false_computation"};
    bool list = in->op == HLO_CUSTOM_CALL || in->op == HLO_CONDITIONAL;
    const char *const *key = branch;
    int n = 2;

    if (!list)
        key = hlo_comp_keys(in->op, &n);
    else if (in->op == HLO_CONDITIONAL)
        list = in->arg[0]->shape->dtype != SD_PRED;
    for (int i = 0; i < n && !list; i++)
        sd_buf_fmt(b, ", %s=%%%s", key[i], in->comp[i]->name);
    if (!list)
        return;
    sd_buf_str(b, in->op == HLO_CUSTOM_CALL ? ", called_computations={"
                                            : ", branch_computations={");
    for (int i = 0; i < in->ncomp; i++)
        sd_buf_fmt(b, i ? ", %%%s" : "%%%s", in->comp[i]->name);
    sd_buf_str(b, "}");
}

/* What does not follow XLA's grammar stands as a string. */
static void print_sharding(sd_buf *b, const char *text)
{
    sd_arena *a = sd_arena_create();
    pb_sharding s;

    sd_buf_str(b, ", sharding=");
    if (hlo_sharding_parse(a, text, &s))
        hlo_sharding_print(b, &s);
    else
        hlo_print_quoted(b, text, strlen(text));
    sd_arena_destroy(a);
}

static void print_attributes(sd_buf *b, const char *text)
{
    sd_arena *a = sd_arena_create();
    pb_attributes at;

    sd_buf_str(b, ", frontend_attributes=");
    if (hlo_attributes_parse(a, text, &at))
        hlo_attributes_print(b, &at);
    else
        hlo_print_quoted(b, text, strlen(text));
    sd_arena_destroy(a);
}

static bool is_given(const char *s)
{
    return s && *s;
}

static void print_metadata(sd_buf *b, const hlo_inst *in)
{
    sd_buf_str(b, ", metadata={");
    if (is_given(in->op_name)) {
        sd_buf_str(b, "op_name=");
        hlo_print_quoted(b, in->op_name, strlen(in->op_name));
    }
    if (is_given(in->source_file)) {
        sd_buf_str(b, is_given(in->op_name) ? " source_file=" : "source_file=");
        hlo_print_quoted(b, in->source_file, strlen(in->source_file));
        sd_buf_fmt(b, " source_line=%d", in->source_line);
    }
    sd_buf_str(b, "}");
}

static void print_notes(sd_buf *b, const hlo_inst *in)
{
    if (in->sharding)
        print_sharding(b, in->sharding);
    if (in->frontend_attrs)
        print_attributes(b, in->frontend_attrs);
    if (is_given(in->op_name) || is_given(in->source_file))
        print_metadata(b, in);
    if (in->op == HLO_CUSTOM_CALL && in->u.custom->config_len) {
        sd_buf_str(b, ", backend_config=");
        hlo_print_quoted(b, in->u.custom->config, in->u.custom->config_len);
    }
}

static void print_result(sd_buf *b, const hlo_inst *in)
{
    sd_arena *a;

    if (in->op != HLO_CUSTOM_CALL || !in->u.custom->result_layout) {
        hlo_print_shape(b, in->shape, true);
        return;
    }
    a = sd_arena_create();
    hlo_print_shape(b, hlo_custom_result(a, in), true);
    sd_arena_destroy(a);
}

void hlo_print_inst(sd_buf *b, const hlo_inst *in)
{
    hlo_guise mask;

    in = hlo_masked(in, &mask);
    sd_buf_fmt(b, "%%%s = ", in->name);
    print_result(b, in);
    sd_buf_fmt(b, " %s(", hlo_info(in)->name);
    if (in->op == HLO_PARAMETER)
        sd_buf_fmt(b, "%" PRId64, in->u.param.index);
    else if (in->op == HLO_CONSTANT)
        hlo_print_literal(b, in->shape, in->u.literal.data);
    for (int i = 0; i < in->narg; i++) {
        sd_buf_str(b, i ? ", " : "");
        if (i && i % 5 == 0)
            sd_buf_fmt(b, "/*index=%d*/", i);
        sd_buf_fmt(b, "%%%s", in->arg[i]->name);
    }
    sd_buf_str(b, ")");
    hlo_print_attrs(b, in);
    if (in->ncomp)
        print_comps(b, in);
    print_notes(b, in);
}

/* ---- computations and modules ---- */

static void print_comp(sd_buf *b, const hlo_comp *c)
{
    sd_buf_fmt(b, "%s%%%s (", c == c->module->entry ? "ENTRY " : "", c->name);
    for (int i = 0; i < c->nparam; i++) {
        sd_buf_fmt(
            b, i ? ", %s: " : "%s: ", c->param[i] ? c->param[i]->name : "?");
        if (c->param[i])
            hlo_print_shape(b, c->param[i]->shape, false);
    }
    sd_buf_str(b, ") -> ");
    if (c->root)
        hlo_print_shape(b, c->root->shape, false);
    sd_buf_str(b, " {\n");
    hlo_for_each_inst(in, c) {
        sd_buf_str(b, in == c->root ? "  ROOT " : "  ");
        hlo_print_inst(b, in);
        sd_buf_str(b, "\n");
    }
    sd_buf_str(b, "}\n");
}

/* A shape with its layout and, where it is not the device's, the number of
 * its memory: f32[2]{0:S(5)}. */
static void print_placed(sd_buf *b, const sd_shape *s, int64_t space)
{
    hlo_print_shape(b, s, true);
    if (!space || !sd_shape_is_array(s) || b->oom)
        return;
    if (s->rank)
        b->len--; /* the layout's brace */
    else
        sd_buf_str(b, "{");
    sd_buf_fmt(b, ":S(%" PRId64 ")}", space);
}

static void print_entry_layout(sd_buf *b, const hlo_module *m)
{
    const sd_shape *out = m->entry->root->shape;

    sd_buf_str(b, ", entry_computation_layout={(");
    for (int i = 0; i < m->entry->nparam; i++) {
        sd_buf_str(b, i ? ", " : "");
        if (i && i % 5 == 0)
            sd_buf_fmt(b, "/*index=%d*/", i);
        print_placed(b, m->entry->param[i]->shape,
                     hlo_memory_space(m->param_memory, i));
    }
    sd_buf_str(b, out->dtype == SD_TUPLE ? ")->(" : ")->");
    for (int i = 0; out->dtype == SD_TUPLE && i < out->nelem; i++) {
        sd_buf_str(b, i ? ", " : "");
        if (i && i % 5 == 0)
            sd_buf_fmt(b, "/*index=%d*/", i);
        print_placed(b, out->elem[i], hlo_memory_space(m->output_memory, i));
    }
    if (out->dtype == SD_TUPLE)
        sd_buf_str(b, ")");
    else
        print_placed(b, out, hlo_memory_space(m->output_memory, 0));
    sd_buf_str(b, "}");
}

static void print_open(sd_buf *b, const char *what, hlo_dims open)
{
    if (!open.n)
        return;
    sd_buf_fmt(b, ", allow_spmd_sharding_propagation_to_%s={", what);
    for (int i = 0; i < open.n; i++)
        sd_buf_fmt(b, "%s%s", i ? "," : "", open.at[i] ? "true" : "false");
    sd_buf_str(b, "}");
}

static void print_header(sd_buf *b, const hlo_module *m)
{
    bool tuple =
        m->entry && m->entry->root && m->entry->root->shape->dtype == SD_TUPLE;
    bool first = true;

    sd_buf_fmt(b, "HloModule %s", m->name);
    for (int i = 0; i < m->nalias; i++) {
        sd_buf_str(b, i ? ", " : ", input_output_alias={ ");
        if (tuple)
            sd_buf_fmt(b, "{%" PRId64 "}", m->alias[i].output_index);
        else
            sd_buf_str(b, "{}");
        sd_buf_fmt(b, ": (%" PRId64 ", {}, %s)%s", m->alias[i].param,
                   m->alias[i].must ? "must-alias" : "may-alias",
                   i == m->nalias - 1 ? " }" : "");
    }
    for (int i = 0; m->donor && m->entry && i < m->entry->nparam; i++)
        if (m->donor[i]) {
            sd_buf_fmt(b, "%s(%d, {})", first ? ", buffer_donor={ " : ", ", i);
            first = false;
        }
    if (!first)
        sd_buf_str(b, " }");
    if (m->entry && m->entry->root)
        print_entry_layout(b, m);
    if (m->nreplica != 1)
        sd_buf_fmt(b, ", replica_count=%d", m->nreplica);
    if (m->npartition != 1)
        sd_buf_fmt(b, ", num_partitions=%d", m->npartition);
    print_open(b, "parameters", m->open_param);
    print_open(b, "output", m->open_output);
    if (m->frontend_attrs)
        print_attributes(b, m->frontend_attrs);
    sd_buf_str(b, "\n");
}

/* Callees first, so that one pass reads it back. */
void hlo_print(sd_buf *b, const hlo_module *m)
{
    sd_arena *a = sd_arena_create();
    hlo_comp_list comps = hlo_callees_first(a, m);

    print_header(b, m);
    for (int i = 0; i < comps.n; i++) {
        sd_buf_str(b, "\n");
        print_comp(b, comps.at[i]);
    }
    sd_arena_destroy(a);
}
