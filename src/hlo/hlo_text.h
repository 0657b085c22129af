/* HLO text: the lexer that the parser's files share, and literals. */
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
} hlo_lexer;

typedef struct {
    const char *at;
    size_t len;
} hlo_word;

void hlo_skip_space(hlo_lexer *x); /* and comments */
void hlo_fail(hlo_lexer *x, const char *expected);
bool hlo_accept(hlo_lexer *x, const char *token); /* one punctuation */
void hlo_expect(hlo_lexer *x, const char *token);
bool hlo_accept_word(hlo_lexer *x, const char *word); /* a whole word */
hlo_word hlo_take_name(hlo_lexer *x); /* with or without %; may be empty */
int64_t hlo_take_int(hlo_lexer *x);
const char *hlo_take_string(hlo_lexer *x, size_t *len); /* "...", unescaped */
hlo_dims hlo_take_dims(hlo_lexer *x);                   /* {0,1} */
const sd_shape *hlo_take_shape(hlo_lexer *x);
bool hlo_word_is(hlo_word w, const char *s);

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
    void *ctx;
} hlo_attrs;
/* Reads them into in; what is not known is an error. */
void hlo_parse_attrs(hlo_lexer *x, hlo_attrs *as, hlo_inst *in);

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
void hlo_attr_comp(hlo_attr_reader *r, const char *key);
bool hlo_attr_comp_list(hlo_attr_reader *r, const char *key);

hlo_window_dim *hlo_read_window(hlo_attr_reader *r, int *n);
void hlo_read_dot(hlo_attr_reader *r);
void hlo_read_conv(hlo_attr_reader *r);
void hlo_read_gather(hlo_attr_reader *r);
void hlo_read_slice(hlo_attr_reader *r);
void hlo_read_pad(hlo_attr_reader *r);
void hlo_read_custom(hlo_attr_reader *r);
void hlo_read_collective(hlo_attr_reader *r);

/* the names that text uses for enums, by value */
extern const char *const hlo_cmp_dir_name[],
    *const hlo_cmp_type_name[], *const hlo_fft_name[],
                                    *const hlo_rng_name[],
                                        *const hlo_transpose_name[],
                                            *const hlo_fusion_name[],
                                                *const hlo_prec_name[],
                                                    *const hlo_api_name[],
                                                        *const hlo_dist_name[];

#endif
