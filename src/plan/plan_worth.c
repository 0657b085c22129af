/* What a cluster takes: is the work in proportion, and is there room?
 *
 * Work: a value that a cluster computes more often than it has elements is
 * done again; cheap work may be, to save a trip through memory.
 *
 * Room: the bounds below keep kernels to what devices and LLVM do well, and
 * what a program may write to what planning does in linear time.  They decide
 * where a long chain of operations is cut into kernels, so that no program is
 * too large to plan: the kernel of one operation by itself is within them, but
 * for operations of hundreds of operands, which plan_lower.c refuses. */
#include "plan_cluster.h"

enum {
    /* planning a cluster takes the square of its members */
    MOST_MEMBERS = 480,
    /* each is a loop and a barrier; Intel's compiler for CPUs takes 2 s of 25,
     * 24 s of 60 and more than 100 s of 120 */
    MOST_SUMS = 30,
    MOST_MERGED = 120,
    MOST_VIEWS = 600,
    /* a slot is a pointer argument: OpenCL promises 128 of them */
    MOST_ROOTS = 16,
    MOST_OPERANDS = 64,
    MOST_MERGED_OPERANDS = 44,
    /* of the kernel, estimated; plan_lower.c counts them */
    MOST_NODES = PLAN_MOST_NODES * 3 / 4,
    /* of an index as a tree: a chain of reshapes and transposes that do not
     * split into axes doubles it with every link, and each of its divisions
     * is done for each element */
    MOST_INDEX = 512,
    MOST_GUARDS = 64, /* conditions on one value: a pad has two a dimension */
    MOST_EXTRA = 8, /* cheap work done again, ops a kernel */
    MOST_COPIES = 4, /* kernels that compute the same value */
    MOST_ANEW = 12, /* operations that each does for an element of it */
    /* views of what moves data, and half of a concatenate's operands */
    MOST_AT_ONCE = 16,
    SMALL = 16384, /* computing this much again costs less than a launch */
    SMALL_HEAVY = 2048,
    SMALL_HOLES = 64,
    SMALL_GATHERED = 4096, /* 1,000 cycles of a CPU more than what lies side
                              by side */
    MOST_PICKS = 2 /* places that are read at which it is computed again */
};

int64_t cluster_count_of(const hlo_inst *in)
{
    const sd_shape *s = in->shape;

    return sd_shape_count(sd_shape_result(s, 0));
}

bool cluster_is_view_op(const hlo_inst *in)
{
    switch (in->op) {
    case HLO_BROADCAST:
    case HLO_RESHAPE:
    case HLO_BITCAST:
    case HLO_TRANSPOSE:
    case HLO_REVERSE:
    case HLO_SLICE:
    case HLO_DYNAMIC_SLICE:
    case HLO_PAD:
    case HLO_GATHER:
    case HLO_CONCATENATE:
    case HLO_IOTA:
    case HLO_CONSTANT:
        return true;
    default:
        return false;
    }
}

/* ---- work ---- */

static bool varies_inside(const cluster *c, const cluster_member *m)
{
    uint64_t varies = 0;

    for (int i = 0; i < m->view.n; i++)
        for (int d = 0; d < m->view.at[i].rank; d++)
            varies |= m->view.at[i].index[d]->varies;
    return (varies & ~plan_space_axes(&c->space)) != 0;
}

/* Six operations an element and more shuffles than loading it takes. */
static bool is_complex_product(const hlo_inst *in)
{
    return in->op == HLO_MULTIPLY && sd_is_complex(in->shape->dtype);
}

/* It is needed between others only, as where lists are interleaved: at every
 * second place, say. */
static bool has_holes(const cluster_member *m)
{
    for (int i = 0; i < m->view.n; i++)
        for (int j = 0; j < m->view.at[i].g.n; j++)
            if (m->view.at[i].g.g[j].e->kind == PX_MOD)
                return true;
    return false;
}

/* At how many places that are read themselves is it needed?  A chain of steps
 * that each pick from the one before doubles that with each, and with it work
 * and code. */
static int picks_of(const cluster_member *m)
{
    int n = 0;

    for (int i = 0; i < m->view.n; i++)
        for (int d = 0; d < m->view.at[i].rank; d++)
            if (plan_px_names_node(m->view.at[i].index[d])) {
                n++;
                break;
            }
    return n;
}

/* In its loop, which asks for an element once for every result that it is in.
 * A place that is read from memory also hides from the compilers of GPUs that
 * all items read the same: such a read becomes a gather. */
