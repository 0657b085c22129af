/* HLO text: the lexer that the parser's files share, literals, and what text
 * and protobuf have in common. */
#ifndef HLO_TEXT_H
#define HLO_TEXT_H

#include "hlo_priv.h"

/* A cursor over text with a sticky error: after the first mistake nothing is
 * accepted any more, so the parse runs straight and is asked once. */
typedef struct {
    sd_arena *arena;
    const char *base, *at, *end; /* borrowed; base: of the whole text */
    const char *bad;             /* what was expected; NULL: all is well */
    const char *bad_at;
    sd_status status; /* a rule broken by what was well written */
    int64_t space;    /* memory space of the last array shape's layout */
} hlo_lexer;

typedef struct {
    const char *at;
    size_t len;
} hlo_word;

static inline hlo_lexer hlo_lexer_of(sd_arena *a, const char *text, size_t len)
{
    return (hlo_lexer){
        .arena = a, .base = text, .at = text, .end = text + len};
}
void hlo_skip_space(hlo_lexer *x); /* and comments */
void hlo_fail(hlo_lexer *x, const char *expected);
void hlo_refuse(hlo_lexer *x, sd_status st); /* st becomes x's */
bool hlo_accept(hlo_lexer *x, const char *token); /* one punctuation */
void hlo_expect(hlo_lexer *x, const char *token);
bool hlo_accept_word(hlo_lexer *x, const char *word); /* a whole word */
hlo_word hlo_take_name(hlo_lexer *x); /* with or without %; may be empty */
int64_t hlo_take_int(hlo_lexer *x);
void hlo_skip_braces(hlo_lexer *x); /* balanced, strings and all */
const char *hlo_take_string(hlo_lexer *x, size_t *len); /* "...", unescaped */
hlo_dims hlo_take_dims(hlo_lexer *x);                   /* {0,1} */
const sd_shape *hlo_take_shape(hlo_lexer *x);
bool hlo_word_is(hlo_word w, const char *s);

void hlo_print_shape(sd_buf *b, const sd_shape *s, bool layout);
void hlo_print_attrs(sd_buf *b, const hlo_inst *in);
void hlo_print_literal(sd_buf *b, const sd_shape *s, const void *data);
void *hlo_parse_literal(hlo_lexer *x, const sd_shape *s, size_t *bytes);

/* attributes of an instruction, key and value as written */
typedef struct {
    hlo_word key, value;
    bool used;
} hlo_attr;
typedef struct {
    hlo_attr *at;
    int n;
    hlo_comp *(*find)(void *ctx, hlo_word name);
    hlo_comp *(*body)(void *ctx, hlo_lexer *x); /* a computation in place */
    void (*frame)(void *ctx, int64_t id, hlo_inst *in); /* file and line */
    void *ctx;
} hlo_attrs;
bool hlo_take_attr(hlo_lexer *x, hlo_attr *a); /* key=value, still text */
/* Reads them into in; what is not known is an error. */
void hlo_parse_attrs(hlo_lexer *x, hlo_attrs *as, hlo_inst *in);

/* What stands before the computations (hlo_parse_head.c). */
typedef struct { int64_t a, b; } hlo_numbers;
typedef struct {
    hlo_dims donors, param_space, output_space; /* until the entry is known */
    sd_vec(const char *) file;    /* XLA's tables; their numbers begin at 1 */
    sd_vec(hlo_numbers) location; /* file, line */
    sd_vec(hlo_numbers) frame;    /* location */
} hlo_head;
void hlo_take_head(hlo_lexer *x, hlo_module *m, hlo_head *h);
void hlo_head_frame(const hlo_head *h, int64_t id, hlo_inst *in);
sd_status hlo_head_apply(const hlo_head *h, hlo_module *m);

