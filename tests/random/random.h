/* random: programs made from a seed, and what is expected of them.
 *
 * A program is HLO text, so that one made here, one cut down and one kept as a
 * case go the same way: parse, verify, evaluate, compile and run on each
 * device, compare.  Its first lines are comments:
 *
 *   // error: 0 1e-06     per result, the most that a device may be away from
 *                         the evaluator's value; 0: the same value
 *
 * A parameter's name says what it is filled with: small (whole numbers of at
 * most random_small), wide (any bits of an integer), wild (any float, NaN and
 * the infinities too). */
#ifndef RANDOM_H
#define RANDOM_H

#include "hlo.h"
#include "xpu.h"

/* ---- making programs: random_gen.c and the makers ---- */

/* What is known of a value.  A float is exact when every right device gives
 * it: whole numbers that sums and products keep, and what only moves.  The
 * rest has an error that is carried along. */
typedef struct {
    double bound; /* |x| at most, and no NaN; INFINITY: anything */
    double error; /* 0: exact */
    bool whole;   /* integers */
    bool bits;    /* even the sign of 0 and a NaN's bits are given */
} random_fact;

/* What a value must be to serve as an operand. */
typedef struct {
    double bound;
    bool exact, whole;
} random_need;

typedef struct random_gen random_gen;
struct random_gen {
    uint64_t state;
    sd_arena *a;
    hlo_module *m;
    hlo_comp *c;
    hlo_inst *pool[256]; /* values to choose from, of the computation c */
    int npool;
    int depth;           /* loops and branches around */
    bool scalars;        /* a region: rank 0, elementwise */
    bool even;           /* extents that have many divisors */
    bool odd;            /* any extents: none, and more than memory has */
};

/* Reserves of a type: see random_type.c. */
typedef struct {
    double whole;  /* up to this all integers are exact */
    double most;   /* the largest finite value */
    double ulp;    /* relative */
    double tiny;   /* absolute, below the normal numbers */
    double small;  /* what "small" parameters hold */
} random_type;
random_type random_type_of(sd_dtype t); /* complex: its part */

hlo_module *random_module(sd_arena *a, uint64_t seed, sd_buf *text);
/* The same of extents that have many divisors. */
hlo_module *random_even_module(sd_arena *a, uint64_t seed, sd_buf *text);
/* The same of any extents, to be compiled alone. */
hlo_module *random_odd_module(sd_arena *a, uint64_t seed, sd_buf *text);
/* random_narrow.c: of narrow floats, for random_run_apart. */
hlo_module *random_narrow(sd_arena *a, uint64_t seed, sd_buf *text);

/* A window over an extent, padded so that the result is often in as many parts as
 * that: in modules of even extents. */
void random_even_out(random_gen *g, hlo_window_dim *w, int64_t extent);
/* random_contract.c: a Fourier transform; in such modules, too. */
void random_make_fft(random_gen *g);
/* random_parts.c: m over several participants, with shardings; false: it has
 * collectives of one. */
bool random_parts(hlo_module *m, uint64_t seed);

uint64_t random_next(random_gen *g);
int64_t random_below(random_gen *g, int64_t n); /* [0, n) */
bool random_chance(random_gen *g, int percent);
sd_dtype random_dtype(random_gen *g, int kinds); /* HLO_T_x */
const sd_shape *random_shape(random_gen *g, sd_dtype t);

static inline bool random_is_float(sd_dtype t) /* or complex */
{
    return sd_dtype_kind(sd_dtype_part(t)) == SD_K_FLOAT;
}

random_fact *random_fact_of(const hlo_inst *in);
/* Puts a value into the pool; what is not known of it is in f. */
hlo_inst *random_keep(random_gen *g, hlo_inst *in, random_fact f);
/* A value of the shape that satisfies the need: from the pool, changed to fit
 * if need be, or new. */
hlo_inst *random_want(random_gen *g, const sd_shape *s, random_need need);
hlo_inst *random_new(random_gen *g, const sd_shape *s, random_need need);
hlo_inst *random_pick(random_gen *g, int kinds, random_need need);
hlo_inst *random_index(random_gen *g, sd_dtype t, int64_t n);
const sd_shape *random_dims(random_gen *g, sd_dtype t, int rank,
                            const int64_t *dim);
random_fact random_worst(int n, hlo_inst *const *x); /* of moved operands */
random_fact random_exact_int(sd_dtype t);
hlo_at random_at(random_gen *g);
/* Creates in and infers its shape; the attributes are set by `set`. */
hlo_inst *random_inst(random_gen *g, hlo_op op, const sd_shape *s, int narg,
                      hlo_inst *const *arg);
/* The declared shape becomes the inferred one. */
void random_infer(random_gen *g, hlo_inst *in);
/* n more values in the pool of g. */
void random_steps(random_gen *g, int n);
bool random_total_order(const hlo_inst *x);
hlo_comp *random_scalar_body(random_gen *g, sd_dtype t, hlo_op op);

typedef void (*random_maker)(random_gen *g);
#define MAKER(id, weight) void random_make_##id(random_gen *g);
#include "random_makers.def"
#undef MAKER

/* ---- arguments and results: random_value.c ---- */

enum { RANDOM_RESULTS = 128 };
/* The value of a parameter of that name and number. */
void random_fill(hlo_value *v, const char *name, int index);
double random_largest(const hlo_value *v); /* finite magnitude of a part */
/* Is got further from want than error?  name: of the device, for why. */
bool random_differs(const char *name, int out, const hlo_value *got,
                    const hlo_value *want, double error, sd_buf *why);
/* "// error: 0 1e-6" at the text's start; what is not said is 0. */
double *random_errors(sd_arena *a, const char *text, size_t len);

/* ---- running programs: random_run.c ---- */

typedef enum { RANDOM_AGREES, RANDOM_REFUSED, RANDOM_WRONG } random_verdict;
/* A device that is only described, such as host:v4, compiles programs and runs
 * none: what a machine without AVX-512 can try of it. */
typedef struct {
    xpu_client *client;
    xpu_device *device; /* NULL: it is described alone */
    device_desc described;
    sd_options options;
    const char *name;
} random_world;
sd_status random_world_open(random_world *w, const char *device);
void random_world_close(random_world *w);
/* A program in a format of frontend_read.  Larger than what can be evaluated
 * element by element it is only compiled. */
typedef struct {
    const char *format;
    sd_bytes bytes;
    const double *error; /* per result; NULL: `relative` to the largest value */
    double relative;
    bool hostile;        /* any bytes: every status but INTERNAL refuses it,
                            and values that nothing determines are not
                            compared */
    void (*evaluated)(void); /* called before the device's turn; may be NULL */
} random_program;
random_verdict random_run_program(const random_world *w,
                                  const random_program *p, sd_buf *why);
/* why: the refusal's or the difference's text. */
random_verdict random_run(const random_world *w, const char *text, size_t len,
                          sd_buf *why);

/* Of any extents: what cannot be evaluated is only compiled. */
random_verdict random_run_odd(const random_world *w, const char *text,
                              size_t len, sd_buf *why);
/* The device against itself: a program as it is, and with a barrier behind each
 * operation and one kernel for each, must have the same bits. */
random_verdict random_run_apart(const random_world *w, const char *text,
                                size_t len, sd_buf *why);

/* ---- cutting programs down: random_cut.c ---- */

typedef bool (*random_fails)(void *ctx, const char *text, size_t len);
/* A smaller text that still fails. */
void random_cut(const char *text, size_t len, random_fails fails, void *ctx,
                sd_buf *out);

#endif