static bool in_contraction(const cluster *c, const cluster_member *m)
{
    return c->inner && c->inner->op != HLO_REDUCE_WINDOW && varies_inside(c, m);
}

/* Numbers that are apart in what `in` moves and side by side in its result. */
static int64_t apart(const hlo_inst *in, int d)
{
    const sd_shape *s = in->arg[0]->shape;
    int64_t n = 1;

    if (in->op == HLO_SLICE)
        n = in->u.slice.stride[d];
    for (int i = d + 1; i < s->rank; i++)
        n *= s->dim[i];
    return n;
}

/* Is what it moves read number by number, and along which dimensions (bits) is
 * that so? */
static bool gathers(const hlo_inst *in, uint64_t *dims)
{
    int last = in->shape->rank - 1;

    *dims = UINT64_MAX;
    switch (in->op) {
    case HLO_GATHER:
        for (int i = 0; i < in->u.gather->offset_dims.n; i++)
            *dims &= ~(1ull << in->u.gather->offset_dims.at[i]);
        return true;
    case HLO_SLICE:
    case HLO_DYNAMIC_SLICE:
        while (last > 0 && in->shape->dim[last] == 1)
            last--;
        return last >= 0 && apart(in, last) != 1;
    default:
        return false;
    }
}

/* Of pairs of what is picked (boxes in the order of their scores, a column
 * against each row) each is picked anew for all others, where in memory they
 * would lie side by side. */
static bool gathers_again(const cluster *c, const cluster_member *m)
{
    double n = 1, times;
    uint64_t dims;

    if ((c->inner && c->inner->op != HLO_REDUCE) || !gathers(m->in, &dims))
        return false;
    for (int d = 0; d < m->in->shape->rank; d++)
        if (m->in->shape->dim[d] == 1)
            dims &= ~(1ull << d);
        else if (dims >> d & 1)
            n *= (double)m->in->shape->dim[d];
    times = cluster_times(c, m, dims);
    return times >= SMALL_GATHERED && times > 4 * n;
}

/* Kept where it is computed it is half the bytes for whoever multiplies, and
 * a product whose operands are loads has the shorter loop. */
static bool narrows_what_is_computed(const hlo_inst *in)
{
    const hlo_inst *x;

    if (in->op != HLO_CONVERT)
        return false;
    x = in->arg[0];
    while (plan_is_alias(x))
        x = x->arg[0];
    return sd_dtype_bytes(in->shape->dtype) < sd_dtype_bytes(x->shape->dtype) &&
           info_of(x)->fusable && !cluster_is_view_op(x);
}

/* Bytes that matrix instructions are to read as they lie
 * (hlo_opt_operands.c): of other products dot has the order in itself. */
static bool turns_for_product(const hlo_inst *in)
{
    return in->op == HLO_TRANSPOSE && sd_dtype_bytes(in->shape->dtype) == 1 &&
           in->nuse == 1 && in->user[0]->op == HLO_DOT;
}

bool cluster_is_worth(const cluster *c, const cluster_member *m, int *extra)
{
    double times = cluster_times(c, m, UINT64_MAX);
    double n = (double)cluster_count_of(m->in);
    uint8_t props = hlo_info(m->in)->props;
    const hlo_inst *in = m->in;

    *extra = 0;
    if (in->op == HLO_GET_TUPLE_ELEMENT || in->op == HLO_CONSTANT)
        return true;
    if (in->op == HLO_GATHER && times > 2 * n && in_contraction(c, m) &&
        c->inner->op != HLO_REDUCE)
        return false;
    if (gathers_again(c, m))
        return false;
    if (turns_for_product(in))
        return times <= 2 * n || !in_contraction(c, m);
    if (cluster_is_view_op(in))
        return m->view.n <= MOST_AT_ONCE &&
               (in->op != HLO_CONCATENATE || in->narg <= MOST_AT_ONCE / 2);
    if (times <= n * 1.01)
        return true;
    /* interleaved with others, which may be interleaved too: work and code
     * double each time */
    if (times > 2.01 * n && has_holes(m))
        return times <= SMALL_HOLES;
    if (props & HLO_P_HEAVY)
        return times <= SMALL_HEAVY;
    if (times > 2.01 * n && picks_of(m) > MOST_PICKS)
        return false;
    if (times <= SMALL)
        return true;
    if (!(props & HLO_P_CHEAP) || is_complex_product(in))
        return times <= 2 * n;
    if (c->inner && narrows_what_is_computed(in))
        return false;
    if (in_contraction(c, m))
        return in->op == HLO_CONVERT;
    *extra = times > 2 * n;
    return true;
}

