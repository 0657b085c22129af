/* Reading, checking and making the calls of linear algebra, by their table. */
#include "hlo_linalg.h"

#include <assert.h>

#include "hlo_infer.h"

const hlo_linalg_row hlo_linalg_table[] = {
#define LINALG(id, name, strict, attributes, operands, results) \
    {"sundog." name, strict, attributes, operands, results},
#include "hlo_linalg.def"
#undef LINALG
};

typedef struct { /* a call on its way through its row */
    hlo_module *m;
    const hlo_inst *in;
    const hlo_linalg_row *row;
    hlo_linalg c;
    int nbatch;
    const int64_t *batch; /* its dimensions */
    bool known[128];      /* letters that have an extent */
} reading;

static const hlo_linalg_row *row_of(const char *target)
{
    for (int i = 0; i < HLO_LA_COUNT; i++)
        if (strcmp(target, hlo_linalg_table[i].name) == 0)
            return &hlo_linalg_table[i];
    return NULL;
}

bool hlo_is_linalg_name(const char *target)
{
    return row_of(target) != NULL;
}

/* ---- the letters ---- */

/* The next word of *at, moved past it; its length, 0 at the end. */
static int next_word(const char **at, const char **word)
{
    *at += strspn(*at, " ");
    *word = *at;
    *at += strcspn(*at, " ");
    return (int)(*at - *word);
}

static int64_t *extent_of(hlo_linalg *c, char letter)
{
    switch (letter) {
    case 'm':
        return &c->m;
    case 'n':
        return &c->n;
    case 'p':
        return &c->p;
    case 'q':
        return &c->q;
    case 't':
        return &c->t;
    case 'z':
        return &c->z;
    default:
        return NULL;
    }
}

static int64_t value_of(const hlo_linalg *c, char letter)
{
    hlo_linalg copy = *c;
    int64_t k = SD_MIN(c->m, c->n);

    switch (letter) {
    case 'k':
        return k;
    case 'h':
        return SD_MAX(c->n, 1) - 1;
    case 'o':
        return c->n + 1;
    case 'f':
        return c->attr[0] ? c->m : k;
    case 'g':
        return c->attr[0] ? c->n : k;
    default:
        return *extent_of(&copy, letter);
    }
}

static sd_dtype type_of(const hlo_linalg *c, char letter)
{
    sd_dtype part = sd_dtype_part(c->type);

    switch (letter) {
    case 'R':
        return part;
    case 'C':
        return part == SD_F64 ? SD_C128 : SD_C64;
    case 'I':
        return SD_S32;
    default:
        return c->type;
    }
}

int hlo_linalg_batch(const hlo_inst *in)
{
    const hlo_linalg_row *row = row_of(in->u.custom->target);
    const char *at = row ? row->operands : "", *word;
    int len = next_word(&at, &word);

    return row && in->narg ? in->arg[0]->shape->rank - (len - 1) : 0;
}

/* ---- libraries ---- */

/* The calls that cuSOLVER does one matrix after the other: from how many rows
 * and columns on it is quicker than groups of work items, and for how many rows
 * one matrix more than one may follow (an H200: eigh of 128 rows takes it 1.5
 * ms, a group 5.7, which other groups do not lengthen). */
static const struct {
    hlo_linalg_id id;
    int64_t largest, least; /* of the two sides */
    int64_t rows;
} of_cusolver[] = {
    {HLO_LA_EIGH, 48, 48, 32},
    {HLO_LA_SVD, 160, 160, 32},
    {HLO_LA_CHOLESKY, 65, 65, 128},
    {HLO_LA_TRIANGULAR_SOLVE, 65, 65, 128},
    {HLO_LA_LU, 65, 16, 128},
    {HLO_LA_QR, 65, 16, 128},
    {HLO_LA_HOUSEHOLDER_PRODUCT, 65, 16, 128},
};
/* Of one right side groups of ours are quicker from so many rows on. */
enum { MOST_ROWS_OF_ONE = 512 };
/* Matrices of more elements have sizes that its older functions do not take. */
enum { MOST_ELEMENTS = INT32_MAX / 4 };

