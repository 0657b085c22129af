/* Processes that reach each other by MPI, a false one, and what goes wrong. */
#include "fake_mpi.h"
#include "processes.h"

#include <setjmp.h>
#include <stdlib.h>

#include <cmocka.h>

#include "want_error.h"

static const gang_program *sum = &gang_programs[0];

static job *begin(int n)
{
    fake_mpi_begin(n);
    return job_begin(n);
}

/* ---- what programs make ---- */

static void test_programs(void **state)
{
    int bad = 0;

    (void)state;
    for (int n = 2; n <= MOST; n++) {
        job *j = begin(n);

        for (int i = 0; i < gang_program_count; i++)
            if (strcmp(gang_programs[i].name, "nobody meets"))
                bad += job_run(j, &gang_programs[i], false, 1);
        job_end(j);
    }
    assert_int_equal(bad, 0);
}

/* ---- who cannot join ---- */

/* Of n processes that MPI has so many of. */
static void refuses(int n, int world, const char *wrong, sd_code code,
                    const char *text)
{
    job *j;

    fake_mpi_begin(world);
    fake_mpi_spoil(wrong, false);
    j = job_try(n, "1");
    for (int i = 0; i < n; i++)
        want_refusal(j->at[i].st, code, text);
    job_end(j);
}

static void test_joining(void **state)
{
    static const char *const call[][2] = {
        {"Initialized", "MPI_Initialized: as the test says, 15"},
        {"Init_thread", "MPI_Init_thread: as the test says, 15"},
        {"begun", "MPI_Query_thread: as the test says, 15"},
        {"Comm_rank", "MPI_Comm_rank: as the test says, 15"},
        {"Comm_size", "MPI_Comm_size: as the test says, 15"},
        {"Comm_idup", "MPI_Comm_idup: as the test says, 15"},
        {"Test", "MPI_Test: as the test says, 15"},
        {"Comm_set_errhandler",
         "MPI_Comm_set_errhandler: as the test says, 15"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof call / sizeof *call; i++)
        refuses(2, 2, call[i][0], SD_UNAVAILABLE, call[i][1]);
    refuses(2, 3, NULL, SD_PRECONDITION,
            "MPI has 3 processes, the job 2, and all threads may call it");
    refuses(2, 2, "level", SD_PRECONDITION,
            "MPI has 2 processes, the job 2, and not all threads may call it");
    refuses(2, 2, "rank", SD_INVALID,
            "is to be reached at 'mpi 0', which is no rank of its own");
    refuses(3, 3, "alone", SD_DEADLINE,
            "not all of 3 processes have joined MPI within 1 s");
}

/* ---- who is lost ---- */

/* What goes wrong once all have joined ends the runs of both: a call, or a
 * piece that each has from the other (n < 0: there is none). */
static void both_end(const char *wrong, bool silent, const void *piece, int n,
                     const char *text)
{
    job *j = begin(2);
    gang *g = gang_begin(j, sum, false);

    fake_mpi_spoil(wrong, silent);
    if (n >= 0)
        fake_mpi_put_both(piece, (size_t)n);
    gang_start_all(g);
    for (int p = 0; p < 2; p++)
        gang_ends_badly(g, p, SD_UNAVAILABLE, text);
    gang_end(g);
    job_end(j);
}

static void loses(const char *wrong, bool silent, const char *text)
{
    both_end(wrong, silent, NULL, -1, text);
}

static void test_lost(void **state)
{
    (void)state;
    loses("Isend", false, "MPI_Isend: as the test says, 15");
    loses("Isend", true, "MPI_Isend: error 15");
    loses("Improbe", false, "is gone: MPI_Improbe: as the test says, 15");
    loses("Get_count", false, "is gone: MPI_Get_count: as the test says, 15");
    /* by its own hand, or since the other has said that it ends */
    loses("Mrecv", false, "is gone: ");
}

/* A process that ends lets go of who still sends to it. */
static void test_ended(void **state)
{
    job *j = begin(3);
    gang *g = gang_begin(j, sum, false);

    (void)state;
    fake_mpi_spoil("deaf", false);
    want_success(gang_start(g, 0));
    process_leave(&j->at[1]);
    process_leave(&j->at[2]);
    gang_ends_badly(g, 0, SD_UNAVAILABLE, "of 3 is gone");
    want_success(gang_start(g, 0));
    gang_ends_badly(g, 0, SD_UNAVAILABLE, "of 3 is gone");
    gang_end(g);
    job_end(j);
}

/* ---- what is no message ---- */

static void sends(const void *at, size_t n, const char *text)
{
    both_end(NULL, false, at, (int)n, text);
}

static void test_strange_pieces(void **state)
{
    uint64_t head[8] = {0}, longer[9] = {0};

    (void)state;
    sends(NULL, 0, "is gone: it has ended");
    sends(head, 4, "is gone: it sends what is no message");
    sends(head, sizeof head, "is gone: it sends what is no message");
    sends(longer, sizeof longer, "is gone: it sends what is no message");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_programs),       cmocka_unit_test(test_joining),
        cmocka_unit_test(test_lost),           cmocka_unit_test(test_ended),
        cmocka_unit_test(test_strange_pieces),
    };

    setenv("SUNDOG_WIRE", "mpi", 1);
    return cmocka_run_group_tests_name("mpi", tests, NULL, NULL);
}