/* A product that is a part of what the kernel makes, as of a pad's result: no
 * blocks are made of it there. */
bool cluster_hides_product(const cluster_member *m)
{
    const hlo_inst *in = m->in;

    return (in->op == HLO_DOT || in->op == HLO_CONVOLUTION) && m->view.n &&
           m->view.at[0].g.n && cluster_count_of(in) > SMALL;
}

/* Elements that are read for all of x, if little is computed for each. */
static int64_t reads_for(const hlo_inst *x, int *ops)
{
    int64_t n, read = 0;

    while (x->op == HLO_BROADCAST || plan_is_alias(x))
        x = x->arg[0]; /* what memory is read in the end */
    n = cluster_count_of(x);
    if (!hlo_is_elementwise(x) || !(hlo_info(x)->props & HLO_P_CHEAP) ||
        ++*ops > MOST_ANEW)
        return n;
    for (int i = 0; i < x->narg; i++)
        read += reads_for(x->arg[i], ops);
    return SD_MIN(read, n);
}

/* Of a narrow float, which is the better half to keep in memory. */
static bool is_exact_widening(const hlo_inst *in)
{
    return in->op == HLO_CONVERT && in->shape->dtype == SD_F32 &&
           sd_dtype_bytes(in->arg[0]->shape->dtype) < sizeof(float) &&
           sd_dtype_kind(in->arg[0]->shape->dtype) == SD_K_FLOAT;
}

/* Leaves and pure renamings cost nothing in any number of kernels; other cheap
 * values may be computed by a few. */
bool cluster_may_repeat(const hlo_inst *in, int copies)
{
    int64_t read = 0;
    int ops = 0;

    if (copies == 1)
        return true;
    if (in->op == HLO_CONSTANT || in->op == HLO_IOTA ||
        in->op == HLO_BROADCAST || in->op == HLO_RESHAPE ||
        in->op == HLO_BITCAST || in->op == HLO_SLICE)
        return true;
    if (is_exact_widening(in))
        return true;
    if (narrows_what_is_computed(in) && in->arg[0]->nuse == 1)
        return false;
    if (plan_is_reducing(in) || !(hlo_info(in)->props & HLO_P_CHEAP))
        return cluster_count_of(in) * copies <= 256 && !plan_is_reducing(in) &&
               !(hlo_info(in)->props & HLO_P_HEAVY);
    if (cluster_count_of(in) <= 1024)
        return copies <= 8;
    for (int i = 0; i < in->narg; i++) {
        const hlo_inst *x = in->arg[i];

        while (x->op == HLO_BROADCAST || plan_is_alias(x))
            x = x->arg[0];
        if (plan_is_reducing(x) && x->op != HLO_REDUCE && x->nuse == 1)
            return false; /* better computed where that is */
        read += reads_for(x, &ops);
    }
    return copies <= MOST_COPIES && read <= cluster_count_of(in) * 3 / 2;
}

/* ---- room ---- */

/* Nodes that one view of it makes, at most: a place that depends on data is
 * read and clamped, a guard is compared at both ends. */
static int node_cost(const hlo_inst *in)
{
    enum { PLACE = 5, GUARD = 6 };
    int rank = in->narg ? in->arg[0]->shape->rank : 0;

    switch (in->op) {
    case HLO_DYNAMIC_SLICE:
        return PLACE * rank;
    case HLO_DYNAMIC_UPDATE_SLICE:
        return (PLACE + GUARD) * rank;
    case HLO_GATHER:
        return PLACE * in->u.gather->index_map.n;
    case HLO_PAD:
    case HLO_REDUCE_WINDOW:
    case HLO_CONVOLUTION:
        return 2 * GUARD * rank;
    case HLO_BITCAST_CONVERT:
        return 4 + 4 * plan_view_count(in, 0);
    case HLO_CONCATENATE:
        return GUARD * in->narg;
    default:
        return 2 + in->narg;
    }
}

static int nodes_of(const cluster *c)
{
    int n = 0;

    for (int i = 0; i < c->member.n; i++)
        n += c->member.at[i].view.n * node_cost(c->member.at[i].in);
    return n;
}

static int views_of(const cluster *c)
{
    int n = 0;

    for (int i = 0; i < c->member.n; i++)
        n += c->member.at[i].view.n;
    return n;
}

