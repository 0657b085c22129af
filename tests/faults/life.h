/* A whole life of a client, in which a driver may fail: life.c. */
#ifndef LIFE_H
#define LIFE_H

#include "xpu_by_hand.h"

extern sd_buf life_code, life_elf; /* kernels: of the device, of the host */
extern sd_options life_options;    /* beside what a life sets itself */

typedef struct {
    xpu_client *c;
    xpu_program *square, *add;
    xpu_buffer *a, *b, *sum, *large, *moved;
    float *got;
} life;

sd_status life_begin(life *l, const char *device); /* opens the client */
void life_end(life *l);                            /* of a half-made one, too */
sd_status whole_life(const char *device);

/* ---- on a driver that is none: fake_cl.c, fake_cuda.c ---- */

extern void *fake_driver;        /* as dlopen gave it */
extern const char *fake_library; /* its file */
/* Of the driver: calls and commands so far, objects that are left. */
extern long (*ncalls)(void), (*nlive)(void), (*nruns)(void);

/* False: there is no such file.  Clients open it from then on. */
bool fake_open(const char *device, const char *library);
long (*fake_count(const char *what))(void); /* "calls": fake_cl_calls */
void fake_tell(const char *words); /* what trouble the next client meets */

sd_status with(const char *fmt, ...) SD_PRINTF(1, 2); /* a life, in trouble */
/* The same; and of 16 such lives one is followed by the host's. */
sd_status life_beside_host(const char *words);
/* Lives in which call 1, 1 + step, ... of those that are counted is in trouble,
 * as word, "=1" and more tell the driver, until one meets none.  Each ends well
 * or with an error that is clear, and leaves nothing.  How many had an error. */
long life_each(sd_status (*one)(const char *words),
               bool (*is_clear)(const sd_error *st), long (*count)(void),
               const char *word, const char *more, int step);
/* That error, nothing left of it, and a host device beside it goes on; for
 * messages that have the library's name. */
void expect(sd_status st, sd_code code, const char *message);
char *told(const char *fmt);
/* auto: whole with the GPU, or on the host without a trace of it; words: such
 * that there are two devices. */
void life_auto(const char *words);

#endif
