/* A libsundog-compiler.so of another build: whoever opens it must not call it.
 */
#include <stdlib.h>

__attribute__((visibility("default"))) extern const char sundog_interface[];
const char sundog_interface[] = "0.0.9-000000000000";

__attribute__((visibility("default"))) void sundog_compile(void);
void sundog_compile(void)
{
    abort();
}