/* What the cluster will not read from memory in any case. */
static bool is_free_operand(const hlo_inst *x)
{
    while (x->op == HLO_BROADCAST || plan_is_alias(x))
        x = x->arg[0];
    return x->op == HLO_IOTA ||
           (x->op == HLO_CONSTANT && (x->shape->rank == 0 || hlo_is_splat(x)));
}

/* A large array of one number is read by nobody: kernels that want it, such as
 * the updates of weights of one shape, have nothing to gain from being one, but
 * keep all that they need until the last can run. */
bool cluster_shares_reads(const hlo_inst *in)
{
    const hlo_inst *x = in;

    while (x->op == HLO_BROADCAST || plan_is_alias(x))
        x = x->arg[0];
    return cluster_count_of(in) <= SMALL || !sd_shape_is_array(x->shape) ||
           sd_shape_count(x->shape) > 1;
}

static int note_operands(clusters *cs, const hlo_inst *in)
{
    int n = 0;

    for (int k = 0; k < in->narg; k++) {
        cluster_info *f = info_of(in->arg[k]);

        if (f->epoch == cs->epoch)
            continue;
        f->epoch = cs->epoch;
        n += !is_free_operand(in->arg[k]);
    }
    return n;
}

/* With `in` as a member: what all members read that are none themselves. */
static int operands_with(clusters *cs, const cluster *c, const hlo_inst *in)
{
    int n = 0;

    cs->epoch++;
    for (int i = 0; i < c->member.n; i++)
        info_of(c->member.at[i].in)->epoch = cs->epoch;
    info_of(in)->epoch = cs->epoch;
    for (int i = 0; i < c->member.n; i++)
        n += note_operands(cs, c->member.at[i].in);
    return n + note_operands(cs, in);
}

/* A number, and an array of it: nothing to compute, nothing to read.  A kernel
 * that is full takes it nonetheless, since else it would be memory to fill and
 * a slot to read it from; of such there are no more than members' operands. */
static bool is_number(const hlo_inst *in)
{
    while (in->op == HLO_BROADCAST)
        in = in->arg[0];
    return in->op == HLO_CONSTANT && hlo_is_splat(in);
}

static int sums_of(const cluster *c)
{
    int n = 0;

    for (int i = 0; i < c->member.n; i++)
        n += c->member.at[i].in->op == HLO_REDUCE;
    return n;
}

bool cluster_has_room(clusters *cs, const cluster *c, const hlo_inst *in)
{
    if (is_number(in))
        return true;
    /* one that has no more operands than it is itself adds none */
    return c->member.n < MOST_MEMBERS &&
           (in->op != HLO_REDUCE || sums_of(c) < MOST_SUMS) &&
           nodes_of(c) + node_cost(in) <= MOST_NODES &&
           (in->narg <= 1 || operands_with(cs, c, in) <= MOST_OPERANDS);
}

static bool is_plain(const cluster_view *v)
{
    if (v->g.n > MOST_GUARDS)
        return false;
    for (int d = 0; d < v->rank; d++)
        if (v->index[d]->size > MOST_INDEX)
            return false;
    return true;
}

bool cluster_fits(const cluster *c, const cluster_member *m, int extra)
{
    if (is_number(m->in))
        return true;
    for (int i = 0; i < m->view.n; i++)
        if (!is_plain(&m->view.at[i]))
            return false;
    return views_of(c) + m->view.n <= MOST_VIEWS &&
           nodes_of(c) + m->view.n * node_cost(m->in) <= MOST_NODES &&
           c->extra + extra <= MOST_EXTRA;
}

bool cluster_has_extra(const cluster *c)
{
    return c->extra < MOST_EXTRA;
}

bool cluster_has_root(const cluster *c)
{
    return c->root.n < MOST_ROOTS;
}

static int operand_count(const cluster *c)
{
    int n = 0;

    for (int i = 0; i < c->member.n; i++)
        for (int k = 0; k < c->member.at[i].in->narg; k++)
            n += info_of(c->member.at[i].in->arg[k])->in.n == 0;
    return n; /* at most, so far */
}

bool cluster_may_merge(const cluster *x, const cluster *y)
{
    return x->member.n + y->member.n <= MOST_MERGED &&
           x->root.n + y->root.n <= MOST_ROOTS &&
           views_of(x) + views_of(y) <= MOST_VIEWS &&
           nodes_of(x) + nodes_of(y) <= MOST_NODES &&
           operand_count(x) + operand_count(y) <= MOST_MERGED_OPERANDS;
}
