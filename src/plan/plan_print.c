/* Plans as text, for dumps and golden files. */
#include "plan_whole.h"

static void print_expr(sd_buf *b, const plan_expr *e)
{
    switch (e->kind) {
    case PX_CONST:
        sd_buf_fmt(b, "%" PRId64, e->c);
        return;
    case PX_AXIS:
        sd_buf_fmt(b, "a%d", e->axis);
        return;
    case PX_NODE:
        sd_buf_fmt(b, "n%d", e->node->id);
        if (e->lo != 0)
            sd_buf_fmt(b, "{%" PRId64 "}", e->lo);
        return;
    case PX_ADD:
        print_expr(b, e->a);
        sd_buf_str(b, " + ");
        print_expr(b, e->b);
        return;
    default:
        break;
    }
    if (e->a->kind == PX_ADD) {
        sd_buf_str(b, "(");
        print_expr(b, e->a);
        sd_buf_str(b, ")");
    } else {
        print_expr(b, e->a);
    }
    sd_buf_fmt(b, "%s%" PRId64,
               e->kind == PX_MUL   ? "*"
               : e->kind == PX_DIV ? "/"
                                   : "%",
               e->c);
}

static void print_axes(sd_buf *b, uint64_t axes)
{
    const char *sep = "";

    sd_buf_str(b, "{");
    for (int i = 0; i < 64; i++)
        if (axes >> i & 1) {
            sd_buf_fmt(b, "%sa%d", sep, i);
            sep = ",";
        }
    sd_buf_str(b, "}");
}

static void print_value(sd_buf *b, const plan_node *n)
{
    size_t bytes = sd_dtype_bytes(n->dtype);

    sd_buf_str(b, " ");
    if (sd_is_float(n->dtype))
        sd_buf_fmt(b, "%.9g ", sd_scalar_to_f64(n->dtype, n->value));
    else if (!sd_is_complex(n->dtype))
        sd_buf_fmt(b, "%" PRId64, sd_scalar_to_s64(n->dtype, n->value));
    if (!sd_is_float(n->dtype) && !sd_is_complex(n->dtype))
        return;
    sd_buf_str(b, "0x"); /* NaN payloads and the sign of 0 count */
    for (size_t i = bytes; i-- > 0;)
        sd_buf_fmt(b, "%02x", n->value[i]);
}

static void print_guards(sd_buf *b, const plan_node *n)
{
    for (int i = 0; i < n->nguard; i++) {
        sd_buf_fmt(b, "%s%" PRId64 " <= ", i ? ", " : " if ", n->guard[i].lo);
        print_expr(b, n->guard[i].e);
        sd_buf_fmt(b, " < %" PRId64, n->guard[i].hi);
    }
}

static void print_args(sd_buf *b, const plan_node *n)
{
    for (int i = 0; i < n->narg; i++)
        sd_buf_fmt(b, "%sn%d", i ? ", " : " ", n->arg[i]->id);
}

static const char *const direction[] = {[HLO_EQ] = "EQ", [HLO_NE] = "NE",
                                        [HLO_GE] = "GE", [HLO_GT] = "GT",
                                        [HLO_LE] = "LE", [HLO_LT] = "LT"};
static const char *const compared[] = {[HLO_CMP_FLOAT] = "",
                                       [HLO_CMP_TOTAL] = ".total",
                                       [HLO_CMP_SIGNED] = "",
                                       [HLO_CMP_UNSIGNED] = ""};

static void print_op(sd_buf *b, const plan_node *n)
{
    sd_buf_fmt(b, " %s", hlo_op_table[n->op].name);
    if (n->op == HLO_COMPARE)
        sd_buf_fmt(b, ".%s%s", direction[n->in->u.compare.dir],
                   compared[n->in->u.compare.type]);
}

void plan_print_body(sd_buf *b, const plan_body *body)
{
    if (body->op >= 0 && body->nroot == 1) {
        sd_buf_fmt(b, " %s", hlo_op_table[body->op].name);
        return;
    }
    sd_buf_str(b, " (");
    for (int i = 0; i < body->nnode; i++) {
        const plan_node *n = body->node[i];

        sd_buf_fmt(b, "%s%d:%s", i ? "; " : "", i, sd_dtype_name(n->dtype));
        if (n->kind == PN_PARAM)
            sd_buf_fmt(b, " p%d", n->out);
        else if (n->kind == PN_CONST)
            print_value(b, n);
        else
            print_op(b, n);
        for (int j = 0; j < n->narg; j++)
            sd_buf_fmt(b, " %d", n->arg[j]->id);
    }
    sd_buf_str(b, " ->");
    for (int i = 0; i < body->nroot; i++)
        sd_buf_fmt(b, " %d", body->root[i]->id);
    sd_buf_str(b, ")");
}

