/* Interrupts (SIGINT) inside xpu: xpu_interrupt.c counts them and wakes who
 * sleeps, xpu_live.c ends runs. */
#ifndef XPU_INTERRUPT_H
#define XPU_INTERRUPT_H

#include "xpu.h"

/* The bell counts interrupts and rings.  A thread reads it, looks whether
 * there is something to do, and sleeps until the bell is another number than
 * it read; shortly: or until the last interrupt is due. */
void xpu_interrupt_ring(void);
uint32_t xpu_interrupt_bell(void);
void xpu_interrupt_sleep(uint32_t bell, bool shortly);
/* Installs our handler again if it is gone: at its first interrupt, LLVM's in
 * an OpenCL driver puts the handlers back that were there before its own, and
 * so removes ours. */
void xpu_interrupt_keep(void);
sd_status xpu_interrupted(const char *what);
/* Start and stop the client's thread that ends runs when an interrupt is
 * due. */
void xpu_live_watch(xpu_client *c);
void xpu_live_stop(xpu_client *c);

#endif
