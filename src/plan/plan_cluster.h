/* Clusters: instructions on their way to becoming one fusion.  Only the
 * plan_fuse files include this. */
#ifndef PLAN_CLUSTER_H
#define PLAN_CLUSTER_H

#include "plan_lower.h"

typedef struct cluster cluster;
typedef struct cluster_place cluster_place;

typedef struct {
    const plan_expr **index;
    int rank;
    plan_guards g; /* where it is needed: another node under other guards */
} cluster_view;
typedef struct {
    hlo_inst *in;
    sd_vec(cluster_view) view; /* under which the cluster needs it */
} cluster_member;

struct cluster {
    int id;
    cluster *into;    /* merged into that one */
    bool alone;       /* takes no more: a call, a scan of several results */
    bool scan;        /* its one result is a scan's */
    hlo_inst *update; /* dynamic-update-slice that it does in place */
    const hlo_inst *before; /* what it writes, where another kernel computes it */
    hlo_inst *red;    /* a REDUCE over one dimension, or NULL */
    hlo_inst *inner;  /* the one member with loops of its own, or NULL */
    plan_space space;
    sd_vec(hlo_inst *) root;
    sd_vec(cluster_member) member; /* users before what they use */
    int extra;   /* cheap work done more often than its own size */
    int epoch;   /* visited by the search of that number */
    int lo, hi;  /* orders: of its first root, of its last member */
    bool listed; /* in clusters.several */
    hlo_inst *fusion;
};

typedef struct {           /* what is known of an instruction; its tag */
    cluster *home;         /* writes it to memory */
    sd_vec(cluster *) in;  /* compute it */
    bool fusable, outside; /* outside: its value must be in memory */
    bool placed;           /* by cluster_take_rows, for good */
    int order;             /* place in the computation */
    int epoch;
} cluster_info;

typedef struct {
    plan_viewer viewer; /* first */
    sd_arena *a;
    hlo_comp *c;
    sd_vec(cluster *) all;
    sd_vec(cluster *) several; /* those with several roots */
    sd_map *places;            /* hash -> cluster_place, a chain */
    int epoch;
    bool apart; /* one kernel an instruction */
} clusters;

static inline cluster_info *info_of(const hlo_inst *in)
{
    return in->tag;
}
cluster *cluster_of(cluster *c); /* follows `into` */
cluster *cluster_create(clusters *cs, hlo_inst *root);
/* The views under which c needs in, into out: false when one cannot be said. */
void cluster_views(clusters *cs, cluster *c, const plan_space *space,
                   hlo_inst *in, cluster_member *out);
bool cluster_root_index(clusters *cs, const plan_space *s, const hlo_inst *in,
                        cluster_view *out);
/* All views again, under another space; false when a root is not in it. */
bool cluster_rebuild(clusters *cs, cluster *c, const plan_space *space);
void cluster_add(clusters *cs, cluster *c, cluster_member m);
void cluster_add_root(clusters *cs, cluster *c, hlo_inst *in);
bool cluster_reaches(clusters *cs, cluster *from, cluster *to);
/* A path from a user of in that is not in `to` to `to`. */
bool cluster_user_reaches(clusters *cs, hlo_inst *in, cluster *to);
bool cluster_merge(clusters *cs, cluster *x, cluster *y);
double cluster_points(const cluster *c); /* iterations of its loops */
/* How often its loops would compute a value under those views, or what of it
 * depends on those dimensions alone (bits). */
double cluster_times(const cluster *c, const cluster_member *m, uint64_t dims);
void cluster_build(clusters *cs, cluster *c);   /* makes the fusion, */
void cluster_replace(clusters *cs, cluster *c); /* and gives it the uses */

/* ---- plan_update.c: what an update in place takes ---- */

/* Does in read what c's update writes, at other places? */
bool cluster_reads_updated(const cluster *c, const hlo_inst *in);
/* The operand that c's update writes, if another kernel is to compute it. */
const hlo_inst *cluster_computed_before(clusters *cs, const cluster *c);

/* Clusters of what scans short rows (plan_rows.c). */
void cluster_take_rows(clusters *cs);

/* The node that stands for the value of operand k of in at index. */
plan_node *cluster_place_node(clusters *cs, uint64_t hash, const hlo_inst *in,
                              int k, const plan_expr *const *index);

/* ---- plan_worth.c: what a cluster takes ---- */

int64_t cluster_count_of(const hlo_inst *in); /* elements */
bool cluster_is_view_op(const hlo_inst *in);  /* moves data, computes nothing */
static inline bool plan_is_alias(const hlo_inst *in)
{
    return in->op == HLO_RESHAPE || in->op == HLO_BITCAST;
}
/* Is the work of computing it there in proportion?  *extra: cheap work that
 * is done more often than there are elements. */
bool cluster_is_worth(const cluster *c, const cluster_member *m, int *extra);
bool cluster_hides_product(const cluster_member *m);
bool cluster_may_repeat(const hlo_inst *in, int copies);
/* Is there room for another member, and for this one with its views? */
bool cluster_shares_reads(const hlo_inst *in);
bool cluster_has_room(clusters *cs, const cluster *c, const hlo_inst *in);
bool cluster_fits(const cluster *c, const cluster_member *m, int extra);
bool cluster_has_extra(const cluster *c);
bool cluster_has_root(const cluster *c);
bool cluster_may_merge(const cluster *x, const cluster *y);

#endif