static bool fits_cusolver(const hlo_linalg *c)
{
    int64_t m = c->m ? c->m : c->n, rows = SD_MAX(m, c->n);

    for (size_t i = 0; i < SD_COUNTOF(of_cusolver); i++)
        if (of_cusolver[i].id == c->id)
            return rows >= of_cusolver[i].largest &&
                   SD_MIN(m, c->n) >= of_cusolver[i].least &&
                   c->batch <= SD_MAX(rows / of_cusolver[i].rows, 1) &&
                   m <= MOST_ELEMENTS / c->n &&
                   (!c->q || SD_MIN(c->p, c->q) > 1 ||
                    rows <= MOST_ROWS_OF_ONE) &&
                   c->p <= MOST_ELEMENTS / SD_MAX(c->q, 1);
    return false;
}

bool hlo_linalg_has_library(const device_desc *dev, const hlo_linalg *c)
{
    return dev->libs & DEVICE_LIB_LAPACK && hlo_linalg_has_code(c->type) &&
           (dev->kind != DEVICE_CUDA || fits_cusolver(c));
}

/* ---- operands ---- */

static sd_status read_attrs(reading *r)
{
    const char *at = r->row->attrs, *word;
    int len;

    for (int i = 0; (len = next_word(&at, &word)); i++) {
        const char *key = sd_arena_fmt(r->m->arena, "%.*s", len, word);
        bool many = strcmp(key, "trans") == 0;
        int64_t v;

        if (!hlo_custom_int(r->in->u.custom, key, &v))
            return hlo_bad(r->m, r->in, "%s lacks the attribute %s",
                           r->row->name, key);
        if (v < (many ? HLO_TRANSPOSE_NONE : 0) ||
            v > (many ? HLO_TRANSPOSE_ADJOINT : 1))
            return hlo_bad(r->m, r->in, "%s: %s cannot be %" PRId64,
                           r->row->name, key, v);
        r->c.attr[i] = v;
    }
    return NULL;
}

/* Operand i against its word; letters without an extent get theirs. */
static sd_status read_operand(reading *r, int i, const char *word, int len)
{
    const sd_shape *s = r->in->arg[i]->shape;
    int rank = r->nbatch + len - 1;

    if (!sd_shape_is_array(s) || s->rank != rank)
        return hlo_bad(r->m, r->in, "operand %d of %s must have %d dimensions",
                       i, r->row->name, rank);
    if (s->dtype != type_of(&r->c, word[0]))
        return hlo_bad(r->m, r->in, "operand %d of %s must be of %s", i,
                       r->row->name,
                       sd_dtype_table[type_of(&r->c, word[0])].name);
    for (int d = 0; d < rank; d++) {
        char letter = d < r->nbatch ? 'b' : word[d - r->nbatch + 1];
        int64_t want = d < r->nbatch ? r->batch[d] : s->dim[d];

        if (d >= r->nbatch && extent_of(&r->c, letter) &&
            !r->known[(int)letter]) {
            *extent_of(&r->c, letter) = s->dim[d];
            r->known[(int)letter] = true;
        } else if (d >= r->nbatch) {
            want = value_of(&r->c, letter);
        }
        if (s->dim[d] != want)
            return hlo_bad(r->m, r->in,
                           "dimension %d of operand %d of %s must be %" PRId64,
                           d, i, r->row->name, want);
    }
    return NULL;
}

/* What the letters cannot say. */
static sd_status check_extents(reading *r)
{
    const hlo_linalg *c = &r->c;
    bool fits = true;

    if (c->id == HLO_LA_HOUSEHOLDER_PRODUCT)
        fits = c->t <= c->n && c->n <= c->m;
    else if (c->id == HLO_LA_ORMQR)
        fits = c->t <= SD_MIN(c->m, c->n) && c->m == (c->attr[0] ? c->p : c->q);
    else if (c->id == HLO_LA_TRIANGULAR_SOLVE)
        fits = c->n == (c->attr[0] ? c->p : c->q);
    if (fits)
        return NULL;
    return hlo_bad(r->m, r->in, "the matrices of %s do not fit", r->row->name);
}

/* Its extent follows from an operand that comes after it. */
static bool waits(const char *word, int len)
{
    return memchr(word, 'o', (size_t)len) != NULL;
}