static const char *const kind_name[] = {
    [PN_LOAD] = "load",       [PN_CONST] = "const",       [PN_INDEX] = "index",
    [PN_ELT] = "elt",         [PN_REDUCE] = "reduce",     [PN_SCAN] = "scan",
    [PN_PICK] = "pick",       [PN_PARAM] = "param",       [PN_STORE] = "store",
    [PN_SCATTER] = "scatter", [PN_CONTRACT] = "contract",
};

static bool has_place(const plan_node *n)
{
    return n->kind == PN_LOAD || n->kind == PN_STORE || n->kind == PN_SCATTER;
}

static void print_node(sd_buf *b, const plan_node *n)
{
    sd_buf_fmt(b, "  n%d:%s", n->id, sd_dtype_name(n->dtype));
    if (n->kind == PN_ELT)
        print_op(b, n);
    else
        sd_buf_fmt(b, " %s", kind_name[n->kind]);
    if (n->kind == PN_CONST)
        print_value(b, n);
    if (n->kind == PN_PICK)
        sd_buf_fmt(b, " %d of", n->out);
    if (n->body)
        plan_print_body(b, n->body);
    print_args(b, n);
    if (has_place(n)) {
        sd_buf_fmt(b, "%s s%d[", n->kind == PN_LOAD ? "" : " ->", n->slot);
        print_expr(b, n->off);
        sd_buf_str(b, "]");
        if (n->wide > 1)
            sd_buf_fmt(b, " by %d", n->wide);
    } else if (n->off) {
        sd_buf_str(b, " ");
        print_expr(b, n->off);
    }
    print_guards(b, n);
    if (n->over) {
        sd_buf_str(b, " over ");
        print_axes(b, n->over);
    }
    if (n->kind == PN_REDUCE || n->kind == PN_SCAN)
        sd_buf_fmt(b, " lanes %d", n->order.lanes);
    if (n->order.chunk)
        sd_buf_fmt(b, " in chains of %" PRId64 " a%d", n->order.chunk,
                   n->order.cut);
    for (int i = 0; n->woven && i < n->woven->n; i++)
        if (n->woven->at[i] == n)
            sd_buf_fmt(b, " strand %d of %d", i, n->woven->n);
    sd_buf_fmt(b, "%s%s%s%s%s%s%s%s @%d\n", n->exclusive ? " exclusive" : "",
               n->apart ? " apart" : "", n->meets ? " meeting" : "",
               n->words ? " words" : "", n->down ? " down" : "",
               n->rounded ? " rounded" : "", n->of_bf16 ? " of bf16" : "",
               n->parked   ? " parked"
               : n->across ? " across"
               : n->staged ? " staged"
                           : "",
               n->stage);
}

static void print_slots(sd_buf *b, const plan_kernel *k)
{
    static const char *const access[] = {"unused", "read", "write",
                                         "read-write"};

    for (int i = 0; i < k->nslot; i++) {
        const plan_slot *s = &k->slot[i];

        sd_buf_fmt(b, "  s%d: %s[%" PRId64 "] %s align %u%s\n", i,
                   sd_dtype_name(s->dtype), s->count, access[s->access],
                   s->align, s->noalias ? "" : " may alias");
    }
}

