/* The custom-calls of linear algebra, "sundog.<name>", one row of
 * hlo_linalg.def each.  The verifier checks a call by its row, so reading
 * checks nothing. */
#ifndef HLO_LINALG_H
#define HLO_LINALG_H

#include "device_desc.h"
#include "hlo.h"

typedef enum {
#define LINALG(id, name, strict, attributes, operands, results) HLO_LA_##id,
#include "hlo_linalg.def"
#undef LINALG
    HLO_LA_COUNT
} hlo_linalg_id;

enum { HLO_LA_ATTRS = 4 };

typedef struct {
    const char *name; /* "sundog.eigh" */
    bool strict;
    const char *attrs, *operands, *results; /* see hlo_linalg.def */
} hlo_linalg_row;
extern const hlo_linalg_row hlo_linalg_table[HLO_LA_COUNT];

typedef struct { /* one call, read */
    hlo_linalg_id id;
    sd_dtype type;
    int64_t attr[HLO_LA_ATTRS]; /* in the row's order */
    int64_t batch;              /* how many matrices */
    int64_t m, n, p, q, t, z;   /* extents; 0: the row has no such letter */
} hlo_linalg;

/* What device functions and LAPACK have; narrow floats are widened before. */
static inline bool hlo_linalg_has_code(sd_dtype t)
{
    return t == SD_F32 || t == SD_F64 || t == SD_C64 || t == SD_C128;
}
/* False: in is no call of linear algebra.  It must verify. */
bool hlo_linalg_read(const hlo_inst *in, hlo_linalg *out);
/* Is that the name of one? */
bool hlo_is_linalg_name(const char *target);
/* In how many dimensions the matrices of a call stand; 0: it is none. */
int hlo_linalg_batch(const hlo_inst *in);
/* The device function that computes it; false: there is none. */
bool hlo_call_linalg(const hlo_inst *in, hlo_call *out);
/* May it be a library's of the device?  On the host plan says which of them are
 * worth it. */
bool hlo_linalg_has_library(const device_desc *dev, const hlo_linalg *c);
/* A call with the results that its row promises; attr in the row's order. */
hlo_inst *hlo_make_linalg(hlo_at p, hlo_linalg_id id, const int64_t *attr,
                          int narg, hlo_inst *const *arg);

#endif