typedef struct { /* over the attributes of one instruction */
    hlo_lexer *x;
    hlo_attrs *as;
    hlo_inst *in;
} hlo_attr_reader;
/* A lexer over one attribute's value; false when it is not given. */
bool hlo_open_attr(hlo_attr_reader *r, const char *key, hlo_lexer *v);
void hlo_close_attr(hlo_attr_reader *r, hlo_lexer *v); /* nothing left? */
void hlo_attr_want(hlo_attr_reader *r, const char *what);
hlo_dims hlo_attr_dims(hlo_attr_reader *r, const char *key);
int64_t hlo_attr_int(hlo_attr_reader *r, const char *key, int64_t unset);
bool hlo_attr_flag(hlo_attr_reader *r, const char *key);
int hlo_name_in(hlo_lexer *v, const char *const *names);
int hlo_attr_choice(hlo_attr_reader *r, const char *key,
                    const char *const *names, int unset);
const char *hlo_attr_text(hlo_attr_reader *r, const char *key, size_t *len);
void hlo_attr_comp_if(hlo_attr_reader *r, const char *key); /* if given */
bool hlo_attr_comp_list(hlo_attr_reader *r, const char *key);

bool hlo_is_custom_hint(hlo_word key);

/* ---- what text and protobuf share (hlo_form.c) ---- */

bool hlo_is_name_char(char ch);
hlo_cmp_type hlo_usual_compare(sd_dtype t); /* what an unset type means */

/* Our op scan is unknown to XLA.  In text and protobuf it goes as a custom-call
 * of this target, its guise: hlo_masked gives the guise of a scan, kept in g,
 * and every other instruction as it is; hlo_unmask makes a guise that was read
 * a scan again. */
#define HLO_SCAN_TARGET "sundog.scan"
typedef struct {
    hlo_inst in;
    hlo_custom custom;
    char config[96];
} hlo_guise;
const hlo_inst *hlo_masked(const hlo_inst *in, hlo_guise *g);
bool hlo_is_guise(const hlo_custom *c);
bool hlo_unmask(hlo_inst *in); /* false: its config is not ours */

/* XLA writes the layouts of a custom-call's operands and results in their
 * shapes; we keep them in u.custom.  From one to the other: */
bool hlo_custom_is_laid_out(const hlo_custom *c);
sd_shape hlo_custom_operand(const hlo_inst *in, int i);
const sd_shape *hlo_custom_result(sd_arena *a, const hlo_inst *in);
void hlo_custom_take_layouts(sd_arena *a, hlo_inst *in, hlo_custom *c);

/* Is it an op that XLA has and hlo_ops.def does not? */
bool hlo_op_not_done(const char *name, size_t len);

/* Groups [n,size]<=[dims]T(perm), n x size numbers; an empty perm leaves the
 * order.  NULL when they do not share out as many devices as dims say. */
const int64_t *hlo_iota_groups(sd_arena *a, int64_t n, int64_t size,
                               hlo_dims dims, hlo_dims perm);
/* Groups of unequal size are filled with -1 behind their members. */
int hlo_group_members(const hlo_collective *c, int64_t group);
void hlo_set_groups(sd_arena *a, const hlo_dims *group, int n,
                    hlo_collective *to);
/* Computations with callees first. */
typedef struct { const hlo_comp **at; int n, cap; } hlo_comp_list;
hlo_comp_list hlo_callees_first(sd_arena *a, const hlo_module *m);

enum { HLO_HOST_SPACE = 5 }; /* XLA's number of pinned host memory */
int64_t hlo_memory_space(const char *const *kind, int i); /* kind: or NULL */
/* kind[i], of n, from a memory space; false when it is none of ours. */
bool hlo_set_memory(sd_arena *a, const char ***kind, int n, int i,
                    int64_t space);
sd_status hlo_bad_memory(void);

/* the names that text uses for enums, by value */
extern const char *const hlo_cmp_dir_name[], *const hlo_cmp_type_name[],
    *const hlo_fft_name[], *const hlo_rng_name[], *const hlo_dist_name[],
    *const hlo_transpose_name[], *const hlo_fusion_name[],
    *const hlo_prec_name[], *const hlo_api_name[];

#endif
