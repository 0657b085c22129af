#include "emit.h"

void emit_sort(emit *e)
{
    emit_fail(e, sd_error(SD_UNIMPLEMENTED, "sort"));
}
