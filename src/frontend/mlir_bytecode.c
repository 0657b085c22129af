/* The container: header, sections, strings, dialects, the index of attributes
 * and types, properties, resources.  Nothing is interpreted here but what is
 * needed to find things; the file's order of sections does not matter. */
#include "mlir.h"

enum {
    S_STRINGS,
    S_DIALECTS,
    S_ENTRIES,
    S_OFFSETS,
    S_IR,
    S_RESOURCES,
    S_RESOURCE_OFFSETS,
    S_VERSIONS,
    S_PROPERTIES,
    S_COUNT
};
enum { NEWEST_BYTECODE = 6 };

static const uint8_t magic[4] = {0x4d, 0x4c, 0xef, 0x52};

bool mlir_is_bytecode(sd_bytes file)
{
    return file.len >= sizeof magic &&
           memcmp(file.at, magic, sizeof magic) == 0;
}

void mlir_fail(mlir_reader *r, sd_code code, const char *fmt, ...)
{
    const char *what;
    va_list ap;

    if (r->st)
        return;
    va_start(ap, fmt);
    what = sd_arena_vfmt(r->a, fmt, ap);
    va_end(ap);
    r->st = sd_error(code, "%s", what);
}

void mlir_check(mlir_reader *r, const sd_cursor *c, const char *what)
{
    if (!r->st)
        r->st = sd_cursor_status(c, what);
}

void mlir_not_known(mlir_reader *r, const char *thing, uint64_t code)
{
    mlir_fail(r, SD_UNIMPLEMENTED,
              "%s code %" PRIu64 " in a program of %s is not known", thing,
              code, r->producer);
}

/* Its offsets are those of the file. */
sd_cursor mlir_cursor(const mlir_reader *r, sd_bytes b)
{
    sd_cursor c = sd_cursor_of(b);

    c.base = r->file.at;
    return c;
}

/* The number of trailing zeros of the first byte says how many bytes follow. */
uint64_t mlir_varint(sd_cursor *c)
{
    uint8_t first = sd_read_u8(c);
    uint64_t v = first;

    if (first & 1)
        return first >> 1;
    if (first == 0)
        return sd_read_u64(c);
    int more = __builtin_ctz(first);

    for (int i = 1; i <= more; i++)
        v |= (uint64_t)sd_read_u8(c) << (8 * i);
    return v >> (more + 1);
}

uint32_t mlir_as_index(sd_cursor *c, uint64_t v)
{
    if (v > INT32_MAX) {
        sd_cursor_fail(c, "a number below 2^31 of an entry of a table");
        return 0;
    }
    return (uint32_t)v;
}

uint32_t mlir_index(sd_cursor *c)
{
    return mlir_as_index(c, mlir_varint(c));
}

int64_t mlir_svarint(sd_cursor *c)
{
    uint64_t u = mlir_varint(c);

    return (int64_t)((u >> 1) ^ (0 - (u & 1)));
}

uint64_t mlir_varint_flag(sd_cursor *c, bool *flag)
{
    uint64_t u = mlir_varint(c);

    *flag = u & 1;
    return u >> 1;
}

sd_bytes mlir_str(mlir_reader *r, uint64_t index)
{
    if (index >= (uint64_t)r->str.n) {
        mlir_fail(r, SD_INVALID, "string %" PRIu64 ", where there are %d",
                  index, r->str.n);
        return (sd_bytes){(const uint8_t *)"", 0};
    }
    return r->str.at[index].s;
}

const char *mlir_cstr(mlir_reader *r, uint64_t index)
{
    sd_bytes s = mlir_str(r, index);
    mlir_string *x;

    if (index >= (uint64_t)r->str.n)
        return "";
    x = &r->str.at[index];
    if (!x->copy)
        x->copy = sd_arena_str(r->out, (const char *)s.at, s.len);
    return x->copy;
}

/* ---- entries that the file does not have ---- */

uint32_t mlir_new_str(mlir_reader *r, const char *s, size_t len)
{
    *sd_push(r->a, &r->str) = (mlir_string){{(const uint8_t *)s, len}, NULL};
    return (uint32_t)r->str.n - 1;
}

static uint32_t new_entry(mlir_reader *r, bool is_type, void *memo)
{
    mlir_entry e = {.coded = true, .memo = memo};

    if (is_type) {
        *sd_push(r->a, &r->type) = e;
        return (uint32_t)r->type.n - 1;
    }
    *sd_push(r->a, &r->attr) = e;
    return (uint32_t)r->attr.n - 1;
}

