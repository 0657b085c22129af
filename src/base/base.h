/* base: what every room stands on.  Memory (arenas), errors (sd_status),
 * bytes (cursor, string builder), containers, element types, shapes, options,
 * threads, log.  Everything here may be called from any thread; an arena, a
 * builder or a map belongs to one thread at a time. */
#ifndef SD_BASE_H
#define SD_BASE_H

#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#define SD_PRINTF(f, a) __attribute__((format(printf, f, a)))
#define SD_COUNTOF(a) (sizeof(a) / sizeof((a)[0]))
/* The smaller and the larger of two numbers.  Each operand is evaluated once:
 * SD_MAX(depth(left), depth(right)) in a function that walks a tree would
 * otherwise double the work at every level.  __COUNTER__ gives each use
 * variables of its own, so that SD_MIN(a, SD_MIN(b, c)) compiles. */
#define SD_PICK(a, op, b, x, y) \
    __extension__({ __typeof__(1 ? (a) : (b)) x = (a), y = (b); \
                    x op y ? x : y; })
#define SD_NAMED(x, n) x##n
#define SD_PICK_AS(a, op, b, n) \
    SD_PICK(a, op, b, SD_NAMED(sd_x, n), SD_NAMED(sd_y, n))
#define SD_MIN(a, b) SD_PICK_AS(a, <, b, __COUNTER__)
#define SD_MAX(a, b) SD_PICK_AS(a, >, b, __COUNTER__)
#define SD_VERSION "0.1.0"

/* ---- status: NULL is success; an error is owned by whoever receives it ---- */

typedef enum { /* the numbers of PJRT_Error_Code */
    SD_OK = 0, SD_CANCELLED = 1, SD_UNKNOWN = 2, SD_INVALID = 3,
    SD_DEADLINE = 4, SD_NOT_FOUND = 5, SD_ALREADY_EXISTS = 6,
    SD_PERMISSION = 7, SD_EXHAUSTED = 8, SD_PRECONDITION = 9,
    SD_ABORTED = 10, SD_OUT_OF_RANGE = 11, SD_UNIMPLEMENTED = 12,
    SD_INTERNAL = 13, SD_UNAVAILABLE = 14, SD_DATA_LOSS = 15
} sd_code;

typedef struct sd_error sd_error;
typedef sd_error *sd_status;

struct sd_error {
    const void *vtable; /* first word is PJRT's; the plugin sets it */
    sd_code code;
    char *message; /* with the notes that were added on the way up */
    const char *where; /* "file:line" */
    sd_error *next, **prev; /* in the list of a sd_catch, if prev is set */
};

sd_status sd_error_make(const char *where, sd_code code, const char *fmt, ...)
    SD_PRINTF(3, 4) __attribute__((returns_nonnull));
#define SD_STR_(x) #x
#define SD_STR(x) SD_STR_(x)
#define sd_error(code, ...) \
    sd_error_make(__FILE__ ":" SD_STR(__LINE__), code, __VA_ARGS__)
/* Prefixes the message with "note: "; returns st.  NULL stays NULL. */
sd_status sd_note(sd_status st, const char *fmt, ...) SD_PRINTF(2, 3);
sd_status sd_status_copy(const sd_error *st); /* NULL gives NULL */
void sd_status_free(sd_status st); /* takes NULL and sd_no_memory's error */
/* st, or then where that is NULL; of two errors the later one is freed. */
sd_status sd_first(sd_status st, sd_status then);
/* An error that is static, since there is no memory to make one in. */
sd_status sd_no_memory(size_t bytes) __attribute__((returns_nonnull));

/* ---- memory ---- */

/* For the compile rooms, when host memory is gone: jumps back to the thread's
 * sd_catch_oom.  A thread without one ends the process with a message. */
_Noreturn void sd_oom(size_t bytes);
/* Runs fn(ctx) and returns its status.  If fn comes to sd_oom on this thread,
 * the arenas and the errors that it made are freed and the status is EXHAUSTED.
 * Nothing else that fn holds is given back, so where an arena is asked fn holds
 * no lock, no open file and nothing of malloc's: tests/faults/held.c watches.
 * Calls may be nested. */
sd_status sd_catch_oom(sd_status (*fn)(void *ctx), void *ctx);

/* How a caller ends work that is under way: asked(ctx) says whether to stop,
 * and is called now and then, from any thread.  Inside sd_catch, arenas ask it
 * when they grow; if it is true they jump as sd_oom does, and the status is
 * CANCELLED.  Loops that allocate nothing call sd_stopped instead.  most > 0
 * bounds the bytes of those arenas. */
