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

#endif
