/* The head of HLO text: the module's attributes, and XLA's tables of files and
 * frames before the computations. */
#include "hlo_proto.h"

#define PROPAGATION "allow_spmd_sharding_propagation_to_"

/* ---- attributes ---- */

/* { {0}: (1, {}, may-alias), ... } */
static void take_aliases(hlo_lexer *x, hlo_module *m)
{
    sd_vec(hlo_alias) v = {0};

    hlo_expect(x, "{");
    while (!x->bad && !hlo_accept(x, "}")) {
        hlo_alias a = {0};
        hlo_dims out = hlo_take_dims(x), in;

        hlo_expect(x, ":");
        hlo_expect(x, "(");
        a.param = hlo_take_int(x);
        hlo_expect(x, ",");
        in = hlo_take_dims(x);
        if (hlo_accept(x, ",")) {
            a.must = hlo_accept_word(x, "must-alias");
            if (!a.must && !hlo_accept_word(x, "may-alias"))
                hlo_fail(x, "may-alias or must-alias");
        }
        hlo_expect(x, ")");
        hlo_accept(x, ",");
        if (out.n > 1 || in.n > 0)
            hlo_fail(x, "outputs and parameters without inner tuples");
        a.output_index = out.n ? out.at[0] : 0;
        *sd_push(x->arena, &v) = a;
    }
    m->alias = v.at;
    m->nalias = v.n;
}

/* { (0, {}), (2, {}) }, kept until the entry's parameters are known */
static hlo_dims take_donors(hlo_lexer *x)
{
    sd_vec(int64_t) v = {0};

    hlo_expect(x, "{");
    while (!x->bad && !hlo_accept(x, "}")) {
        hlo_expect(x, "(");
        *sd_push(x->arena, &v) = hlo_take_int(x);
        hlo_expect(x, ",");
        hlo_take_dims(x);
        hlo_expect(x, ")");
        hlo_accept(x, ",");
    }
    return (hlo_dims){v.at, v.n};
}

static int take_count(hlo_lexer *x)
{
    int64_t n = hlo_take_int(x);

    if (n < 1 || n > 1 << 20)
        hlo_fail(x, "a count, 1 to 1048576");
    return (int)n;
}

/* The memory space of one argument or result; the shape is said again. */
static int64_t take_space(hlo_lexer *x)
{
    const sd_shape *s = hlo_take_shape(x);

    return s && sd_shape_is_array(s) ? x->space : 0;
}

static hlo_dims take_spaces(hlo_lexer *x)
{
    sd_vec(int64_t) v = {0};

    hlo_expect(x, "(");
    if (hlo_accept(x, ")"))
        return (hlo_dims){0};
    do
        *sd_push(x->arena, &v) = take_space(x);
    while (hlo_accept(x, ",") && !x->bad);
    hlo_expect(x, ")");
    return (hlo_dims){v.at, v.n};
}

/* {(f32[2]{0}, ...)->(f32[2]{0:S(5)})} */
static void take_entry_layout(hlo_lexer *x, hlo_head *h)
{
    int64_t one;

    hlo_expect(x, "{");
    h->param_space = take_spaces(x);
    hlo_expect(x, "->");
    hlo_skip_space(x);
    if (x->at < x->end && *x->at == '(') {
        h->output_space = take_spaces(x);
    } else {
        one = take_space(x);
        h->output_space = hlo_dims_copy(x->arena, &one, 1);
    }
    hlo_expect(x, "}");
}

static void take_attributes(hlo_lexer *x, hlo_module *m)
{
    char *text = sd_arena_str(x->arena, x->at, (size_t)(x->end - x->at));
    pb_attributes at;

    if (hlo_attributes_parse(x->arena, text, &at))
        m->frontend_attrs = text;
    else
        hlo_fail(x, "attributes, {name=\"value\",...}");
}

/* {true,false} */
static hlo_dims take_truths(hlo_lexer *x)
{
    sd_vec(int64_t) v = {0};

    hlo_expect(x, "{");
    if (hlo_accept(x, "}"))
        return (hlo_dims){0};
    do {
        bool yes = hlo_accept_word(x, "true");

        if (!yes && !hlo_accept_word(x, "false"))
            hlo_fail(x, "true or false");
        *sd_push(x->arena, &v) = yes;
    } while (hlo_accept(x, ",") && !x->bad);
    hlo_expect(x, "}");
    return (hlo_dims){v.at, v.n};
}

static void take_module_attr(hlo_lexer *x, hlo_word key, hlo_module *m,
                             hlo_head *h)
{
    if (hlo_word_is(key, "input_output_alias"))
        take_aliases(x, m);
    else if (hlo_word_is(key, "buffer_donor"))
        h->donors = take_donors(x);
    else if (hlo_word_is(key, "replica_count"))
        m->nreplica = take_count(x);
    else if (hlo_word_is(key, "num_partitions"))
        m->npartition = take_count(x);
    else if (hlo_word_is(key, PROPAGATION "parameters"))
        m->open_param = take_truths(x);
    else if (hlo_word_is(key, PROPAGATION "output"))
        m->open_output = take_truths(x);
    else if (hlo_word_is(key, "entry_computation_layout"))
        take_entry_layout(x, h);
    else if (hlo_word_is(key, "frontend_attributes"))
        take_attributes(x, m);
    /* others repeat what the computations say, or are XLA's own affair */
}