typedef struct { bool (*asked)(void *ctx); void *ctx; } sd_stop;
sd_status sd_catch(const sd_stop *stop, size_t most,
                   sd_status (*fn)(void *ctx), void *ctx); /* stop: may be NULL */
void sd_catch_error(sd_status st); /* for status.c: one that was made inside */
const sd_stop *sd_stop_current(void); /* to hand to helping threads; or NULL */
sd_status sd_stopped(void); /* CANCELLED when the work is to end, else NULL */
/* Bytes of memory of the machine, or of the control group if that has less;
 * and how many of them are free or held by caches that would give them back.
 * left_at reads /proc and /sys below `root`: for tests. */
int64_t sd_memory_size(void);
int64_t sd_memory_left(void);
int64_t sd_memory_left_at(const char *root);

typedef struct sd_arena sd_arena;
sd_arena *sd_arena_create(void);
void sd_arena_destroy(sd_arena *a);                /* takes NULL */
void *sd_arena_alloc(sd_arena *a, size_t bytes);   /* zeroed, 16-aligned */
/* The same for thunk, xpu and plugin: they return NULL when memory is gone. */
sd_arena *sd_arena_create_try(void);
void *sd_arena_try(sd_arena *a, size_t bytes);
#define sd_arena_new(a, type) ((type *)sd_arena_alloc((a), sizeof(type)))
#define sd_arena_array(a, type, n) \
    ((type *)sd_arena_alloc((a), sd_mul_or_die(sizeof(type), (size_t)(n))))
size_t sd_mul_or_die(size_t a, size_t b); /* sd_oom on overflow */
void *sd_arena_copy(sd_arena *a, const void *p, size_t bytes);
/* More room for what is at `at`, of `had` bytes; and what nobody needs any
 * more.  What was asked for last grows where it is, and is given back. */
void *sd_arena_grow(sd_arena *a, void *at, size_t had, size_t bytes);
void sd_arena_drop(sd_arena *a, void *at, size_t bytes);
char *sd_arena_str(sd_arena *a, const char *s, size_t len); /* adds the NUL */
char *sd_arena_fmt(sd_arena *a, const char *fmt, ...) SD_PRINTF(2, 3);
char *sd_arena_vfmt(sd_arena *a, const char *fmt, va_list ap);

/* Checked products and sums of int64 (dimensions) and size_t (bytes):
 * false on overflow or a negative operand, *out then untouched. */
bool sd_mul_i64(int64_t a, int64_t b, int64_t *out);
bool sd_mul_size(size_t a, size_t b, size_t *out);
bool sd_add_size(size_t a, size_t b, size_t *out);
int64_t sd_gcd(int64_t a, int64_t b); /* of 0 and b: b */

/* A growable array in an arena: elements stay where they are only until the
 * next push.  sd_vec(int) v = {0}; *sd_push(a, &v) = 3; v.at[0]; v.n */
#define sd_vec(type) struct { type *at; int n, cap; }
#define sd_push(a, v) \
    ((v)->at = sd_vec_grow((a), (v)->at, (v)->n, &(v)->cap, \
                           sizeof *(v)->at), &(v)->at[(v)->n++])
void *sd_vec_grow(sd_arena *a, void *at, int n, int *cap, size_t size);

/* A hash map in an arena.  Keys are 64-bit numbers, or pointers by sd_key. */
typedef struct sd_map sd_map;
sd_map *sd_map_create(sd_arena *a);
void sd_map_set(sd_map *m, uint64_t key, void *value);
void *sd_map_get(const sd_map *m, uint64_t key); /* NULL when absent */
bool sd_map_has(const sd_map *m, uint64_t key);
#define sd_key(p) ((uint64_t)(uintptr_t)(p))
uint64_t sd_hash(const void *p, size_t n, uint64_t seed);
/* A hash map whose keys are texts.  Equal texts are one key; the map borrows
 * them. */
typedef struct sd_names sd_names;
sd_names *sd_names_create(sd_arena *a);
void sd_names_set(sd_names *m, const char *s, size_t n, void *value);
void *sd_names_get(const sd_names *m, const char *s, size_t n);
/* The length of a name without the number that ends it and what stands before
 * that: of "multiply.12" and "." 8; all of it, where there is no such end. */
size_t sd_stem_length(const char *name, const char *mark);

/* ---- bytes ---- */

typedef struct { const uint8_t *at; size_t len; } sd_bytes; /* borrowed */

