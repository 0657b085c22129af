/* Schedule, values and storage: shared by plan_schedule, plan_buffers and
 * plan_steps. */
#ifndef PLAN_MEM_H
#define PLAN_MEM_H

#include "plan_room.h"

enum { PLAN_FOREVER = INT32_MAX };

typedef struct storage storage;
typedef struct {
    int from, to;
} plan_life;       /* steps; to: last that reads */
typedef sd_vec(plan_life) plan_lives;
struct storage {   /* values that share memory, or may come to */
    storage *into; /* united with */
    uint64_t bytes;
    plan_lives life; /* its own, as they are numbered */
    plan_lives all;  /* of those that are united with it too, by begin */
    int param;  /* entry parameter whose memory it is, or -1 */
    int output; /* output whose memory it is, or -1 */
    const hlo_inst *constant;
    bool fixed;        /* never written after it is made: not to be reused */
    int from, to;      /* hull of the lives */
    thunk_slice slice; /* the result */
};

typedef struct { /* the leaves of a value; tag of its instruction */
    int n;
    storage **at;        /* each of its own storage */
    int *life;           /* which life there: index */
    int time;            /* when it runs; of a parameter: its body */
    int until;           /* when it is done: of while and conditional */
    plan_kernel *kernel; /* of a fusion */
    storage *work;       /* its slot after the results, or NULL */
} plan_home;

typedef struct {
    sd_arena *a;
    hlo_module *m;
    plan *p;
    int time;
    sd_vec(storage *) all;
    sd_vec(hlo_inst *) copies; /* in order of time */
    sd_map *kernels;           /* fusion -> plan_kernel */
    sd_map *trip;              /* while -> int64_t: thunk.h */
    sd_map *spared;            /* copies that are none: plan_twice.c */
} plan_mem;

static inline plan_home *home_of(const hlo_inst *in)
{
    return in->tag;
}
static inline storage *storage_of(storage *s)
{
    for (; s->into; s = s->into)
        if (s->into->into)
            s->into = s->into->into;
    return s;
}

/* What an order of steps takes (plan_pressure.c).  While it is made, the tag of
 * each instruction points to a plan_pressed. */
typedef struct plan_leaf plan_leaf;
typedef struct {
    plan_leaf **leaf;
    int n;
} plan_pressed;
typedef struct {
    void (*eased)(void *ctx, hlo_inst *in); /* may ease memory from now on */
    void *ctx;
    sd_arena *a;
    int mark;
    uint64_t live, most; /* bytes */
} plan_pressure;
void plan_pressure_begin(plan_pressure *p, sd_arena *a, hlo_comp *c);
/* As the next step, would in make no more than it is the last to read? */
bool plan_pressure_eases(plan_pressure *p, const hlo_inst *in);
/* Are all its operands memory in any order? */
bool plan_pressure_needs_none(const hlo_inst *in);
void plan_pressure_step(plan_pressure *p, hlo_inst *in); /* it is the next */

/* The order of its instructions. */
sd_status plan_schedule(hlo_comp *c, const device_desc *dev);
/* Gives each value its storage and each storage its slice. */
sd_status plan_buffers(plan_mem *pm);
sd_status plan_share(plan_mem *pm); /* after the walk, before the places */
void plan_pack(plan_mem *pm);       /* a slice for each storage (plan_pack.c) */
void plan_unite(plan_mem *pm, storage *x, storage *y);
/* Of loops whose body may stand twice, before the places, and the loop that
 * turns half as often (plan_twice.c). */
void plan_spare_copies(plan_mem *pm, const hlo_comp *c);
void plan_turn_twice(const plan_mem *pm, const hlo_inst *in, thunk *loop);
/* The operand that a library's product is added to, which is the last: the
 * result may lie there, and then is not copied first.  -1: there is none. */
int plan_addend_of(const hlo_inst *in);
storage *plan_output_at(const plan_mem *pm, int64_t i);
sd_status plan_steps(plan_mem *pm);
bool plan_is_no_step(hlo_op op); /* names what is there, or moves nothing */
/* Of one of the three steps of a sum in shares, which may run beside kernels:
 * the last, which gathers it; else NULL.  Two of them, all-to-all and kernel,
 * have no reader but the next (plan_beside.c). */
const hlo_inst *plan_sum_of(const hlo_inst *in, const device_desc *dev);
bool plan_is_in_place(const hlo_inst *fusion); /* updates an operand */
/* What of seq can runs beside the rest. */
void plan_beside(const thunk_program *pr, thunk_seq *seq);
/* Which element of the body's state x is, or -1 (plan_alias.c). */
int64_t plan_state_of(const hlo_comp *body, const hlo_inst *x);
int plan_leaf_count(const sd_shape *s);

#endif