/* M x N x K of a group's tile, and of them what an item has. */
static void print_group_blocks(sd_buf *b, const plan_kernel *k)
{
    const plan_blocks *p = k->blocks;
    const plan_engine_info *e = &plan_engine_table[p->engine];

    sd_buf_fmt(b,
               "  blocks of n%d: a%d %" PRId64 " x a%d %" PRId64
               " x a%d %" PRId64 " by %d, %d x %d %s of %d x %d by %d, ",
               p->node->id, p->m, p->mt, p->n, p->nt, p->k, p->kt, p->step,
               p->along_m, p->along_n, e->m ? "sub-groups" : "items", p->rows,
               p->vectors, p->near);
    if (e->m)
        sd_buf_fmt(b, "by %s %d x %d x %d, ", sd_dtype_name(e->part), e->m,
                   e->n, e->depth);
    if (p->early)
        sd_buf_fmt(b, "%d abreast, read early, ", PLAN_ABREAST);
    if (p->lead)
        sd_buf_fmt(b, "after %d zeros, ", p->lead);
    if (p->direct)
        sd_buf_fmt(b, "read by %sblocks%s%s, ", p->deep ? "deep " : "",
                   p->y_reads.across ? ", y across" : "",
                   p->slides ? ", sliding" : "");
    if (p->m_whole)
        sd_buf_fmt(b, "a%d as %" PRId64 ", ", plan_last_axis(p->m_in),
                   plan_tile_extent(k, p, plan_last_axis(p->m_in)));
    if (!p->direct)
        sd_buf_fmt(b, "x%s%s along a%d by %d, y%s%s along a%d by %d, ",
                   p->x_plain ? " plain" : "", p->x_loose ? ", loose" : "",
                   p->x_along, p->x_wide, p->y_plain ? " plain" : "",
                   p->y_loose ? ", loose" : "", p->y_along, p->y_wide);
    if (p->zeros)
        sd_buf_fmt(b, "zeros s%d, ", p->zeros);
    if (p->window)
        sd_buf_fmt(b, "x once a window, %" PRId64 " rows, ",
                   plan_window_rows(k, p));
    else if (plan_slides_in_area(p))
        sd_buf_fmt(b, "x slides along a%d, %" PRId64 " rows, ",
                   plan_slide_axis(p), plan_slide_rows(k, p));
    else if (p->pairs > 2)
        sd_buf_fmt(b, "%d pairs%s, ", p->pairs,
                   p->by_itself ? " by themselves" : "");
    if (p->band > 1)
        sd_buf_fmt(b, "bands of %d tiles, ", p->band);
    sd_buf_fmt(b, "round %" PRId64 "\n", p->round);
}

/* M x N x K of a tile, and of them what is in registers. */
static void print_blocks(sd_buf *b, const plan_kernel *k)
{
    const plan_blocks *p = k->blocks;

    sd_buf_fmt(b,
               "  blocks of n%d: a%d %" PRId64 " x a%d %" PRId64
               " x a%d %" PRId64
               ", in registers %d x %d vectors, x along a%d, y along a%d",
               p->node->id, p->m,
               k->axis[p->m].tile * (int64_t)plan_points(k, p->m_in), p->n,
               k->axis[p->n].tile * (int64_t)plan_points(k, p->n_in), p->k,
               p->kt, p->rows, p->vectors, p->x_along, p->y_along);
    if (p->ahead)
        sd_buf_fmt(b, ", %d ahead", p->ahead);
    if (plan_engine_table[p->engine].tiles)
        sd_buf_fmt(b, ", sums in tiles of %d x %d", plan_tile_of_sums(p),
                   PLAN_SQUARE);
    sd_buf_str(b, "\n");
}

/* 64 lanes vector x4: sums of 64 lanes, 4 vectors of LANE in a step. */
static void print_pass(sd_buf *b, const plan_pass *p)
{
    static const char *const how[] = {
        [PLAN_LANES_ONE] = "in order",
        [PLAN_LANES_COPIES] = "copies",
        [PLAN_LANES_MAJOR] = "in turn",
        [PLAN_LANES_VECTOR] = "vector",
        [PLAN_LANES_ROTATE] = "rotate",
        [PLAN_LANES_CHUNK] = "chunk",
        [PLAN_LANES_ITEMS] = "items",
        [PLAN_LANES_ROWS] = "by rows",
        [PLAN_LANES_ACROSS] = "in order, across",
        [PLAN_LANES_SHIFTED] = "in order, shifted",
    };

    sd_buf_str(b, " ");
    if (p->lanes > 1)
        sd_buf_fmt(b, "%d lanes ", p->lanes);
    sd_buf_str(b, how[p->how]);
    if (p->vectors > 1)
        sd_buf_fmt(b, " x%d", p->vectors);
    if (p->one_by_one)
        sd_buf_str(b, ", one by one");
    if (p->ahead)
        sd_buf_fmt(b, " ahead %d", p->ahead);
    if (p->end) {
        sd_buf_str(b, " while ");
        print_expr(b, p->end->guard.e);
        sd_buf_fmt(b, " < %" PRId64, p->end->guard.hi);
    }
    if (p->drops)
        sd_buf_str(b, " without subnormals");
}