/* Reads bytes from the front to the end.  Its error is sticky: after the first
 * short or malformed read every read gives 0, so a parser runs straight and
 * asks sd_cursor_status once. */
typedef struct {
    const uint8_t *base, *at, *end;
    const char *bad; /* what was expected, NULL while all is well */
    size_t bad_at;
} sd_cursor;
sd_cursor sd_cursor_of(sd_bytes b);
static inline size_t sd_cursor_left(const sd_cursor *c)
{
    return (size_t)(c->end - c->at);
}
uint8_t sd_read_u8(sd_cursor *c);
uint32_t sd_read_u32(sd_cursor *c); /* little-endian */
uint64_t sd_read_u64(sd_cursor *c);
sd_bytes sd_read_bytes(sd_cursor *c, uint64_t n);
uint64_t sd_read_leb(sd_cursor *c); /* protobuf's base-128 varint */
void sd_cursor_fail(sd_cursor *c, const char *expected);
sd_status sd_cursor_status(const sd_cursor *c, const char *what);

/* Text or bytes under construction.  The compile rooms name an arena, in which
 * it grows: sd_buf b = {.arena = a}.  Without one it is malloc'ed, for thunk,
 * xpu and plugin, which cannot jump to sd_catch_oom: when memory is gone `oom`
 * is set and later writes do nothing. */
typedef struct { char *at; size_t len, cap; sd_arena *arena; bool oom; } sd_buf;
void sd_buf_add(sd_buf *b, const void *p, size_t n);
void sd_buf_str(sd_buf *b, const char *s);
void sd_buf_fmt(sd_buf *b, const char *fmt, ...) SD_PRINTF(2, 3);
void sd_buf_vfmt(sd_buf *b, const char *fmt, va_list ap);
/* 1,2,3 where `between` is a comma. */
void sd_buf_ints(sd_buf *b, const int64_t *at, int64_t n, const char *between);
void sd_buf_u8(sd_buf *b, uint8_t v);
void sd_buf_u32(sd_buf *b, uint32_t v);
void sd_buf_u64(sd_buf *b, uint64_t v);
void sd_buf_leb(sd_buf *b, uint64_t v);
void sd_buf_finish(sd_buf *b); /* empty again; frees what is no arena's */
/* Of one in an arena: what it holds, with a NUL behind it; b is empty again. */
char *sd_buf_take(sd_buf *b);

sd_status sd_file_read(const char *path, sd_buf *out);
sd_status sd_file_write(const char *path, const void *p, size_t n);

/* ---- element types and shapes ---- */

typedef enum { SD_K_NONE, SD_K_PRED, SD_K_SINT, SD_K_UINT, SD_K_FLOAT,
               SD_K_COMPLEX } sd_kind;
typedef enum {
#define DTYPE(id, name, bits, kind, pjrt, xla) SD_##id,
#include "dtype.def"
#undef DTYPE
    SD_DTYPE_COUNT
} sd_dtype;

typedef struct {
    const char *name;
    uint8_t bits, bytes; /* bytes: of one stored element */
    uint8_t kind, pjrt, xla;
} sd_dtype_info;
extern const sd_dtype_info sd_dtype_table[SD_DTYPE_COUNT];

static inline size_t sd_dtype_bytes(sd_dtype t)
{
    return sd_dtype_table[t].bytes;
}
static inline sd_kind sd_dtype_kind(sd_dtype t)
{
    return (sd_kind)sd_dtype_table[t].kind;
}
static inline bool sd_is_float(sd_dtype t)
{
    return sd_dtype_kind(t) == SD_K_FLOAT;
}
static inline bool sd_is_complex(sd_dtype t)
{
    return sd_dtype_kind(t) == SD_K_COMPLEX;
}
static inline bool sd_is_signed(sd_dtype t) /* integers */
{
    return sd_dtype_kind(t) == SD_K_SINT;
}
static inline bool sd_is_int(sd_dtype t) /* not pred */
{
    return sd_is_signed(t) || sd_dtype_kind(t) == SD_K_UINT;
}
/* x86-64's word for how a thread computes (MXCSR): its default, and the same
 * where subnormal operands and results count as 0.  Each takes a core about 150
 * cycles, so products and convolutions, which meet every operand many times,
 * are done in the second mode (docs/numerics.md). */