uint32_t mlir_new_attr(mlir_reader *r, mlir_attr at)
{
    return new_entry(r, false, sd_arena_copy(r->a, &at, sizeof at));
}

uint32_t mlir_new_string(mlir_reader *r, const char *s, size_t len)
{
    return mlir_new_attr(
        r, (mlir_attr){.kind = MLIR_A_STRING, .str = mlir_new_str(r, s, len)});
}

uint32_t mlir_new_type(mlir_reader *r, mlir_type t)
{
    return new_entry(r, true, sd_arena_copy(r->a, &t, sizeof t));
}

uint32_t mlir_new_name(mlir_reader *r, mlir_op_name n)
{
    *sd_push(r->a, &r->name) = n;
    return (uint32_t)r->name.n - 1;
}

/* ---- sections ---- */

sd_bytes mlir_section(mlir_reader *r, sd_cursor *c, unsigned *id)
{
    uint8_t head = sd_read_u8(c);
    uint64_t len = mlir_varint(c), align;

    *id = head & 0x7f;
    if (head & 0x80) {
        align = mlir_varint(c);
        if (!align || (align & (align - 1)) || align > 4096)
            sd_cursor_fail(c, "an alignment that is a power of two");
        else
            while (!c->bad && (uint64_t)(c->at - r->file.at) & (align - 1))
                if (sd_read_u8(c) != 0xcb)
                    sd_cursor_fail(c, "padding 0xCB");
    }
    return sd_read_bytes(c, len);
}

static void read_sections(mlir_reader *r, sd_cursor *c)
{
    static const bool need[S_COUNT] = {[S_STRINGS] = true,
                                       [S_DIALECTS] = true,
                                       [S_ENTRIES] = true,
                                       [S_OFFSETS] = true,
                                       [S_IR] = true};

    while (!r->st && !c->bad && sd_cursor_left(c)) {
        size_t offset = (size_t)(c->at - c->base);
        unsigned id;
        sd_bytes body = mlir_section(r, c, &id);

        if (c->bad)
            break;
        if (id >= S_COUNT || id == S_VERSIONS)
            mlir_fail(r, SD_INVALID, "offset %zu: section %u is not known",
                      offset, id);
        else if (r->has[id])
            mlir_fail(r, SD_INVALID, "offset %zu: a second section %u", offset,
                      id);
        if (r->st)
            return;
        r->has[id] = true;
        r->section[id] = body;
    }
    mlir_check(r, c, "the section table");
    for (unsigned i = 0; !r->st && i < S_COUNT; i++)
        if (!r->has[i] && (need[i] || (i == S_PROPERTIES && r->version >= 5)))
            mlir_fail(r, SD_INVALID, "section %u is missing", i);
}

/* Sizes come last string first, bytes first string first, each with a NUL. */
static void read_strings(mlir_reader *r)
{
    sd_cursor c = mlir_cursor(r, r->section[S_STRINGS]);
    uint64_t n = mlir_varint(&c), *size;

    if (n > sd_cursor_left(&c)) {
        mlir_fail(r, SD_INVALID, "%" PRIu64 " strings in %zu bytes", n,
                  sd_cursor_left(&c));
        return;
    }
    size = sd_arena_array(r->a, uint64_t, n + 1);
    for (uint64_t i = n; i-- > 0;)
        size[i] = mlir_varint(&c);
    for (uint64_t i = 0; i < n; i++) {
        sd_bytes b = sd_read_bytes(&c, size[i]);

        if (!c.bad && (!size[i] || b.at[size[i] - 1]))
            sd_cursor_fail(&c, "a string that ends in NUL");
        mlir_new_str(r, (const char *)b.at, c.bad ? 0 : (size_t)size[i] - 1);
    }
    if (!c.bad && sd_cursor_left(&c))
        sd_cursor_fail(&c, "the end of the strings");
    mlir_check(r, &c, "the string section");
}

static mlir_dialect_id dialect_of(sd_bytes s)
{
    static const struct {
        const char *name;
        mlir_dialect_id id;
    } known[] = {{"builtin", MLIR_D_BUILTIN},
                 {"vhlo", MLIR_D_VHLO},
                 {"sdy", MLIR_D_SDY},
                 {"chlo", MLIR_D_CHLO},
                 {"stablehlo", MLIR_D_STABLEHLO}};

    for (size_t i = 0; i < SD_COUNTOF(known); i++)
        if (s.len == strlen(known[i].name) &&
            memcmp(s.at, known[i].name, s.len) == 0)
            return known[i].id;
    return MLIR_D_OTHER;
}

