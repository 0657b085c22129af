/* What was found, as text and as JSON. */
#ifndef SELFTEST_REPORT_H
#define SELFTEST_REPORT_H

#include "selftest.h"

typedef struct {
    size_t n; /* classes that ran: */
    const selftest_class **class;
    selftest_page *page;
    double *seconds;
    const char *device;  /* asked for; NULL: whichever there is */
    bool opened;
    char verdict[512];
} selftest_report;

void selftest_report_opens(const selftest_report *r);
/* The last of r, which is number i of n, is not among the n that ran yet. */
void selftest_report_begins(const selftest_report *r, size_t i, size_t n);
void selftest_report_ended(selftest_report *r);
/* The verdict, and whether it is a good one. */
bool selftest_report_ends(selftest_report *r);
sd_status selftest_report_json(const selftest_report *r, const char *path);

#endif