enum { SD_SUBNORMALS_KEPT = 0x1f80, SD_SUBNORMALS_ARE_0 = 0x9fc0 };
static inline bool sd_has_subnormals(sd_dtype t)
{
    return sd_is_float(t) || sd_is_complex(t);
}
static inline const char *sd_dtype_name(sd_dtype t)
{
    return sd_dtype_table[t].name;
}
bool sd_dtype_of_name(const char *s, size_t len, sd_dtype *out);
bool sd_dtype_of_pjrt(int code, sd_dtype *out);
bool sd_dtype_of_xla(int code, sd_dtype *out);
sd_dtype sd_dtype_part(sd_dtype t);    /* c64 -> f32; else itself */
sd_dtype sd_dtype_complex(sd_dtype t); /* f32 -> c64, f64 -> c128 */
/* The narrowest unsigned integer that has so many bits, or u64. */
sd_dtype sd_dtype_unsigned(int bits);

#define SD_MAX_RANK 32

/* Immutable once made; shared freely within its arena. */
typedef struct sd_shape sd_shape;
struct sd_shape {
    sd_dtype dtype;
    int rank;              /* arrays; 0 for tuple and token */
    const int64_t *dim;
    const int64_t *layout; /* minor to major; NULL: row-major */
    const sd_shape *const *elem; /* SD_TUPLE */
    int nelem;
};
const sd_shape *sd_shape_make(sd_arena *a, sd_dtype t, int rank,
                              const int64_t *dim);
const sd_shape *sd_shape_tuple(sd_arena *a, int n, const sd_shape *const *elem);
const sd_shape *sd_shape_with(sd_arena *a, const sd_shape *s, sd_dtype t);
/* s with n elements in dimension d. */
const sd_shape *sd_shape_with_dim(sd_arena *a, const sd_shape *s, int64_t d,
                                  int64_t n);
bool sd_shape_equal(const sd_shape *x, const sd_shape *y); /* but for layout */
bool sd_shape_same_dims(const sd_shape *x, const sd_shape *y);
/* Equal up to dimensions of 1? */
bool sd_same_but_ones(int nx, const int64_t *x, int ny, const int64_t *y);
int64_t sd_shape_count(const sd_shape *s);  /* elements; 1 for rank 0 */
/* From a position of each dimension to the next, in elements, row-major. */
void sd_shape_strides(const sd_shape *s, int64_t *stride);
size_t sd_shape_bytes(const sd_shape *s);   /* 0 for tuple and token */
/* Refuses a negative dimension, rank over SD_MAX_RANK, or more than 2^46
 * bytes; every reader asks it before a shape enters a module. */
sd_status sd_shape_check(sd_dtype t, int rank, const int64_t *dim);
/* The same for what is worked out: 2^50, since a program's numbers of a byte may
 * be computed in more. */
sd_status sd_shape_check_wider(sd_dtype t, int rank, const int64_t *dim);
static inline bool sd_shape_is_array(const sd_shape *s)
{
    return s->dtype != SD_TUPLE && s->dtype != SD_TOKEN;
}
/* How many results an operation of this shape has, and the shape of result i:
 * a tuple's elements are several results, every other shape is one. */
static inline int sd_shape_nresult(const sd_shape *s)
{
    return s->dtype == SD_TUPLE ? s->nelem : 1;
}
static inline const sd_shape *sd_shape_result(const sd_shape *s, int i)
{
    return s->dtype == SD_TUPLE ? s->elem[i] : s;
}
/* The other way: the shape of an operation with results of shapes elem[], a
 * tuple if `like` is one. */
static inline const sd_shape *sd_shape_of_results(sd_arena *a,
                                                  const sd_shape *like,
                                                  const sd_shape *const *elem)
{
    return like->dtype == SD_TUPLE ? sd_shape_tuple(a, like->nelem, elem)
                                   : elem[0];
}
void sd_shape_print(sd_buf *b, const sd_shape *s, bool with_layout);

/* One scalar of any type to and from a double or an int64, rounded as the type
 * is (to nearest even).  For readers, printers, folding and the evaluator. */
double sd_scalar_to_f64(sd_dtype t, const void *p);
void sd_scalar_of_f64(sd_dtype t, double v, void *p);
int64_t sd_scalar_to_s64(sd_dtype t, const void *p); /* integers and pred */
void sd_scalar_of_s64(sd_dtype t, int64_t v, void *p); /* wraps */

/* ---- options: one table, options.def ---- */

typedef enum {
#define OPTION(id, name, alias, code, type, dflt, help) SD_OPT_##id,
#include "options.def"
#undef OPTION
    SD_OPT_COUNT
} sd_option;
typedef enum { SD_T_BOOL, SD_T_INT, SD_T_WORD, SD_T_STR } sd_option_type;
typedef struct {
    const char *name;  /* SUNDOG_X: read from the environment */
    const char *alias; /* xla_x: read from compile options; may be NULL */
    bool code;         /* compiled code depends on it: it is in the cache key */
    sd_option_type type;
    int64_t least, most; /* SD_T_INT */
    const char *words;   /* SD_T_WORD: "one, another" */
    const char *dflt, *help;
} sd_option_info;
extern const sd_option_info sd_option_table[SD_OPT_COUNT];