static void print_stage(sd_buf *b, const plan_kernel *k, int stage)
{
    const char *sep = ":";

    sd_buf_fmt(b, "  stage %d ", stage);
    print_axes(b, k->stage[stage].axes);
    for (int i = 0; i < k->npass && k->stage[stage].axes; i++)
        if (k->pass[i].stage == stage) {
            sd_buf_str(b, sep);
            print_pass(b, &k->pass[i]);
            sep = ",";
        }
    sd_buf_str(b, "\n");
}

static void print_areas(sd_buf *b, const plan_kernel *k)
{
    static const char *const what[] = {
        [PLAN_AREA_PARK] = "park",   [PLAN_AREA_JOIN] = "join",
        [PLAN_AREA_STAGE] = "stage", [PLAN_AREA_SUMS] = "sums",
        [PLAN_AREA_WORK] = "work",
    };

    for (int i = 0; i < k->narea; i++) {
        const plan_area *x = &k->area[i];

        sd_buf_fmt(b, "  area %d: %s", i, what[x->what]);
        if (x->owner >= 0)
            sd_buf_fmt(b, " n%d", x->owner);
        sd_buf_fmt(b, ", %zu bytes at %zu", x->bytes, x->offset);
        if (x->row)
            sd_buf_fmt(b, ", row %zu", x->row);
        if (k->nstage > 1)
            sd_buf_fmt(b, ", stages %d to %d", x->first, x->last);
        sd_buf_str(b, "\n");
    }
}

/* a0 knows from 0 (a1 knows from 0, knows from 7), knows from 1 */
static void print_cut(sd_buf *b, const plan_cut *c)
{
    if (!c)
        return;
    sd_buf_fmt(b, "a%d", c->axis);
    for (int i = 0; i < c->n; i++) {
        const plan_stretch *s = &c->stretch[i];

        sd_buf_fmt(b, "%s%s from %" PRId64, i ? ", " : " ",
                   s->known ? "knows" : "asks", s->from);
        if (s->inside)
            sd_buf_str(b, " (");
        print_cut(b, s->inside);
        if (s->inside)
            sd_buf_str(b, ")");
    }
}

/* The loops outside of the stages. */
static void print_nest(sd_buf *b, const plan_kernel *k)
{
    for (int i = 0; i < k->nnest; i++)
        sd_buf_fmt(b, "%s a%d", i ? "" : "  loops", k->nest[i]);
    if (k->cut)
        sd_buf_str(b, ", ");
    print_cut(b, k->cut);
    if (k->nnest)
        sd_buf_str(b, "\n");
}

static void print_mapping(sd_buf *b, const plan_kernel *k)
{
    static const char *const role[] = {"map", "reduce", "scan"};
    static const char *const place[] = {"seq", "lane", "unroll", "crowd"};

    for (int i = 0; i < k->naxis; i++) {
        const plan_axis *x = &k->axis[i];

        sd_buf_fmt(b, "  a%d: %" PRId64 " %s %s %s", i, x->extent,
                   x->outer ? "outer" : "inner", role[x->role],
                   place[x->place]);
        if (x->grid)
            sd_buf_fmt(b, " tile %" PRId64, x->tile);
        if (x->copies > 1)
            sd_buf_fmt(b, " copies %d", x->copies);
        if (k->keeps && x->place == PLAN_LANE)
            sd_buf_str(b, " kept");
        if (k->teams && x->place == PLAN_LANE)
            sd_buf_fmt(b, " by %d teams", k->teams);
        sd_buf_str(b, "\n");
    }
    print_areas(b, k);
    if (k->blocks && k->group > 1)
        print_group_blocks(b, k);
    else if (k->blocks)
        print_blocks(b, k);
    print_nest(b, k);
    for (int i = 0; i < k->nstage; i++)
        print_stage(b, k, i);
}

