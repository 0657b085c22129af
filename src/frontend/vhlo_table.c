/* The table of operations: how a name finds its row, in bytecode and in text,
 * and what a row says of its attributes. */
#include "vhlo_import.h"

#define MIN(n) ~(n)
static const vhlo_row rows[] = {
#define VHLO(name, noperand, nresult, nregion, fn, op, props, form) \
    {name, noperand, nresult, nregion, fn, HLO_##op, props, form},
#include "vhlo.def"
#undef VHLO
};

/* How name stands to the row's: less, equal, greater. */
static int order(sd_bytes name, const char *row)
{
    size_t len = strlen(row);
    int d = memcmp(name.at, row, SD_MIN(len, name.len));

    return d ? d : name.len < len ? -1 : name.len > len;
}

/* The first row that is not less. */
static size_t lower_bound(sd_bytes name)
{
    size_t lo = 0, hi = SD_COUNTOF(rows);

    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;

        if (order(name, rows[mid].name) > 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

const vhlo_row *vhlo_find(sd_bytes name)
{
    size_t i = lower_bound(name);

    return i < SD_COUNTOF(rows) && order(name, rows[i].name) == 0 ? &rows[i]
                                                                  : NULL;
}

/* ---- names in text ---- */

/* VHLO's operations that text has in another dialect than stablehlo. */
static const struct {
    const char *text, *base;
} of_func[] = {
    {"func.func", "func"}, {"func.call", "call"}, {"func.return", "return"}};

static bool is_func_op(const char *base, size_t len)
{
    for (size_t i = 0; i < SD_COUNTOF(of_func); i++)
        if (strlen(of_func[i].base) == len &&
            memcmp(of_func[i].base, base, len) == 0)
            return true;
    return false;
}

/* The rows of one base name stand together, the newest last. */
static const vhlo_row *newest(sd_bytes base)
{
    const vhlo_row *best = NULL;

    for (size_t i = lower_bound(base); i < SD_COUNTOF(rows); i++) {
        size_t len = sd_stem_length(rows[i].name, "_v");

        if (strlen(rows[i].name) <= base.len ||
            memcmp(rows[i].name, base.at, base.len) != 0)
            break;
        if (len == base.len)
            best = &rows[i];
    }
    return best;
}

const vhlo_row *vhlo_find_text(sd_bytes name)
{
    static const char dialect[] = "stablehlo.";
    size_t n = sizeof dialect - 1;

    for (size_t i = 0; i < SD_COUNTOF(of_func); i++)
        if (order(name, of_func[i].text) == 0)
            return newest((sd_bytes){(const uint8_t *)of_func[i].base,
                                     strlen(of_func[i].base)});
    if (name.len > n && memcmp(name.at, dialect, n) == 0) {
        sd_bytes base = {name.at + n, name.len - n};

        return is_func_op((const char *)base.at, base.len) && base.at[0] != 'r'
                   ? NULL
                   : newest(base);
    }
    return memchr(name.at, '.', name.len) ? vhlo_find(name) : NULL;
}

void vhlo_text_name(const vhlo_row *row, bool in_func, sd_buf *b)
{
    size_t len = sd_stem_length(row->name, "_v");
    bool func = is_func_op(row->name, len) && (row->name[0] != 'r' || in_func);

    if (!strchr(row->name, '.'))
        sd_buf_str(b, func ? "func." : "stablehlo.");
    sd_buf_add(b, row->name, len);
}

/* ---- attributes ---- */

bool vhlo_next_prop(const char **s, vhlo_prop *p)
{
    *s += strspn(*s, " ");
    if (!**s)
        return false;
    *p = (vhlo_prop){.optional = **s == '~'};
    p->name = *s + p->optional;
    p->len = (int)strcspn(p->name, " :?");
    *s = p->name + p->len;
    if (**s == ':') {
        p->kind = (*s)[1];
        *s += 2;
    }
    if (**s == '?') {
        p->dflt = (*s)[1];
        *s += 2;
    }
    return true;
}

int vhlo_nprop(const vhlo_row *row)
{
    const char *s = row->props;
    vhlo_prop p;
    int n = 0;

    while (vhlo_next_prop(&s, &p))
        n++;
    return n;
}

int vhlo_prop_index(const vhlo_row *row, const char *name, size_t len,
                    vhlo_prop *p)
{
    const char *s = row->props;

    for (int i = 0; vhlo_next_prop(&s, p); i++)
        if ((size_t)p->len == len && memcmp(p->name, name, len) == 0)
            return i;
    return -1;
}