typedef struct { const char *value[SD_OPT_COUNT]; } sd_options; /* NULL: unset */
void sd_options_from_env(sd_options *o);
/* An error if a value is not one that its row allows. */
sd_status sd_options_check(const sd_options *o);
/* Says in the log which environment variables SUNDOG_X have no row, and which
 * ask for what another leaves out. */
void sd_options_warn(void);
/* Sets the option called `name`: SUNDOG_X, or its alias with or without leading
 * dashes.  The value is copied into a.  False when no row has that name. */
bool sd_options_set(sd_arena *a, sd_options *o, const char *name, size_t nlen,
                    const char *value, size_t vlen);
const char *sd_opt_str(const sd_options *o, sd_option id); /* NULL: empty */
int64_t sd_opt_int(const sd_options *o, sd_option id);
bool sd_opt_bool(const sd_options *o, sd_option id);
uint64_t sd_options_key(const sd_options *o); /* of those that change code */

/* ---- threads ---- */

bool sd_cpu_has_vnni(void);
bool sd_cpu_has_bf16(void);
bool sd_cpu_has_amx(void); /* and the system lets this process use it */
int sd_cpu_level(void); /* x86-64-v4, -v3, or less than that: 4, 3, 2 */
int sd_cpu_count(void); /* affinity and cgroup quota, at least 1 */
int sd_cpu_count_at(const char *root); /* reads /proc and /sys there: tests */

/* Starts a thread with all signals blocked, since signals belong to the
 * framework's threads.  Returns 0, or an error number. */
int sd_thread_start(pthread_t *out, const char *name, void *(*fn)(void *),
                    void *arg);

/* Futexes.  sleep returns when *word is no longer `seen`, when somebody wakes
 * it, after `most` (NULL: never), or without a reason; so callers loop.  wake
 * wakes at most `sleepers` threads that sleep on the word. */
void sd_word_sleep(_Atomic uint32_t *word, uint32_t seen,
                   const struct timespec *most);
void sd_word_wake(_Atomic uint32_t *word, int sleepers);

/* A pool of threads.  sd_pool_run calls fn(ctx, i, worker) once for each i in
 * [0, n), on the pool's threads and the caller's, and returns when all calls
 * have returned.  Which thread takes which i is not fixed; `worker`, below
 * sd_pool_size, is a number that no two calls at one time share, so it may
 * index scratch memory.  Nobody waits for a pool: while it is busy, or if fn
 * itself calls sd_pool_run, the caller does all items alone as worker 0. */
typedef struct sd_pool sd_pool;
typedef void (*sd_pool_fn)(void *ctx, int64_t i, int worker);
sd_status sd_pool_create(int nthread, sd_pool **out);
void sd_pool_destroy(sd_pool *p);
int sd_pool_size(const sd_pool *p);
void sd_pool_run(sd_pool *p, int64_t n, sd_pool_fn fn, void *ctx);

/* ---- shelves: things that are costly to make, kept for their next user ---- */

/* Any thread may call.  A thing is on the shelf only while nobody uses it: take
 * removes one of that kind and variant (NULL: none is there), put brings it
 * back.  If the shelf is full or NULL, put destroys the thing.  Example: an
 * LLVM target machine, made by one compile and used again by the next. */
typedef struct sd_shelf sd_shelf;
sd_shelf *sd_shelf_create(void); /* NULL: no memory, which is no error */
void sd_shelf_destroy(sd_shelf *s);
void *sd_shelf_take(sd_shelf *s, const void *kind, int64_t variant);
void sd_shelf_put(sd_shelf *s, const void *kind, int64_t variant, void *thing,
                  void (*destroy)(void *thing));

/* ---- log: levels by SUNDOG_LOG=error|warn|info|debug, to stderr ---- */

typedef enum { SD_LOG_ERROR, SD_LOG_WARN, SD_LOG_INFO, SD_LOG_DEBUG } sd_level;
void sd_log_init(void); /* reads the filter once; before threads start */
void sd_log(sd_level l, const char *fmt, ...) SD_PRINTF(2, 3);
uint64_t sd_now_ns(void);
uint64_t sd_thread_ns(void); /* processor time of this thread */

#endif
