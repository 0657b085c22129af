/* The custom-call of a window's gradient, which hlo.h describes: what it says,
 * what has a kernel, and in which steps that goes through the positions. */
#include <stdio.h>
#include <string.h>

#include "hlo.h"

bool hlo_places_is_named(const hlo_inst *in)
{
    return in->op == HLO_CUSTOM_CALL &&
           strcmp(in->u.custom->target, HLO_CALL_PLACES) == 0;
}

static bool read_low(const hlo_custom *u, int64_t *low)
{
    char text[48];
    int n = 0;

    if (!u->config || u->config_len >= sizeof text)
        return false;
    memcpy(text, u->config, u->config_len);
    text[u->config_len] = 0;
    return sscanf(text, "%" SCNd64 ",%" SCNd64 "%n", &low[0], &low[1], &n) ==
               2 &&
           !text[n];
}

bool hlo_places_read(const hlo_inst *in, hlo_places *out)
{
    const sd_shape *x, *y, *r = in->shape;

    *out = (hlo_places){0};
    if (!hlo_places_is_named(in) || in->narg != 2 ||
        !read_low(in->u.custom, out->low))
        return false;
    x = in->arg[0]->shape;
    y = in->arg[1]->shape;
    if (!sd_shape_is_array(x) || !sd_shape_is_array(y) ||
        !sd_shape_is_array(r) || x->rank != 4 || y->rank != 4 || r->rank != 5 ||
        x->dim[0] != y->dim[0] || x->dim[3] != r->dim[3] ||
        y->dim[3] != r->dim[4])
        return false;
    out->images = x->dim[0];
    out->features = x->dim[3];
    out->own = y->dim[3];
    out->pieces = r->dim[0];
    out->each = (int64_t)sd_dtype_bytes(x->dtype);
    for (int i = 0; i < 2; i++) {
        out->size[i] = x->dim[1 + i];
        out->of[i] = y->dim[1 + i];
        out->place[i] = r->dim[1 + i];
    }
    return true;
}

enum { MOST_OF_STEP = 16, MOST_PAIRS = 4 };

/* Of 16 bits an instruction takes two eights that lie side by side, and still
 * reads the areas of a step when the next one's products begin. */
static bool fits_step(const hlo_places *w, size_t local, hlo_places_step *s)
{
    bool narrow = w->each == 2;
    size_t bytes;

    s->x_units = (s->rows + w->place[0] - 1) * (s->columns + w->place[1] - 1);
    s->y_units = s->rows * s->columns;
    bytes = (size_t)((s->x_units + s->y_units) * hlo_places_unit(w));
    s->pairs = (int)SD_MIN(local / bytes, MOST_PAIRS);
    s->steps = w->images * s->bands / HLO_PLACES_BESIDE *
               (w->of[0] / s->bands / s->rows) * (w->of[1] / s->columns);
    return !(narrow && s->columns % 2) && s->pairs >= (narrow ? 3 : 2);
}

/* Of all steps the one that copies the least for each position. */
bool hlo_places_cut(const hlo_places *w, size_t local, hlo_places_step *out)
{
    hlo_places_step s = {.bands = 1};
    double least = 1e300;

    while (w->images * s.bands % HLO_PLACES_BESIDE || w->of[0] % s.bands)
        if (++s.bands > w->of[0])
            return false;
    for (s.rows = 1; s.rows <= MOST_OF_STEP; s.rows++)
        for (s.columns = 1; s.columns <= MOST_OF_STEP; s.columns++) {
            double each;

            if (w->of[0] / s.bands % s.rows || w->of[1] % s.columns ||
                !fits_step(w, local, &s))
                continue;
            each = (double)(s.x_units + s.y_units) / (double)s.y_units;
            if (each < least) {
                least = each;
                *out = s;
            }
        }
    return least < 1e300;
}

static bool is_small(int64_t images, const int64_t *size, int64_t features)
{
    int64_t n = images * size[0], most = HLO_PLACES_MOST;

    return n > 0 && n <= most && size[1] > 0 && size[1] <= most &&
           n * size[1] <= most && features > 0 &&
           features <= most / (n * size[1]);
}

bool hlo_places_fits(sd_dtype t, const hlo_places *w)
{
    for (int i = 0; i < 2; i++)
        if (w->place[i] > HLO_PLACES_SIDE || w->low[i] < -w->size[i] ||
            w->low[i] > w->size[i])
            return false;
    return (t == SD_BF16 || t == SD_F16 || t == SD_F32) &&
           w->place[0] * w->place[1] > 1 &&
           w->features % HLO_PLACES_PART == 0 &&
           w->own % HLO_PLACES_PART == 0 &&
           is_small(w->images, w->size, w->features) &&
           is_small(w->images, w->of, w->own) &&
           w->features <= HLO_PLACES_MOST / w->own &&
           is_small(w->pieces, w->place, w->features * w->own);
}

bool hlo_places_has_kernel(const hlo_inst *in, size_t local)
{
    hlo_places w;
    hlo_places_step s;
    sd_dtype t;

    if (!hlo_places_read(in, &w))
        return false;
    t = in->arg[0]->shape->dtype;
    return in->arg[1]->shape->dtype == t && in->shape->dtype == SD_F32 &&
           hlo_places_fits(t, &w) && hlo_places_cut(&w, local, &s) &&
           w.pieces <= s.steps && s.steps <= HLO_PLACES_MOST / w.pieces;
}