static sd_status read_operands(reading *r)
{
    const char *word[8];
    int len[8], n = 0;
    const char *at = r->row->operands;
    const sd_shape *s = r->in->narg ? r->in->arg[0]->shape : NULL;
    sd_status st;

    while ((len[n] = next_word(&at, &word[n])))
        n++;
    if ((st = hlo_want_args(r->m, r->in, n)))
        return st;
    if (!sd_shape_is_array(s) || s->rank < len[0] - 1)
        return hlo_bad(r->m, r->in, "operand 0 of %s must have %d dimensions",
                       r->row->name, len[0] - 1);
    if (!sd_is_float(s->dtype) && !sd_is_complex(s->dtype))
        return hlo_bad(r->m, r->in, "%s is of floating or complex numbers",
                       r->row->name);
    r->c.type = s->dtype;
    r->nbatch = s->rank - (len[0] - 1);
    r->batch = s->dim;
    r->c.batch = 1;
    for (int d = 0; d < r->nbatch; d++)
        r->c.batch *= s->dim[d];
    for (int last = 0; last < 2; last++)
        for (int i = 0; i < n; i++)
            if (waits(word[i], len[i]) == (last == 1) &&
                (st = read_operand(r, i, word[i], len[i])))
                return st;
    return check_extents(r);
}

/* ---- results ---- */

/* The shapes of the results, at most 8; how many. */
static int result_shapes(reading *r, const sd_shape **out)
{
    const char *at = r->row->results, *word;
    int64_t dim[SD_MAX_RANK];
    int n = 0, len;

    while ((len = next_word(&at, &word))) {
        int rank = 0;

        if (len > 2 && word[1] == '?') {
            if (!r->c.attr[word[0] - '0'])
                continue;
            word += 2;
            len -= 2;
        }
        for (int d = 0; d < r->nbatch; d++)
            dim[rank++] = r->batch[d];
        for (int i = 1; i < len; i++)
            dim[rank++] = value_of(&r->c, word[i]);
        out[n++] =
            sd_shape_make(r->m->arena, type_of(&r->c, word[0]), rank, dim);
    }
    return n;
}

static sd_status read_call(reading *r, hlo_module *m, const hlo_inst *in)
{
    sd_status st;

    *r = (reading){.m = m, .in = in, .row = row_of(in->u.custom->target)};
    r->c.id = (hlo_linalg_id)(r->row - hlo_linalg_table);
    st = read_attrs(r);
    return st ? st : read_operands(r);
}

sd_status hlo_infer_linalg_call(hlo_module *m, const hlo_inst *in,
                                const sd_shape **out)
{
    const sd_shape *part[8];
    reading r;
    sd_status st = read_call(&r, m, in);
    int n;

    if (st)
        return st;
    n = result_shapes(&r, part);
    *out = hlo_one_or_tuple(m, n, part);
    if (n == 1 && in->shape->dtype == SD_TUPLE && in->shape->nelem == 1 &&
        sd_shape_equal(in->shape->elem[0], part[0]))
        *out = in->shape;
    if (!sd_shape_equal(*out, in->shape))
        return hlo_bad(m, in, "%s gives %s, not %s", r.row->name,
                       hlo_shape_str(m, *out), hlo_shape_str(m, in->shape));
    return NULL;
}

bool hlo_linalg_read(const hlo_inst *in, hlo_linalg *out)
{
    reading r;
    sd_status st;

    if (in->op != HLO_CUSTOM_CALL || !row_of(in->u.custom->target))
        return false;
    st = read_call(&r, in->parent->module, in);
    if (st) {
        sd_status_free(st);
        return false;
    }
    *out = r.c;
    return true;
}

/* ---- making one ---- */

hlo_inst *hlo_make_linalg(hlo_at p, hlo_linalg_id id, const int64_t *attr,
                          int narg, hlo_inst *const *arg)
{
    hlo_module *m = p.c->module;
    hlo_custom *u = sd_arena_new(m->arena, hlo_custom);
    const hlo_linalg_row *row = &hlo_linalg_table[id];
    const char *at = row->attrs, *word;
    const sd_shape *part[8];
    hlo_inst *in;
    sd_buf b = {.arena = m->arena};
    reading r;
    sd_status st;
    int len;

    u->target = row->name;
    u->api_version = HLO_TYPED_FFI;
    sd_buf_str(&b, "{");
    for (int i = 0; (len = next_word(&at, &word)); i++)
        sd_buf_fmt(&b, "%s%.*s = %" PRId64 " : i64", i ? ", " : "", len, word,
                   attr[i]);
    sd_buf_str(&b, "}");
    u->config_len = b.len;
    u->config = sd_buf_take(&b);
    in = hlo_inst_create(p.c, p.before, HLO_CUSTOM_CALL, arg[0]->shape, narg,
                         arg);
    in->u.custom = u;
    st = read_call(&r, m, in);
    assert(!st); /* passes make calls of operands that fit */
    sd_status_free(st);
    in->shape = hlo_one_or_tuple(m, result_shapes(&r, part), part);
    hlo_take_source(in, p.like);
    return in;
}
