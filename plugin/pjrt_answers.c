/* The functions of pjrt_answers.def. */
#include "pjrt.h"

#define TEXT(field, v)    (a->field = (v), a->field##_size = strlen(a->field))
#define LIST(field, v, n) (a->field = (v), a->num_##field = (size_t)(n))

/* OURS_<PJRT's name> is our function's: pjrt_slots.h. */
#define ANSWER(name, it) \
    PJRT_Error *OURS_##name(name##_Args *a) \
    { \
        it; \
        return NULL; \
    }
#include "pjrt_answers.def"