static void take_attrs(hlo_lexer *x, hlo_module *m, hlo_head *h)
{
    hlo_attr a;

    while (hlo_accept(x, ",") && hlo_take_attr(x, &a)) {
        hlo_lexer v = *x;

        v.at = a.value.at;
        v.end = a.value.at + a.value.len;
        take_module_attr(&v, a.key, m, h);
        if (!v.bad)
            continue;
        x->at = v.bad_at;
        if (v.status)
            hlo_refuse(x, v.status);
        else
            hlo_fail(x, v.bad);
    }
}

/* ---- tables ---- */

/* {file_name_id=1 function_name_id=2 line=3 ...}: the two that are asked for */
static hlo_numbers take_fields(hlo_lexer *x, const char *first,
                               const char *second)
{
    hlo_numbers n = {0, 0};

    hlo_expect(x, "{");
    while (!x->bad && !hlo_accept(x, "}")) {
        hlo_word key = hlo_take_name(x);
        int64_t v;

        hlo_expect(x, "=");
        v = hlo_take_int(x);
        if (hlo_word_is(key, first))
            n.a = v;
        else if (hlo_word_is(key, second))
            n.b = v;
    }
    return n;
}

static void take_row(hlo_lexer *x, hlo_head *h, int table)
{
    size_t len;

    if (table == 0)
        *sd_push(x->arena, &h->file) = hlo_take_string(x, &len);
    else if (table == 1)
        hlo_take_string(x, &len); /* names of functions are not kept */
    else if (table == 2)
        *sd_push(x->arena, &h->location) =
            take_fields(x, "file_name_id", "line");
    else
        *sd_push(x->arena, &h->frame) = take_fields(x, "file_location_id", "");
}

/* Rows are numbered from 1 in their order. */
static bool take_table(hlo_lexer *x, hlo_head *h)
{
    static const char *const name[] = {"FileNames", "FunctionNames",
                                       "FileLocations", "StackFrames"};

    for (int i = 0; i < (int)SD_COUNTOF(name); i++) {
        if (!hlo_accept_word(x, name[i]))
            continue;
        hlo_skip_space(x);
        while (!x->bad && x->at < x->end && *x->at >= '0' && *x->at <= '9') {
            hlo_take_int(x);
            take_row(x, h, i);
            hlo_skip_space(x);
        }
        return true;
    }
    return false;
}

/* File and line of a frame in the header's tables. */
void hlo_head_frame(const hlo_head *h, int64_t id, hlo_inst *in)
{
    int64_t at, file;

    if (id < 1 || id > h->frame.n)
        return;
    at = h->frame.at[id - 1].a;
    if (at < 1 || at > h->location.n)
        return;
    file = h->location.at[at - 1].a;
    if (file < 1 || file > h->file.n)
        return;
    in->source_file = h->file.at[file - 1];
    in->source_line = (int)h->location.at[at - 1].b;
}

void hlo_take_head(hlo_lexer *x, hlo_module *m, hlo_head *h)
{
    take_attrs(x, m, h);
    while (!x->bad && take_table(x, h))
        ;
}

/* ---- what waits for the entry ---- */

static sd_status set_memories(hlo_module *m, const hlo_head *h)
{
    const sd_shape *root = m->entry->root->shape;
    int nout = sd_shape_nresult(root);
    hlo_dims p = h->param_space, o = h->output_space;
    bool ok = true;

    if (p.n > m->entry->nparam || o.n > nout)
        return sd_error(SD_INVALID,
                        "entry_computation_layout has %d arguments and %d "
                        "results, the entry %d and %d",
                        p.n, o.n, m->entry->nparam, nout);
    for (int i = 0; i < p.n; i++)
        ok &= hlo_set_memory(m->arena, &m->param_memory, m->entry->nparam, i,
                             p.at[i]);
    for (int i = 0; i < o.n; i++)
        ok &= hlo_set_memory(m->arena, &m->output_memory, nout, i, o.at[i]);
    return ok ? NULL : hlo_bad_memory();
}

sd_status hlo_head_apply(const hlo_head *h, hlo_module *m)
{
    sd_status st = hlo_check_entry(m, h->donors);

    if (st)
        return st;
    if (h->donors.n)
        m->donor = sd_arena_array(m->arena, bool, m->entry->nparam + 1);
    for (int i = 0; i < h->donors.n; i++)
        m->donor[h->donors.at[i]] = true;
    return set_memories(m, h);
}
