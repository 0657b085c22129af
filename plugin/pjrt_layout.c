/* Layouts: arrays lie densely, in any order of their dimensions.  xpu knows
 * bytes only; the order is kept by a buffer's handle, and by executables for
 * what they take and give.  Tiles are refused. */
#include "pjrt.h"

#include <stdio.h>

/* ---- reading, converting ---- */

sd_status pjrt_layout_read(const PJRT_Buffer_MemoryLayout *l, size_t rank,
                           const char *whose, const int64_t **order)
{
    bool seen[SD_MAX_RANK] = {false}, plain = true;

    *order = NULL;
    if (!l)
        return NULL;
    /* struct_size is not asked: jaxlib 0.11.2 leaves it unwritten. */
    if (l->type != PJRT_Buffer_MemoryLayout_Type_Tiled)
        return sd_error(SD_INVALID,
                        "the %s layout is given by strides: give "
                        "it from minor to major",
                        whose);
    if (l->tiled.num_tiles)
        return sd_error(SD_INVALID,
                        "the %s layout has %zu tiles: arrays here "
                        "have none",
                        whose, l->tiled.num_tiles);
    if (l->tiled.minor_to_major_size != rank)
        return sd_error(SD_INVALID,
                        "the %s layout orders %zu dimensions of an array of "
                        "%zu",
                        whose, l->tiled.minor_to_major_size, rank);
    for (size_t i = 0; i < rank; i++) {
        int64_t d = l->tiled.minor_to_major[i];

        if (d < 0 || (size_t)d >= rank || seen[d])
            return sd_error(SD_INVALID,
                            "the %s layout is no permutation: dimension "
                            "%" PRId64 " in place %zu",
                            whose, d, i);
        seen[d] = true;
        plain &= d == (int64_t)(rank - 1 - i);
    }
    if (!plain)
        *order = l->tiled.minor_to_major;
    return NULL;
}

bool pjrt_layout_same(const int64_t *x, const int64_t *y, int rank)
{
    size_t bytes = (size_t)rank * sizeof *x;

    return x == y || !memcmp(x ? x : pjrt_row_major(rank),
                             y ? y : pjrt_row_major(rank), bytes);
}

/* The dimension that runs i-th, the slowest first. */
static int64_t nth(const int64_t *order, int rank, int i)
{
    return order ? order[rank - 1 - i] : i;
}

void pjrt_layout_permute(const int64_t *order, int rank, const int64_t *from,
                         int64_t *to)
{
    for (int i = 0; i < rank; i++)
        to[i] = from[nth(order, rank, i)];
}

void pjrt_layout_convert(void *to, const int64_t *to_order, const void *from,
                         const int64_t *from_order, size_t size, int rank,
                         const int64_t *dim)
{
    int64_t stride[SD_MAX_RANK], at[SD_MAX_RANK] = {0}, step = 1, n = 1, o = 0;
    const uint8_t *in = from;

    for (int i = rank - 1; i >= 0; i--) { /* of `to`, in elements */
        stride[nth(to_order, rank, i)] = step;
        step *= SD_MAX(dim[nth(to_order, rank, i)], (int64_t)1);
        n *= dim[i];
    }
    for (int64_t k = 0; k < n; k++, in += size) {
        memcpy((uint8_t *)to + (size_t)o * size, in, size);
        for (int i = rank - 1; i >= 0; i--) {
            int64_t d = nth(from_order, rank, i);

            o += stride[d];
            if (++at[d] < dim[d])
                break;
            o -= stride[d] * dim[d];
            at[d] = 0;
        }
    }
}

/* The order of row-major dimensions; lives for ever. */
const int64_t *pjrt_row_major(int rank)
{
    static const int64_t down[SD_MAX_RANK] = {
        31, 30, 29, 28, 27, 26, 25, 24, 23, 22, 21, 20, 19, 18, 17, 16,
        15, 14, 13, 12, 11, 10, 9,  8,  7,  6,  5,  4,  3,  2,  1,  0};

    return down + SD_MAX_RANK - rank;
}

/* ---- the extension ---- */

void pjrt_layout_write(PJRT_Layouts_MemoryLayout *l, int rank,
                       const int64_t *order)
{
    size_t n = 1;

    if (!order)
        order = pjrt_row_major(rank);
    l->text[0] = '{';
    for (int i = 0; i < rank; i++)
        n += (size_t)snprintf(l->text + n, sizeof l->text - n, "%s%d",
                              i ? "," : "", (int)order[i]);
    snprintf(l->text + n, sizeof l->text - n, "}");
}

static PJRT_Error *new_layout(int rank, const int64_t *order,
                              PJRT_Layouts_MemoryLayout **out)
{
    PJRT_Layouts_MemoryLayout *l = PJRT_NEW(PJRT_Layouts_MemoryLayout);

    if (!l)
        return pjrt_no_memory();
    pjrt_layout_write(l, rank, order);
    *out = l;
    return NULL;
}

static void keep_text(PJRT_Layouts_SerializedLayout *s)
{
    (void)s; /* it is the layout's */
}

PJRT_Error *pjrt_layouts_memory_layout_serialize(
    PJRT_Layouts_MemoryLayout_Serialize_Args *a)
{
    a->serialized_bytes = a->layout->text;
    a->serialized_bytes_size = strlen(a->layout->text);
    a->serialized_layout = (PJRT_Layouts_SerializedLayout *)a->layout;
    a->serialized_layout_deleter = keep_text;
    return NULL;
}

PJRT_Error *pjrt_layouts_pjrt_buffer_memory_layout(
    PJRT_Layouts_PJRT_Buffer_MemoryLayout_Args *a)
{
    return new_layout(xpu_buffer_rank(a->buffer->x), a->buffer->order,
                      &a->layout);
}

static PJRT_Error *default_layout(PJRT_Buffer_Type type, const int64_t *dims,
                                  size_t n, PJRT_Layouts_MemoryLayout **out)
{
    sd_dtype t;
    sd_status st = pjrt_shape(type, dims, n, &t);

    return st ? pjrt_return(st) : new_layout((int)n, NULL, out);
}

PJRT_Error *pjrt_layouts_pjrt_client_get_default_layout(
    PJRT_Layouts_PJRT_Client_GetDefaultLayout_Args *a)
{
    return default_layout(a->type, a->dims, a->num_dims, &a->layout);
}

PJRT_Error *pjrt_layouts_pjrt_topology_get_default_layout(
    PJRT_Layouts_PJRT_Topology_GetDefaultLayout_Args *a)
{
    return default_layout(a->type, a->dims, a->num_dims, &a->layout);
}

/* Those of an executable are its own: nobody destroys them. */
PJRT_Error *pjrt_layouts_pjrt_executable_get_output_layouts(
    PJRT_Layouts_PJRT_Executable_GetOutputLayouts_Args *a)
{
    a->num_outputs = (size_t)a->executable->p->noutput;
    a->layouts = a->executable->layouts;
    return NULL;
}

PJRT_Error *pjrt_layouts_pjrt_executable_get_parameter_layouts(
    PJRT_Layouts_PJRT_Executable_GetParameterLayouts_Args *a)
{
    a->num_parameters = (size_t)a->executable->p->nparam;
    a->layouts = a->executable->layouts + a->executable->p->noutput;
    return NULL;
}
