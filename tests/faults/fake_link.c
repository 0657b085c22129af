/* An nvJitLink for tests: a cubin is ELF's first letters and the PTX.
 * FAKE_LINK=N makes its Nth call fail, none all, and damaged its code. */
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define API __attribute__((visibility("default")))

typedef struct {
    char *at;
    size_t bytes;
} module;
static _Atomic long ncall, nlive;

API long fake_link_calls(void);
API long fake_link_live(void);
API int nvJitLinkCreate(module **out, uint32_t n, const char **option);
API int nvJitLinkAddData(module *m, int type, const void *data, size_t bytes,
                         const char *name);
API int nvJitLinkComplete(module *m);
API int nvJitLinkGetLinkedCubinSize(module *m, size_t *out);
API int nvJitLinkGetLinkedCubin(module *m, void *out);
API int nvJitLinkDestroy(module **m);

long fake_link_calls(void)
{
    return ncall;
}

long fake_link_live(void)
{
    return nlive;
}

static int trouble(void)
{
    const char *word = getenv("FAKE_LINK");

    if (word && !strcmp(word, "none"))
        return 1;
    return ++ncall == (word ? strtol(word, NULL, 10) : 0);
}

int nvJitLinkCreate(module **out, uint32_t n, const char **option)
{
    if (trouble() || n != 1 || strcmp(*option, "-arch=sm_90"))
        return 1;
    nlive++;
    *out = calloc(1, sizeof **out);
    return *out ? 0 : 1;
}

int nvJitLinkAddData(module *m, int type, const void *data, size_t bytes,
                     const char *name)
{
    static const char magic[] = "\177ELF";

    if (trouble() || type != 2 || !name || strlen(data) + 1 != bytes)
        return 1;
    m->bytes = bytes + 4;
    if (!(m->at = malloc(m->bytes)))
        return 1;
    memcpy(m->at, magic, 4);
    memcpy(m->at + 4, data, bytes);
    return 0;
}

int nvJitLinkComplete(module *m)
{
    const char *word = getenv("FAKE_LINK");

    if (word && !strcmp(word, "damaged"))
        memset(m->at, 'x', m->bytes - 1);
    return trouble();
}

int nvJitLinkGetLinkedCubinSize(module *m, size_t *out)
{
    *out = m->bytes;
    return trouble();
}

int nvJitLinkGetLinkedCubin(module *m, void *out)
{
    memcpy(out, m->at, m->bytes);
    return trouble();
}

int nvJitLinkDestroy(module **m)
{
    free((*m)->at);
    free(*m);
    nlive--;
    return 0;
}
