/* The schedule as thunks.  Kernels of equal content are one. */
#include "plan_mem.h"

#include <assert.h>

typedef struct {
    plan_mem *pm;
    thunk_program *pr;
    sd_map *by_hash; /* the last kernel of that hash */
    sd_names *symbols;
    sd_vec(plan_kernel *) kernel;
    int ids; /* the buffer of the participant's numbers, or -1 */
    thunk_slice
        zeros; /* of all kernels that have a slot of them; no bytes yet */
} stepper;

static const char *keep(const thunk_program *pr, const char *s)
{
    return s ? sd_arena_str(pr->arena, s, strlen(s)) : NULL;
}

static thunk_slice slice_of(const hlo_inst *in, int leaf)
{
    return storage_of(home_of(in)->at[leaf])->slice;
}

/* ---- kernels ---- */

static void mark_aliases(plan_kernel *k, const thunk_slice *arg)
{
    for (int i = 0; i < k->nslot; i++)
        for (int j = 0; j < i; j++)
            if (thunk_slices_overlap(arg[i], arg[j]) &&
                (k->slot[i].access | k->slot[j].access) & PLAN_WRITE)
                k->slot[i].noalias = k->slot[j].noalias = false;
}

/* Letters, digits and `_`, no digit first: an identifier everywhere. */
static const char *symbol_of(stepper *s, const char *name)
{
    const char *digit = *name >= '0' && *name <= '9' ? "_" : "";
    char *base = sd_arena_fmt(s->pr->arena, "%s%s", digit, name), *sym = base;

    for (char *p = base; *p; p++)
        if (!((*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') ||
              (*p >= '0' && *p <= '9')))
            *p = '_';
    for (int i = 1; sd_names_get(s->symbols, sym, strlen(sym)); i++)
        sym = sd_arena_fmt(s->pr->arena, "%s_%d", base, i);
    sd_names_set(s->symbols, sym, strlen(sym), sym);
    return sym;
}

/* The number of a kernel of that content. */
static int number_of(stepper *s, plan_kernel *k)
{
    uint64_t h = plan_kernel_hash(k);

    k->same_hash = sd_map_get(s->by_hash, h);
    for (plan_kernel *o = k->same_hash; o; o = o->same_hash)
        if (plan_kernel_equal(o, k)) {
            for (int i = 0; i < k->nslot; i++)
                o->slot[i].noalias &= k->slot[i].noalias;
            return o->number;
        }
    k->number = s->kernel.n;
    *sd_push(s->pm->a, &s->kernel) = k;
    sd_map_set(s->by_hash, h, k);
    return k->number;
}

static void fill_kernels(stepper *s)
{
    plan *p = s->pm->p;
    thunk_program *pr = s->pr;
    const device_desc *d = p->dev;

    p->kernel = s->kernel.at;
    p->nkernel = s->kernel.n;
    pr->nkernel = s->kernel.n;
    pr->kernel = sd_arena_array(pr->arena, thunk_kernel, s->kernel.n + 1);
    for (int i = 0; i < s->kernel.n; i++) {
        plan_kernel *k = s->kernel.at[i];

        k->name = symbol_of(s, k->name); /* emitters name the function so */
        pr->kernel[i] =
            (thunk_kernel){.symbol = k->name,
                           .binary = -1,
                           .nslot = k->nslot,
                           .tiles = k->tiles,
                           .group = d->kind == DEVICE_HOST ? 1 : k->group,
                           .local_bytes = k->local_bytes,
                           .flops = k->flops,
                           .bytes = k->bytes};
    }
}

/* ---- steps ---- */

static sd_status make_seq(stepper *s, const hlo_comp *c, thunk_seq *out);

static thunk step(const stepper *s, thunk_kind kind, const hlo_inst *in,
                  int narg)
{
    thunk t = {.kind = kind,
               .name = keep(s->pr, in->name),
               .op_name = keep(s->pr, in->op_name),
               .narg = narg,
               .kernel = -1,
               .trip = -1};

    t.arg = sd_arena_array(s->pr->arena, thunk_slice, narg + 1);
    return t;
}

/* A constant of so many bytes. */
static thunk_slice constant_slice(stepper *s, const void *v, size_t bytes)
{
    thunk_buffer b = {.kind = THUNK_B_CONST, .alias = -1, .bytes = bytes};

    b.at = thunk_add_constant(s->pr, v, bytes);
    return (thunk_slice){thunk_add_buffer(s->pr, b), 0, bytes};
}

static thunk_slice zeros_slice(stepper *s)
{
    static const uint8_t zeros[PLAN_ZEROS];

    if (!s->zeros.bytes)
        s->zeros = constant_slice(s, zeros, sizeof zeros);
    return s->zeros;
}

/* Slot i of a fusion's kernel. */
static thunk_slice slot_of(const hlo_inst *in, int i)
{
    const plan_home *p = home_of(in);

    return i < in->narg          ? slice_of(in->arg[i], 0)
           : i < in->narg + p->n ? slice_of(in, i - in->narg)
                                 : storage_of(p->work)->slice;
}

static void take_kernel(stepper *s, thunk *t, plan_kernel *k)
{
    mark_aliases(k, t->arg);
    t->kernel = number_of(s, k);
    t->flops = k->flops;
    t->bytes = k->bytes;
}

static thunk kernel_step(stepper *s, const hlo_inst *in)
{
    plan_kernel *k = home_of(in)->kernel;
    thunk t = step(s, THUNK_KERNEL, in, k->nslot);

    for (int i = 0; i < t.narg; i++)
        t.arg[i] = k->blocks && k->blocks->zeros && i == k->blocks->zeros
                       ? zeros_slice(s)
                       : slot_of(in, i);
    take_kernel(s, &t, k);
    return t;
}

static thunk part_step(stepper *s, const hlo_inst *in, const plan_part *part)
{
    thunk t = step(s, THUNK_KERNEL, in, part->kernel->nslot);

    for (int i = 0; i < t.narg; i++) {
        const plan_part_arg *a = &part->arg[i];

        if (a->slot < 0) {
            t.arg[i] = constant_slice(s, &a->number, sizeof a->number);
            continue;
        }
        t.arg[i] = slot_of(in, a->slot);
        assert(a->at + a->bytes <= t.arg[i].bytes);
        t.arg[i].offset += a->at;
        t.arg[i].bytes = a->bytes;
    }
    take_kernel(s, &t, part->kernel);
    return t;
}

static thunk copy_step(stepper *s, const hlo_inst *in)
{
    thunk t = step(s, THUNK_COPY, in, 2);

    t.arg[0] = slice_of(in->arg[0], 0);
    t.arg[1] = slice_of(in, 0);
    t.bytes = 2.0 * (double)t.arg[1].bytes;
    return t;
}

/* A value to or from the host, by channel. */
static thunk host_step(stepper *s, thunk_kind kind, const hlo_inst *in)
{
    thunk t = step(s, kind, in, 1);

    t.arg[0] = slice_of(in, 0);
    t.nattr = 1;
    t.attr = sd_arena_copy(s->pr->arena, &in->u.coll->channel, sizeof *t.attr);
    return t;
}

static sd_status while_step(stepper *s, const hlo_inst *in, thunk *t)
{
    const int64_t *trip;
    sd_status st;

    *t = step(s, THUNK_WHILE, in, 1);
    t->arg[0] = slice_of(in->comp[0]->root, 0);
    if ((trip = sd_map_get(s->pm->trip, sd_key(in))))
        t->trip = *trip;
    t->nseq = 2;
    t->seq = sd_arena_array(s->pr->arena, thunk_seq, 2);
    if ((st = make_seq(s, in->comp[0], &t->seq[0])) ||
        (st = make_seq(s, in->comp[1], &t->seq[1])))
        return st;
    plan_turn_twice(s->pm, in, t);
    return NULL;
}

static sd_status cond_step(stepper *s, const hlo_inst *in, thunk *t)
{
    sd_status st = NULL;

    *t = step(s, THUNK_COND, in, 1);
    t->arg[0] = slice_of(in->arg[0], 0);
    t->nseq = in->ncomp;
    t->seq = sd_arena_array(s->pr->arena, thunk_seq, in->ncomp);
    for (int i = 0; i < in->ncomp && !st; i++)
        st = make_seq(s, in->comp[i], &t->seq[i]);
    return st;
}

/* ---- participants ---- */

static const thunk_collective_kind collective_kind[HLO_OP_COUNT] = {
    [HLO_ALL_GATHER] = THUNK_COLL_GATHER,
    [HLO_ALL_TO_ALL] = THUNK_COLL_ALL_TO_ALL,
    [HLO_COLLECTIVE_PERMUTE] = THUNK_COLL_PERMUTE,
    [HLO_COLLECTIVE_BROADCAST] = THUNK_COLL_BROADCAST,
};

/* Dimensions before dim count to outer; a block is what stands behind. */
static void set_collective(stepper *s, thunk *t, const hlo_inst *in)
{
    const hlo_collective *h = in->u.coll;
    thunk_collective_kind kind = collective_kind[in->op];
    thunk_collective c = {.kind = kind,
                          .outer = 1,
                          .ngroup = h->ngroup,
                          .size = h->group_size,
                          .member = h->groups};

    if (kind == THUNK_COLL_GATHER || kind == THUNK_COLL_ALL_TO_ALL)
        for (int64_t i = 0; i < hlo_collective_dim(in); i++)
            c.outer *= in->shape->dim[i];
    t->arg[0] = slice_of(in->arg[0], 0);
    c.block = (int64_t)t->arg[0].bytes / c.outer;
    if (kind == THUNK_COLL_ALL_TO_ALL)
        c.block /= c.size;
    thunk_set_collective(s->pr, t, &c);
}

static thunk collective_step(stepper *s, const hlo_inst *in)
{
    thunk t = step(s, THUNK_COLLECTIVE, in, 2);

    set_collective(s, &t, in);
    t.arg[1] = slice_of(in, 0);
    t.bytes = 2.0 * (double)t.arg[1].bytes;
    return t;
}

/* A kernel whose first slots are the members' parts (plan_peers.c). */
static thunk peers_step(stepper *s, const hlo_inst *in)
{
    const hlo_inst *all = in->arg[0]->arg[0];
    thunk t = kernel_step(s, in);
    int n = (int)all->u.coll->group_size, kernel = t.kernel;

    t.kind = THUNK_COLLECTIVE;
    t.narg -= n - 1; /* the operand, then the other slots */
    memmove(t.arg + 1, t.arg + n, sizeof *t.arg * (size_t)(t.narg - 1));
    set_collective(s, &t, all);
    t.kernel = kernel;
    return t;
}

/* The number is where the device has it; a copy of it lives as values do. */
static thunk id_step(stepper *s, const hlo_inst *in)
{
    thunk t = step(s, THUNK_COPY, in, 2);
    uint64_t at = in->op == HLO_PARTITION_ID ? sizeof(uint32_t) : 0;

    if (s->ids < 0)
        s->ids =
            thunk_add_buffer(s->pr, (thunk_buffer){.kind = THUNK_B_IDS,
                                                   .alias = -1,
                                                   .bytes = THUNK_IDS_BYTES});
    t.arg[0] = (thunk_slice){s->ids, at, sizeof(uint32_t)};
    t.arg[1] = slice_of(in, 0);
    return t;
}

/* Operands and results in order, empty ones too: libcall_args_of says the
 * same. */
static thunk library_step(stepper *s, const hlo_inst *in)
{
    int nout = home_of(in)->n;
    thunk t = step(s, THUNK_LIBCALL, in, in->narg + nout);

    t.call = sd_arena_copy(s->pr->arena, in->u.custom->lib, sizeof *t.call);
    for (int i = 0; i < t.narg; i++) {
        t.arg[i] =
            i < in->narg ? slice_of(in->arg[i], 0) : slice_of(in, i - in->narg);
        t.bytes += (double)t.arg[i].bytes;
    }
    t.flops = libcall_flops(t.call);
    return t;
}

static int64_t *put_type(int64_t *at, const sd_shape *s)
{
    *at++ = sd_dtype_table[s->dtype].xla;
    *at++ = s->rank;
    for (int i = 0; i < s->rank; i++)
        *at++ = s->dim[i];
    return at;
}

/* A call of a registered handler, which sees types and dimensions too. */
static thunk foreign_step(stepper *s, const hlo_inst *in)
{
    const hlo_custom *u = in->u.custom;
    bool several = in->shape->dtype == SD_TUPLE;
    int nout = home_of(in)->n, room = in->narg + nout;
    thunk t = step(s, THUNK_CUSTOM, in, room);
    int64_t *attr =
        sd_arena_array(s->pr->arena, int64_t, 1 + room * (2 + SD_MAX_RANK));
    int64_t *at = attr;

    *at++ = in->narg;
    for (int i = 0; i < in->narg; i++) {
        t.arg[i] = slice_of(in->arg[i], 0);
        at = put_type(at, in->arg[i]->shape);
    }
    for (int i = 0; i < nout; i++) {
        t.arg[in->narg + i] = slice_of(in, i);
        at = put_type(at, several ? in->shape->elem[i] : in->shape);
    }
    t.attr = attr;
    t.nattr = (int)(at - attr);
    t.target = keep(s->pr, u->target);
    t.config = sd_arena_str(s->pr->arena, u->config, u->config_len);
    return t;
}

bool plan_is_no_step(hlo_op op)
{
    switch (op) {
    case HLO_SEND_DONE:
    case HLO_RECV_DONE:
    case HLO_PARAMETER:
    case HLO_CONSTANT:
    case HLO_TUPLE:
    case HLO_GET_TUPLE_ELEMENT:
    case HLO_RESHAPE:
    case HLO_BITCAST:
    case HLO_OPT_BARRIER:
        return true;
    default:
        return false;
    }
}

static bool is_nothing(const hlo_inst *in)
{
    const plan_home *p = home_of(in);

    for (int i = 0; i < p->n; i++)
        if (storage_of(p->at[i])->bytes)
            return false;
    return true;
}

/* *made: false when the instruction needs no step. */
static sd_status make_step(stepper *s, const hlo_inst *in, thunk *t, bool *made)
{
    *made = true;
    switch (in->op) {
    case HLO_FUSION:
        *t = in->narg && plan_is_peers(in->arg[0]) ? peers_step(s, in)
                                                   : kernel_step(s, in);
        return NULL;
    case HLO_WHILE:
        return while_step(s, in, t);
    case HLO_CONDITIONAL:
        return cond_step(s, in, t);
    case HLO_CUSTOM_CALL:
        if (in->u.custom->lib)
            *t = library_step(s, in);
        else if (in->u.custom->api_version == HLO_TYPED_FFI)
            *t = foreign_step(s, in);
        else
            return sd_error(SD_UNIMPLEMENTED, "%s", hlo_describe(s->pm->m, in));
        return NULL;
    case HLO_COPY:
        *made = slice_of(in, 0).bytes &&
                storage_of(home_of(in)->at[0]) !=
                    storage_of(home_of(in->arg[0])->at[0]) &&
                !sd_map_has(s->pm->spared, sd_key(in));
        if (*made)
            *t = copy_step(s, in);
        return NULL;
    case HLO_ALL_GATHER:
    case HLO_ALL_TO_ALL:
    case HLO_COLLECTIVE_PERMUTE:
    case HLO_COLLECTIVE_BROADCAST:
        if ((*made = !is_nothing(in) && !plan_is_peers(in)))
            *t = collective_step(s, in);
        return NULL;
    case HLO_PARTITION_ID:
    case HLO_REPLICA_ID:
        *t = id_step(s, in);
        return NULL;
    case HLO_SEND:
        *t = host_step(s, THUNK_SEND, in);
        return NULL;
    case HLO_RECV:
        *t = host_step(s, THUNK_RECV, in);
        return NULL;
    default:
        *made = false;
        if (plan_is_no_step(in->op) || is_nothing(in) || plan_is_peers(in))
            return NULL;
        return sd_error(SD_UNIMPLEMENTED, "%s", hlo_describe(s->pm->m, in));
    }
}

static sd_status make_seq(stepper *s, const hlo_comp *c, thunk_seq *out)
{
    sd_vec(thunk) list = {0};
    sd_status st;
    bool made;

    for (const hlo_inst *in = c->first; in; in = in->next) {
        const plan_kernel *k =
            in->op == HLO_FUSION ? home_of(in)->kernel : NULL;
        thunk t;

        for (int i = 0; k && i < k->npart; i++)
            *sd_push(s->pr->arena, &list) = part_step(s, in, &k->part[i]);
        if (k && k->npart)
            continue;
        if ((st = make_step(s, in, &t, &made)))
            return st;
        if (made)
            *sd_push(s->pr->arena, &list) = t;
    }
    out->at = list.at;
    out->n = list.n;
    plan_beside(s->pr, out);
    return NULL;
}

static thunk_type type_of(const thunk_program *pr, const sd_shape *s,
                          const char *memory)
{
    thunk_type t = {.dtype = s->dtype,
                    .rank = s->rank,
                    .bytes = sd_shape_bytes(s),
                    .memory = keep(pr, memory)};

    t.dim = sd_arena_copy(pr->arena, s->dim, (size_t)s->rank * sizeof *s->dim);
    return t;
}

static void leaves_of(const sd_shape *s, const sd_shape **out, int *n)
{
    if (s->dtype != SD_TUPLE) {
        out[(*n)++] = s;
        return;
    }
    for (int i = 0; i < s->nelem; i++)
        leaves_of(s->elem[i], out, n);
}

static void fill_types(stepper *s)
{
    const hlo_module *m = s->pm->m;
    const hlo_comp *c = m->entry;
    thunk_program *pr = s->pr;
    int n = plan_leaf_count(c->root->shape), at = 0;
    const sd_shape **leaf = sd_arena_array(s->pm->a, const sd_shape *, n + 1);

    pr->nparam = c->nparam;
    pr->param = sd_arena_array(pr->arena, thunk_type, c->nparam + 1);
    pr->donatable = sd_arena_array(pr->arena, bool, c->nparam + 1);
    for (int i = 0; i < c->nparam; i++) {
        pr->param[i] = type_of(pr, c->param[i]->shape,
                               m->param_memory ? m->param_memory[i] : NULL);
        pr->donatable[i] = m->donor && m->donor[i];
    }
    for (int i = 0; i < m->nalias; i++)
        pr->donatable[m->alias[i].param] = true;
    leaves_of(c->root->shape, leaf, &at);
    pr->noutput = n;
    pr->output = sd_arena_array(pr->arena, thunk_type, n + 1);
    for (int i = 0; i < n; i++)
        pr->output[i] =
            type_of(pr, leaf[i], m->output_memory ? m->output_memory[i] : NULL);
    pr->nreplica = m->nreplica ? m->nreplica : 1;
    pr->npartition = m->npartition ? m->npartition : 1;
}

sd_status plan_steps(plan_mem *pm)
{
    stepper s = {.pm = pm, .pr = pm->p->program, .ids = -1};
    sd_status st;

    s.by_hash = sd_map_create(pm->a);
    s.symbols = sd_names_create(pm->a);
    fill_types(&s);
    if ((st = make_seq(&s, pm->m->entry, &s.pr->seq)))
        return st;
    fill_kernels(&s);
    return NULL;
}
