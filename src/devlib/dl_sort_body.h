/* The functions of dl_sort.c over one kind of item: `item`, whose upper half
 * is a code of type `code` and whose lower half, HALF bits, is what moves with
 * it; NAME makes their names. */

DL_INLINE code NAME(of)(item x) { return (code)(x >> HALF); }

/* ---- a row in order ---- */

/* Each item's place is the number of those before it: n * n comparisons
 * without a branch on data, which few items take less time for than anything
 * else.  Items differ. */
DL_INLINE void NAME(by_rank)(const item *a, item *b, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        item x = a[i];
        int64_t place = 0;

        for (int64_t j = 0; j < n; j++)
            place += a[j] < x;
        b[place] = x;
    }
}

/* Radix sort by bits [from, from + bits) of the items, from the lowest digit
 * up.  A digit that all items share costs its counting only. */
DL_INLINE item *NAME(by_digits)(item *a, item *b, uint32_t *count, int64_t n,
                                int from, int bits, int digit)
{
    item mask = ((item)1 << digit) - 1;
    int passes = (bits + digit - 1) / digit;

    for (int64_t i = 0; i < (int64_t)passes << digit; i++)
        count[i] = 0;
    for (int64_t i = 0; i < n; i++) {
        item x = a[i] >> from;
        uint32_t *at = count;

        for (int p = 0; p < passes; p++, x >>= digit, at += 1 << digit)
            at[x & mask]++;
    }
    for (int p = 0; p < passes; p++) {
        uint32_t *at = count + ((int64_t)p << digit), sum = 0;
        int shift = from + p * digit;
        item *t = b;

        if (at[a[0] >> shift & mask] == n)
            continue;
        for (int d = 0; d < 1 << digit; d++) {
            uint32_t here = at[d];

            at[d] = sum;
            sum += here;
        }
        for (int64_t i = 0; i < n; i++)
            b[at[a[i] >> shift & mask]++] = a[i];
        b = a;
        a = t;
    }
    return a;
}

DL_INLINE item *NAME(in_order)(item *a, item *b, uint32_t *count, int64_t n,
                               int bits)
{
    if (n <= DL_SORT_FEW) {
        NAME(by_rank)(a, b, n);
        return b;
    }
    if (n < LARGE)
        return NAME(by_digits)(a, b, count, n, HALF, bits, 8);
    return NAME(by_digits)(a, b, count, n, HALF, bits, 11);
}

/* a[0, n) in the order of its codes, of which only the lowest `bits` bits
 * differ, equal ones as they stood; the lower halves are the items' numbers
 * unless n is more than DL_SORT_FEW.  The result is in a or in b; count has
 * room for DL_SORT_COUNTS. */
item *NAME(dl_sort)(item *a, item *b, uint32_t *count, int64_t n, int32_t bits)
{
    return NAME(in_order)(a, b, count, n, bits);
}

/* ---- the few smallest ---- */

/* The k smallest of a[0, n), n > k, to its front: quickselect, whose pivots a
 * hash of the range picks, so that no order of the items is bad for it. */
DL_INLINE void NAME(to_front)(item *a, int64_t n, int64_t k)
{
    int64_t lo = 0, hi = n;

    while (hi - lo > 1) {
        uint64_t r = (uint64_t)(lo * 31 + hi) * 0x9e3779b97f4a7c15u >> 33;
        int64_t at = lo, last = hi - 1;
        int64_t p = lo + (int64_t)(r % (uint64_t)(hi - lo));
        item pivot = a[p];

        a[p] = a[last];
        a[last] = pivot;
        for (int64_t i = lo; i < last; i++) { /* no branch on data */
            item x = a[i];

            a[i] = a[at];
            a[at] = x;
            at += x < pivot;
        }
        a[last] = a[at];
        a[at] = pivot;
        if (at == k || at + 1 == k)
            return;
        if (at < k)
            lo = at + 1;
        else
            hi = at;
    }
}

DL_INLINE void NAME(tighten)(dl_few *f, item *a)
{
    code most = 0;

    NAME(to_front)(a, f->n, f->k);
    f->n = f->k;
    for (int64_t i = 0; i < f->k; i++)
        most = NAME(of)(a[i]) > most ? NAME(of)(a[i]) : most;
    f->full = most == 0; /* what comes later is not less */
    f->limit = (uint64_t)(most - 1);
}

/* The next count codes, whose numbers go up from first: those that may be
 * among the k smallest to a, which has room for DL_FEW_ROOM(k) of them.  Of
 * equal codes the first ones stay. */
void NAME(dl_few_take)(dl_few *f, item *a, const code *c, int64_t first,
                       int64_t count)
{
    int64_t room = DL_FEW_ROOM(f->k);

    for (int64_t i = 0; i < count && !f->full; i += BLOCK) {
        int64_t end = i + BLOCK < count ? i + BLOCK : count;
        code limit = (code)f->limit;

        if (end - i == BLOCK && !NAME(any_within)(c + i, limit))
            continue;
        for (int64_t j = i; j < end; j++) {
            a[f->n] = (item)c[j] << HALF | (item)(first + j);
            f->n += c[j] <= limit;
        }
        if (f->n > room - BLOCK - 1)
            NAME(tighten)(f, a);
    }
}

/* The k smallest, in order, after all were taken: in a or in b. */
item *NAME(dl_few_end)(dl_few *f, item *a, item *b, uint32_t *count,
                       int32_t bits)
{
    item *x;

    if (f->n > f->k)
        NAME(to_front)(a, f->n, f->k);
    if (f->k <= DL_SORT_FEW)
        return NAME(in_order)(a, b, count, f->k, bits);
    x = NAME(by_digits)(a, b, count, f->k, 0, f->number_bits, 8);
    return NAME(in_order)(x, x == a ? b : a, count, f->k, bits);
}