/* Rows of other dialects than vhlo have the dialect in their name. */
static mlir_op_name name_of(mlir_reader *r, const mlir_dialect *d, sd_bytes s)
{
    const char *text = sd_arena_fmt(r->a, "%.*s.%.*s", (int)d->name.len,
                                    d->name.at, (int)s.len, s.at);
    sd_bytes full = {(const uint8_t *)text, strlen(text)};
    mlir_op_name op = {d->id, s, vhlo_find(d->id == MLIR_D_VHLO ? s : full)};

    if (!op.row)
        op.name = full;
    return op;
}

static void read_dialect_list(mlir_reader *r, sd_cursor *c)
{
    uint64_t n = mlir_varint(c);

    if (n > sd_cursor_left(c)) {
        mlir_fail(r, SD_INVALID, "%" PRIu64 " dialects in %zu bytes", n,
                  sd_cursor_left(c));
        return;
    }
    r->dialect = sd_arena_array(r->a, mlir_dialect, n + 1);
    for (uint64_t i = 0; i < n && !c->bad && !r->st; i++) {
        bool versioned = false;
        uint64_t s =
            r->version < 1 ? mlir_varint(c) : mlir_varint_flag(c, &versioned);
        unsigned id;

        r->dialect[i].name = mlir_str(r, s);
        r->dialect[i].id = dialect_of(r->dialect[i].name);
        if (versioned)
            mlir_section(r, c, &id); /* its number is not needed */
    }
    r->ndialect = (size_t)n;
}

/* Groups of one dialect each; an operation refers to the position in all. */
static void read_dialects(mlir_reader *r)
{
    sd_cursor c = mlir_cursor(r, r->section[S_DIALECTS]);

    read_dialect_list(r, &c);
    if (r->version >= 4)
        mlir_varint(&c); /* how many names there are */
    while (!r->st && !c.bad && sd_cursor_left(&c)) {
        uint64_t d = mlir_varint(&c), n = mlir_varint(&c);

        if (d >= r->ndialect || n > sd_cursor_left(&c)) {
            sd_cursor_fail(&c, "a dialect of the list and its names");
            break;
        }
        for (uint64_t i = 0; i < n && !c.bad && !r->st; i++) {
            bool registered;
            uint64_t s = r->version < 5 ? mlir_varint(&c)
                                        : mlir_varint_flag(&c, &registered);

            mlir_new_name(r, name_of(r, &r->dialect[d], mlir_str(r, s)));
        }
    }
    mlir_check(r, &c, "the dialect section");
}

/* ---- the index of attributes and types ---- */

static void read_groups(mlir_reader *r, sd_cursor *c, sd_cursor *data,
                        mlir_entry *e, uint64_t count)
{
    uint64_t k = 0;

    while (k < count && !c->bad && !data->bad) {
        uint64_t d = mlir_varint(c), n = mlir_varint(c);

        if (d >= r->ndialect || n > count - k) {
            sd_cursor_fail(c, "a dialect of the list and its entries");
            return;
        }
        for (uint64_t i = 0; i < n && !c->bad; i++, k++) {
            e[k].dialect = r->dialect[d].id;
            e[k].data = sd_read_bytes(data, mlir_varint_flag(c, &e[k].coded));
        }
    }
}

static void read_offsets(mlir_reader *r)
{
    sd_cursor c = mlir_cursor(r, r->section[S_OFFSETS]);
    sd_cursor data = mlir_cursor(r, r->section[S_ENTRIES]);
    uint64_t na = mlir_varint(&c), nt = mlir_varint(&c);

    if (na > sd_cursor_left(&c) || nt > sd_cursor_left(&c)) {
        mlir_fail(r, SD_INVALID,
                  "%" PRIu64 " attributes and %" PRIu64 " types in %zu bytes",
                  na, nt, sd_cursor_left(&c));
        return;
    }
    for (uint64_t i = 0; i < na; i++)
        new_entry(r, false, NULL);
    for (uint64_t i = 0; i < nt; i++)
        new_entry(r, true, NULL);
    read_groups(r, &c, &data, r->attr.at, na);
    read_groups(r, &c, &data, r->type.at, nt);
    if (!c.bad && sd_cursor_left(&c))
        sd_cursor_fail(&c, "the end of the index");
    if (!data.bad && !c.bad && sd_cursor_left(&data))
        sd_cursor_fail(&data, "the end of the entries");
    mlir_check(r, &c, "the index of attributes and types");
    mlir_check(r, &data, "the attributes and types");
}