static void print_sort(sd_buf *b, const plan_sort *s)
{
    static const char *const step[] = {
        [PLAN_SORT_ROWS] = "sort",      [PLAN_SORT_TILES] = "sort tiles",
        [PLAN_SORT_MERGE] = "merge",    [PLAN_SORT_COUNT] = "count digits",
        [PLAN_SORT_SUM] = "sum digits", [PLAN_SORT_MOVE] = "move by digits"};

    sd_buf_fmt(b,
               "  %s %d rows %" PRId64 " n %" PRId64 " inner %" PRId64
               " keep %" PRId64 "%s scratch %zu in",
               step[s->step], s->nop, s->rows, s->n, s->inner, s->keep,
               s->stable ? " stable" : "", s->scratch);
    for (int i = 0; i < s->nop; i++)
        sd_buf_fmt(b, s->in[i] < 0 ? " %s places" : " %s s%d",
                   sd_dtype_table[s->type[i]].name, s->in[i]);
    sd_buf_str(b, " out");
    for (int i = 0; i < s->nout; i++)
        sd_buf_fmt(b, " %d", s->out[i]);
    plan_print_body(b, s->less);
    if (s->keys)
        sd_buf_fmt(b, " codes of %d bits", s->code_bits);
    if (s->piece)
        sd_buf_fmt(b, " pieces of %" PRId64, s->piece);
    if (s->each)
        sd_buf_fmt(b, " %d an item", s->each);
    if (plan_sort_has_items(s))
        sd_buf_fmt(b, ", %d items a row", s->team);
    if (s->bits)
        sd_buf_fmt(b, " digits of %d bits, counted by %d items", s->bits,
                   s->team);
    if (s->step == PLAN_SORT_MOVE && s->inner_out != s->inner)
        sd_buf_fmt(b, " to inner %" PRId64, s->inner_out);
    sd_buf_str(b, "\n");
}

static void print_buckets(sd_buf *b, const plan_buckets *u)
{
    sd_buf_fmt(b,
               "  batches %" PRId64 " of %" PRId64 " updates to %" PRId64
               " places, %d buckets of %d neighbours (",
               u->batches, u->n, u->places, 1 << u->bits, 1 << u->near);
    plan_print_body(b, u->body);
    sd_buf_str(b, ")\n");
}

static void print_runs(sd_buf *b, const plan_runs *r)
{
    sd_buf_fmt(b, "  runs a%d by s%d of %ss%d", r->axis, r->key,
               r->moved ? "updates in " : "", r->update);
    if (r->batch >= 0)
        sd_buf_fmt(b, " of batch a%d", r->batch);
    sd_buf_fmt(b, "%s\n", r->last ? ", the last of each" : "");
}

static void print_call(sd_buf *b, const hlo_call *c)
{
    sd_buf_fmt(b, "  call %s%s%s items %" PRId64 " (", c->fn,
               c->whole ? " whole" : "", c->grouped ? " by groups" : "",
               c->items);
    sd_buf_ints(b, c->at, c->nint, ", ");
    sd_buf_fmt(b, ") work %zu%s\n", c->work, c->in_local ? " local" : "");
}

static void print_kernel(sd_buf *b, const plan_kernel *k)
{
    static const char *const cls[] = {
        [PLAN_LOOP] = "loop",        [PLAN_ROW] = "row",
        [PLAN_COLUMN] = "column",    [PLAN_SCATTERING] = "scatter",
        [PLAN_SORTING] = "sort",     [PLAN_CALLING] = "call",
        [PLAN_ATTENDING] = "attend", [PLAN_PLACING] = "places",
        [PLAN_BUCKETS] = "buckets"};

    sd_buf_fmt(b, "kernel %s\n", k->name);
    sd_buf_fmt(b, "  %s%s, %" PRId64 " tiles, local %zu", cls[k->cls],
               k->rows     ? " by rows"
               : k->ranges ? " by ranges"
                           : "",
               k->tiles, k->local_bytes);
    if (k->large)
        sd_buf_fmt(b, ", large registers");
    if (k->unit_groups)
        sd_buf_fmt(b, ", %d of a unit", k->unit_groups);
    sd_buf_fmt(b, ", %.0f flops, %.0f bytes\n", k->flops, k->bytes);
    print_slots(b, k);
    print_mapping(b, k);
    if (k->sort)
        print_sort(b, k->sort);
    if (k->call)
        print_call(b, k->call);
    if (k->attend)
        plan_print_attend(b, k);
    if (k->places)
        plan_print_places(b, k);
    if (k->runs)
        print_runs(b, k->runs);
    if (k->buckets)
        print_buckets(b, k->buckets);
    plan_for_each_node(x, k)
        print_node(b, x);
}

void plan_print(sd_buf *b, const plan *p)
{
    sd_buf_fmt(b, "plan %s for %s\n", p->m->name, p->dev->name);
    for (int i = 0; i < p->nkernel; i++)
        print_kernel(b, p->kernel[i]);
    thunk_print(b, p->program);
}
