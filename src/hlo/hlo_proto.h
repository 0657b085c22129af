/* What the files of HLO's protobuf form share. */
#ifndef HLO_PROTO_H
#define HLO_PROTO_H

#include "hlo_text.h"
#include "pb.h"

/* Frontend attributes that carry what XLA's messages have no place for. */
#define HLO_KEPT_SHARDING "sundog.sharding"
#define HLO_KEPT_ATTRIBUTES "sundog.frontend_attributes"

/* Numbers as a packed field holds them. */
static inline hlo_dims pb_dims(pb_ints v)
{
    return (hlo_dims){v.at, v.n};
}
static inline pb_ints pb_of_dims(hlo_dims d) /* borrowed: only to be written */
{
    return pb_borrowed(d.at, d.n);
}

/* ---- types and literals (hlo_proto_type.c) ---- */

sd_status hlo_shape_of_pb(sd_arena *a, const pb_shape *p, const sd_shape **out);
void hlo_shape_to_pb(sd_arena *a, const sd_shape *s, pb_shape *out);
/* Elements of an array, row-major as every constant's. */
sd_status hlo_literal_of_pb(sd_arena *a, const pb_literal *l, const sd_shape *s,
                            void **data, size_t *bytes);
void hlo_literal_to_pb(sd_arena *a, const sd_shape *s, const void *data,
                       sd_buf *b);

/* ---- attributes of an instruction (hlo_proto_*_attr.c) ---- */

void hlo_attrs_to_pb(sd_arena *a, const hlo_inst *in, pb_inst *p);
/* Operands and computations are there; what the op lacks is an error. */
sd_status hlo_attrs_of_pb(hlo_module *m, const pb_inst *p, hlo_inst *in);

/* ---- kept text (hlo_note.c): false when it is not in XLA's grammar ---- */

enum { HLO_PB_REPLICATED, HLO_PB_MAXIMAL, HLO_PB_TUPLE, HLO_PB_TILED,
       HLO_PB_MANUAL, HLO_PB_UNKNOWN, HLO_PB_UNREDUCED }; /* OpSharding's type */
bool hlo_sharding_parse(sd_arena *a, const char *text, pb_sharding *out);
void hlo_sharding_print(sd_buf *b, const pb_sharding *s);
bool hlo_attributes_parse(sd_arena *a, const char *text, pb_attributes *out);
void hlo_attributes_print(sd_buf *b, const pb_attributes *at);

#endif