static void read_properties(mlir_reader *r)
{
    sd_cursor c = mlir_cursor(r, r->section[S_PROPERTIES]);
    uint64_t n = mlir_varint(&c);

    if (n > sd_cursor_left(&c)) {
        mlir_fail(r, SD_INVALID, "%" PRIu64 " properties in %zu bytes", n,
                  sd_cursor_left(&c));
        return;
    }
    r->prop = sd_arena_array(r->a, sd_bytes, n + 1);
    for (uint64_t i = 0; i < n; i++)
        r->prop[i] = sd_read_bytes(&c, mlir_varint(&c));
    mlir_check(r, &c, "the property section");
    r->nprop = (size_t)n;
}

/* ---- resources: only dense_resource attributes use them ---- */

static void read_resource_group(mlir_reader *r, sd_cursor *c, sd_cursor *data,
                                bool keep)
{
    sd_vec(mlir_resource) v = {0};
    uint64_t n = mlir_varint(c);

    if (n > sd_cursor_left(c)) {
        sd_cursor_fail(c, "as many resources as there are bytes");
        return;
    }
    for (uint64_t i = 0; i < n && !c->bad && !data->bad; i++) {
        mlir_varint(c); /* the key */
        uint64_t size = mlir_varint(c);
        mlir_resource x = {sd_read_bytes(data, size), sd_read_u8(c)};

        if (keep)
            *sd_push(r->a, &v) = x;
    }
    if (!keep || !v.n)
        return;
    mlir_resource *all =
        sd_arena_array(r->a, mlir_resource, r->nresource + (size_t)v.n);

    if (r->nresource)
        memcpy(all, r->resource, r->nresource * sizeof *all);
    memcpy(all + r->nresource, v.at, (size_t)v.n * sizeof *all);
    r->resource = all;
    r->nresource += (size_t)v.n;
}

static void read_resources(mlir_reader *r)
{
    sd_cursor c = mlir_cursor(r, r->section[S_RESOURCE_OFFSETS]);
    sd_cursor data = mlir_cursor(r, r->section[S_RESOURCES]);
    uint64_t n = mlir_varint(&c);

    for (uint64_t i = 0; i < n && !c.bad && !data.bad; i++) {
        mlir_varint(&c); /* the owner */
        read_resource_group(r, &c, &data, false);
    }
    while (!c.bad && !data.bad && sd_cursor_left(&c)) {
        mlir_varint(&c); /* the dialect */
        read_resource_group(r, &c, &data, true);
    }
    mlir_check(r, &c, "the resource section");
    mlir_check(r, &data, "the resources");
}

/* ---- all ---- */

static void read_header(mlir_reader *r, sd_cursor *c)
{
    const uint8_t *s, *nul;

    sd_read_bytes(c, sizeof magic);
    r->version = mlir_varint(c);
    if (!c->bad && r->version > NEWEST_BYTECODE) {
        mlir_fail(r, SD_UNIMPLEMENTED,
                  "MLIR bytecode version %" PRIu64 ", newest known is %d",
                  r->version, NEWEST_BYTECODE);
        return;
    }
    s = c->at;
    nul = memchr(s, 0, sd_cursor_left(c));
    if (!nul) {
        sd_cursor_fail(c, "a producer's name that ends in NUL");
        mlir_check(r, c, "the header");
        return;
    }
    r->producer = sd_arena_str(r->a, (const char *)s, (size_t)(nul - s));
    sd_read_bytes(c, (uint64_t)(nul - s) + 1);
}

void mlir_read(mlir_reader *r, sd_bytes file)
{
    sd_cursor c;

    r->file = file;
    r->producer = "";
    c = mlir_cursor(r, file);
    read_header(r, &c);
    if (!r->st)
        read_sections(r, &c);
    if (!r->st)
        read_strings(r);
    if (!r->st)
        read_dialects(r);
    if (!r->st)
        read_offsets(r);
    if (!r->st && r->has[S_PROPERTIES])
        read_properties(r);
    if (!r->st && r->has[S_RESOURCES] && r->has[S_RESOURCE_OFFSETS])
        read_resources(r);
    if (!r->st)
        mlir_read_ir(r);
}
