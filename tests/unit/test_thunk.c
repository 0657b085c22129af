/* thunk: a program built, printed, saved, loaded; and what is refused. */
#include "thunk.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static const libcall product = {.op = LIBCALL_MATMUL,
                                .matmul = {.lhs = SD_F32,
                                           .rhs = SD_F32,
                                           .result = SD_F32,
                                           .batch = 1,
                                           .m = 2,
                                           .n = 2,
                                           .k = 2,
                                           .rhs_transposed = true,
                                           .activation = LIBCALL_RELU,
                                           .alpha = 0.5,
                                           .beta = 1}};

static thunk_program *example(void)
{
    static const int64_t dims[] = {4};
    device_desc d;
    thunk_program *p;
    thunk *steps, *body;
    float c = 1.5f;

    assert_true(device_desc_of_name("host:v4", &d));
    p = thunk_program_create("jit_f", &d);
    p->nparam = p->noutput = 1;
    p->param = sd_arena_new(p->arena, thunk_type);
    p->output = sd_arena_new(p->arena, thunk_type);
    *p->param = *p->output = (thunk_type){SD_F32, 1, dims, 16, NULL};
    p->output->memory = "pinned_host";
    p->donatable = sd_arena_new(p->arena, bool);
    p->donatable[0] = true;
    thunk_add_buffer(
        p, (thunk_buffer){.kind = THUNK_B_PARAM, .bytes = 16, .alias = -1});
    thunk_add_buffer(p, (thunk_buffer){.kind = THUNK_B_OUTPUT,
                                       .bytes = 16,
                                       .alias = 0,
                                       .alias_must = true});
    thunk_add_buffer(p, (thunk_buffer){.kind = THUNK_B_CONST,
                                       .bytes = 4,
                                       .alias = -1,
                                       .at = thunk_add_constant(p, &c, 4)});
    p->temp_bytes = 64;
    thunk_add_buffer(
        p, (thunk_buffer){.kind = THUNK_B_TEMP, .bytes = 64, .alias = -1});
    p->kernel = sd_arena_new(p->arena, thunk_kernel);
    p->nkernel = 1;
    p->kernel[0] =
        (thunk_kernel){.symbol = "add",
                       .binary = thunk_add_binary(p, THUNK_BIN_X86, "code", 4),
                       .nslot = 2,
                       .tiles = 3,
                       .group = 1,
                       .flops = 4,
                       .bytes = 32};
    body = sd_arena_new(p->arena, thunk);
    *body = (thunk){.kind = THUNK_KERNEL,
                    .name = "add.1",
                    .op_name = "f/add",
                    .narg = 2,
                    .trip = -1};
    body->arg = sd_arena_array(p->arena, thunk_slice, 2);
    body->arg[0] = (thunk_slice){0, 0, 16};
    body->arg[1] = (thunk_slice){3, 16, 16};
    steps = sd_arena_array(p->arena, thunk, 3);
    steps[0] = (thunk){.kind = THUNK_WHILE,
                       .name = "while.2",
                       .narg = 1,
                       .nseq = 2,
                       .trip = 5};
    steps[0].arg = sd_arena_new(p->arena, thunk_slice);
    steps[0].arg[0] = (thunk_slice){3, 0, 1};
    steps[0].seq = sd_arena_array(p->arena, thunk_seq, 2);
    steps[0].seq[1] = (thunk_seq){body, 1};
    steps[1] =
        (thunk){.kind = THUNK_COPY, .name = "copy.3", .narg = 2, .trip = -1};
    steps[1].arg = sd_arena_array(p->arena, thunk_slice, 2);
    steps[1].arg[0] = (thunk_slice){3, 16, 16};
    steps[1].arg[1] = (thunk_slice){1, 0, 16};
    steps[2] =
        (thunk){.kind = THUNK_LIBCALL, .name = "dot.4", .narg = 3, .trip = -1};
    steps[2].call = sd_arena_copy(p->arena, &product, sizeof product);
    steps[2].arg = sd_arena_array(p->arena, thunk_slice, 3);
    for (int i = 0; i < 3; i++)
        steps[2].arg[i] = (thunk_slice){3, 16 * (uint64_t)i, 16};
    p->seq = (thunk_seq){steps, 3};
    thunk_add_section(p, "hlo", "HloModule f", 11);
    thunk_add_section(p, "options", "", 0);
    p->fingerprint = 0x123456789abcdef0u;
    return p;
}

static sd_buf printed(const thunk_program *p)
{
    sd_buf b = {0};

    thunk_print(&b, p);
    assert_false(b.oom);
    return b;
}

static sd_bytes bytes(const sd_buf *b)
{
    return (sd_bytes){(const uint8_t *)b->at, b->len};
}

static void a_program_reads_as_a_list_of_steps(void **state)
{
    thunk_program *p = example();
    sd_buf b = printed(p);

    (void)state;
    assert_null(thunk_verify(p));
    assert_string_equal(
        b.at, "program jit_f for host:v4\n"
              "param 0: f32[4], 16 bytes, donatable\n"
              "output 0: f32[4], 16 bytes, memory pinned_host\n"
              "buffer 0: param 0, 16 bytes\n"
              "buffer 1: output 0 in param 0 (must), 16 bytes\n"
              "buffer 2: constants at 0, 4 bytes\n"
              "buffer 3: temp, 64 bytes\n"
              "temp 64 bytes, constants 4 bytes, 1 kernels, 1 binaries\n"
              "000: while while.2 trip=5 (b3[0 +1])\n"
              "  condition:\n"
              "  body:\n"
              "    000: kernel add.1 add tiles=3 group=1 (b0, b3[16 +16]) "
              "op_name=\"f/add\"\n"
              "001: copy copy.3 (b3[16 +16], b1)\n"
              "002: libcall dot.4 matmul {lhs=f32, rhs=f32, result=f32, "
              "batch=1, m=2, n=2, k=2, rhs_transposed, bias=0, activation=2, "
              "alpha=0.5, beta=1} (b3[0 +16], b3[16 +16], b3[32 +16])\n");
    sd_buf_finish(&b);
    thunk_program_release(p);
}

/* The example of four participants, whose copy is of its number, and whose
 * library call a collective of that kind and groups. */
static thunk_program *several(thunk_collective_kind kind, int64_t ngroup,
                              int64_t size, const int64_t *member)
{
    thunk_collective c = {kind, 2, 4, ngroup, size, member};
    thunk_program *p = example();
    thunk *copy = &p->seq.at[1], *t = &p->seq.at[2];

    p->npartition = 4;
    copy->arg[0] = (thunk_slice){
        thunk_add_buffer(p, (thunk_buffer){.kind = THUNK_B_IDS,
                                           .bytes = THUNK_IDS_BYTES,
                                           .alias = -1}),
        4, 4};
    copy->arg[1].bytes = 4;
    *t = (thunk){.kind = THUNK_COLLECTIVE,
                 .name = "together.5",
                 .narg = 2,
                 .trip = -1,
                 .arg = t->arg};
    t->arg[0] = (thunk_slice){3, 0, 8};
    t->arg[1] = (thunk_slice){3, 16, 16};
    thunk_set_collective(p, t, &c);
    return p;
}

static const int64_t pairs[] = {0, 2, 1, 3};

static void participants_read_as_groups(void **state)
{
    static const int64_t uneven[] = {0, 2, 1, -1};
    thunk_program *p = several(THUNK_COLL_GATHER, 2, 2, uneven);
    sd_buf b = printed(p);

    (void)state;
    assert_null(thunk_verify(p));
    assert_non_null(strstr(b.at, "buffer 4: ids, 8 bytes\n"));
    assert_non_null(
        strstr(b.at, "002: collective together.5 all-gather outer=2 "
                     "block=4 groups={{0,2},{1}} (b3[0 +8], b3[16 +16])"));
    sd_buf_finish(&b);
    thunk_program_release(p);
}

/* A kernel that reads what its only member has, and writes to b3. */
static thunk_program *of_peers(thunk_collective_kind kind, int64_t outer,
                               const int64_t *member)
{
    thunk_collective c = {kind, outer, 8, 4, 1, member};
    thunk_program *p = several(THUNK_COLL_GATHER, 2, 2, pairs);
    thunk *t = &p->seq.at[2];

    thunk_set_collective(p, t, &c);
    t->arg[0].bytes = 8 * (uint64_t)outer;
    t->kernel = 0;
    return p;
}

static const int64_t alone[] = {0, 1, 2, 3};

static void a_kernel_reads_what_members_have(void **state)
{
    thunk_program *p = of_peers(THUNK_COLL_ALL_TO_ALL, 1, alone);
    sd_buf b = printed(p);

    (void)state;
    assert_null(thunk_verify(p));
    assert_non_null(strstr(
        b.at, "002: collective together.5 add of all-to-all outer=1 "
              "block=8 groups={{0},{1},{2},{3}} (b3[0 +8], b3[16 +16])"));
    sd_buf_finish(&b);
    thunk_program_release(p);
}

/* The collective of several participants, beside its copy. */
static thunk_program *beside(void)
{
    thunk_program *p = several(THUNK_COLL_GATHER, 2, 2, pairs);
    thunk_seq *seq = sd_arena_new(p->arena, thunk_seq);
    thunk *t = sd_arena_array(p->arena, thunk, 3), copy = p->seq.at[1];

    *seq = (thunk_seq){sd_arena_copy(p->arena, &p->seq.at[2], sizeof *t), 1};
    t[0] = (thunk){.kind = THUNK_BESIDE,
                   .name = "together.5",
                   .kernel = -1,
                   .trip = -1,
                   .nseq = 1,
                   .seq = seq};
    t[1] = copy;
    t[2] = (thunk){.kind = THUNK_JOIN, .name = "end", .kernel = -1, .trip = -1};
    p->seq = (thunk_seq){t, 3};
    return p;
}

static void comes_back_whole(thunk_program *p)
{
    thunk_program *q;
    sd_buf saved = {0}, again = {0}, text = printed(p), back;

    assert_null(thunk_save(p, &saved));
    assert_null(thunk_load(bytes(&saved), &q));
    back = printed(q);
    assert_string_equal(back.at, text.at);
    assert_null(thunk_save(q, &again));
    assert_int_equal(again.len, saved.len);
    assert_memory_equal(again.at, saved.at, saved.len);
    assert_int_equal((uintptr_t)q->constants % 64, 0);
    assert_memory_equal(thunk_find_section(q, "hlo")->data, "HloModule f", 11);
    assert_null(thunk_find_section(q, "none"));
    assert_ptr_equal(thunk_program_retain(q), q);
    thunk_program_release(q);
    thunk_program_release(q);
    thunk_program_release(p);
    sd_buf_finish(&saved);
    sd_buf_finish(&again);
    sd_buf_finish(&text);
    sd_buf_finish(&back);
}

static void a_saved_program_comes_back_whole(void **state)
{
    (void)state;
    comes_back_whole(example());
    comes_back_whole(several(THUNK_COLL_GATHER, 2, 2, pairs));
    comes_back_whole(of_peers(THUNK_COLL_GATHER, 1, alone));
    comes_back_whole(beside());
}

/* The sum is set right again after each damage, so that the reader itself is
 * tried: it may refuse, or load something that verifies, and nothing else. */
static void is_refused_or_sound(thunk_program *p)
{
    thunk_program *q;
    sd_buf good = {0};
    size_t head = 8 + 4 + 8 + 8;
    sd_status st;

    assert_null(thunk_save(p, &good));
    for (size_t cut = 0; cut < good.len; cut++) {
        st = thunk_load((sd_bytes){(uint8_t *)good.at, cut}, &q);
        assert_non_null(st);
        sd_status_free(st);
    }
    for (size_t i = 0; i < good.len; i++)
        for (int bit = 0; bit < 8; bit += 7) {
            uint8_t *at = (uint8_t *)good.at;
            uint64_t sum, was;

            memcpy(&was, at + 20, 8);
            at[i] ^= (uint8_t)(1 << bit);
            if (i >= head) {
                sum = sd_hash(at + head, good.len - head, THUNK_VERSION);
                memcpy(at + 20, &sum, 8);
            }
            st = thunk_load(bytes(&good), &q);
            if (i < head)
                assert_non_null(st);
            if (!st) {
                assert_null(thunk_verify(q));
                thunk_program_release(q);
            }
            sd_status_free(st);
            at[i] ^= (uint8_t)(1 << bit);
            memcpy(at + 20, &was, 8);
        }
    assert_null(thunk_load(bytes(&good), &q));
    thunk_program_release(q);
    thunk_program_release(p);
    sd_buf_finish(&good);
}

static void damaged_programs_are_refused_or_sound(void **state)
{
    (void)state;
    is_refused_or_sound(example());
    is_refused_or_sound(several(THUNK_COLL_GATHER, 2, 2, pairs));
    is_refused_or_sound(of_peers(THUNK_COLL_GATHER, 1, alone));
}

static void refused(thunk_program *p, const char *why)
{
    sd_status st = thunk_verify(p);

    assert_non_null(st);
    if (!strstr(st->message, why))
        fail_msg("'%s' does not say '%s'", st->message, why);
    sd_status_free(st);
    thunk_program_release(p);
}

static void what_is_beside_is_joined(void **state)
{
    thunk_program *p = beside();

    (void)state;
    assert_null(thunk_verify(p));
    p->seq.n = 2;
    refused(p, "nothing waits for what is beside in together.5");
    p = beside();
    p->seq.at[0].seq[0].at[0] = p->seq.at[1];
    refused(p, "its step 0 is no collective and no kernel");
}

static void a_wrong_table_is_named(void **state)
{
    static const int64_t two[] = {2};
    thunk_program *p;

    (void)state;
    (p = example())->param[0].dtype = SD_TUPLE;
    refused(p, "parameter 0 has element type");
    (p = example())->param[0].bytes = 12;
    refused(p, "its shape");
    (p = example())->buffer[1].kind = THUNK_B_PARAM;
    refused(p, "second one");
    (p = example())->buffer[2].at = UINT64_MAX;
    refused(p, "constants");
    (p = example())->temp_bytes = 63;
    refused(p, "temp slab");
    (p = example())->nbuffer = 1;
    refused(p, "output 0 has no buffer");
    p = example();
    p->output[0].dim = two;
    p->output[0].bytes = p->buffer[1].bytes = 8;
    refused(p, "output 0 of 8 bytes is in parameter 0 of 16");
    (p = example())->kernel[0].binary = 1;
    refused(p, "binary 1 of 1");
    (p = example())->kernel[0].symbol = "";
    refused(p, "kernel 0 has no name");
    (p = example())->kernel[0].loop = true;
    refused(p, "is a loop of");
}

static void a_wrong_collective_is_named(void **state)
{
    static const int64_t twice[] = {0, 2, 2, 3}, fifth[] = {0, 1, 2, 4};
    int64_t number[] = {9, 2, 4, 2, 2, 0, 2, 1, 3};
    thunk_program *p;

    (void)state;
    refused(several(THUNK_COLL_GATHER, 2, 2, twice),
            "participant 2 stands twice");
    refused(several(THUNK_COLL_GATHER, 2, 2, fifth), "participant 4 of 4");
    refused(several(THUNK_COLL_PERMUTE, 1, 4, pairs), "pairs of 4");
    refused(several(THUNK_COLL_ALL_TO_ALL, 2, 2, pairs),
            "slice 0 of 8 bytes is not that of an all-to-all of 2 x 4 bytes "
            "among 2");
    (p = several(THUNK_COLL_GATHER, 2, 2, pairs))->npartition = 3;
    refused(p, "participant 3 of 3");
    (p = several(THUNK_COLL_GATHER, 2, 2, pairs))->seq.at[2].narg = 1;
    refused(p, "1 slices, not 2");
    p = several(THUNK_COLL_GATHER, 2, 2, pairs);
    p->seq.at[2].arg[1].offset = 4;
    refused(p, "its operand and its result overlap");
    p = several(THUNK_COLL_GATHER, 2, 2, pairs);
    p->seq.at[2].attr = number;
    refused(p, "a collective of no kind");
    p = several(THUNK_COLL_GATHER, 2, 2, pairs);
    number[0] = THUNK_COLL_GATHER;
    number[3] = 3;
    p->seq.at[2].attr = number;
    refused(p, "3 groups of 2 in 4 numbers");
    (p = several(THUNK_COLL_GATHER, 2, 2, pairs))->buffer[4].bytes = 4;
    refused(p, "buffer 4 of a participant's numbers has 4 bytes");
    (p = several(THUNK_COLL_GATHER, 2, 2, pairs))->nreplica = 1 << 20;
    refused(p, "1048576 replicas, 4 partitions");
}

static void a_wrong_kernel_of_members_is_named(void **state)
{
    static const int64_t few[] = {0, 1, 2, -1};
    thunk_program *p;

    (void)state;
    (p = of_peers(THUNK_COLL_GATHER, 1, alone))->seq.at[2].kernel = 1;
    refused(p, "kernel 1 of 1, 2 slices");
    (p = of_peers(THUNK_COLL_GATHER, 1, alone))->kernel[0].nslot = 2;
    p->seq.at[2].narg = 1;
    refused(p, "kernel 0 of 1, 1 slices");
    p = of_peers(THUNK_COLL_GATHER, 1, alone);
    p->seq.at[2].narg = 3;
    p->seq.at[2].arg = sd_arena_array(p->arena, thunk_slice, 3);
    refused(p, "2 slices and 1 members for 2 slots");
    refused(of_peers(THUNK_COLL_GATHER, 2, alone),
            "what a kernel is to read in all-gather of 2 x 8 bytes is of 4 "
            "participants of 4");
    refused(of_peers(THUNK_COLL_BROADCAST, 1, alone),
            "is to read in broadcast");
    refused(of_peers(THUNK_COLL_GATHER, 1, few), "of 3 participants of 4");
    p = of_peers(THUNK_COLL_GATHER, 1, alone);
    p->seq.at[2].arg[0].bytes = 4;
    refused(p, "slice 0 of 4 bytes is not that of an all-gather of 1 x 8");
}

static void two_outputs_in_one_parameter_are_refused(void **state)
{
    thunk_program *p = example();
    thunk_buffer second = p->buffer[1];

    (void)state;
    second.index = 1;
    thunk_add_buffer(p, second);
    p->output = sd_arena_array(p->arena, thunk_type, 2);
    p->output[0] = p->output[1] = p->param[0];
    p->noutput = 2;
    refused(p, "two outputs are in parameter 0");
}

static thunk *custom(thunk_program **p, const int64_t *attr, int nattr)
{
    thunk *t = &(*p = example())->seq.at[1];

    t->kind = THUNK_CUSTOM;
    t->target = "f";
    t->attr = attr;
    t->nattr = nattr;
    return t;
}

/* The example with so many rows in its library call. */
static thunk_program *with_rows(int64_t m)
{
    thunk_program *p = example();
    libcall *c = sd_arena_copy(p->arena, &product, sizeof product);

    c->matmul.m = m;
    p->seq.at[2].call = c;
    return p;
}

static void a_wrong_step_is_named(void **state)
{
    static const int64_t three_operands[] = {3, 11, 1, 4, 11, 1, 4};
    static const int64_t two_and_more[] = {1, 11, 1, 4, 11, 1, 4, 11};
    thunk_program *p;
    thunk *t;

    (void)state;
    (p = example())->seq.at[1].arg[0].offset = 60;
    refused(p, "not inside buffer 3");
    (p = example())->seq.at[1].arg[1].buffer = 9;
    refused(p, "buffer 9 of 4");
    (p = example())->seq.at[1].arg[1].bytes = 8;
    refused(p, "copy of 16 bytes to 8");
    (p = example())->kernel[0].nslot = 3;
    refused(p, "2 slices for 3 slots");
    (p = example())->seq.at[0].nseq = 1;
    refused(p, "1 sequences, not 2");
    (p = example())->seq.at[2].call = NULL;
    refused(p, "a library call of nothing");
    (p = example())->seq.at[2].narg = 2;
    refused(p, "matmul: 2 slices, not 3");
    (p = example())->seq.at[2].arg[1].bytes = 15;
    refused(p, "slice 1 of 15 bytes is too small for 4 elements of f32");
    refused(with_rows(INT64_MAX), "of more elements");
    refused(with_rows(-1), "matmul: m cannot be -1");
    (p = example())->seq.at[0].kind = THUNK_COND;
    p->seq.at[0].arg[0].bytes = 2;
    refused(p, "2 branches, chosen by 2 bytes");
    t = &(p = example())->seq.at[1];
    t->kind = THUNK_SEND;
    t->narg = 1;
    refused(p, "0 numbers where one channel should stand");
    (p = example())->seq.at[1].kind = THUNK_CUSTOM;
    refused(p, "a custom-call of no target");
    custom(&p, two_and_more, 8);
    refused(p, "types of more than 2 slices");
    custom(&p, two_and_more, 4);
    refused(p, "no type of slice 1");
    custom(&p, three_operands, 7);
    refused(p, "how many of 2 slices are operands");
    t = custom(&p, two_and_more, 7);
    t->arg[0].bytes = 12;
    refused(p, "slice 0 of 12 bytes is of type f32, 16 bytes");
}

static void says(sd_status st, const char *what)
{
    assert_non_null(st);
    assert_string_equal(st->message, what);
    assert_int_equal(st->code, SD_INVALID);
    sd_status_free(st);
}

static void library_calls_are_words_and_back(void **state)
{
    int64_t word[LIBCALL_WORDS];
    int n = libcall_words(&product, word);
    libcall c;

    (void)state;
    assert_null(libcall_of_words(LIBCALL_MATMUL, word, n, &c));
    assert_true(libcall_equal(&c, &product));
    c.matmul.beta = 2;
    assert_false(libcall_equal(&c, &product));
    says(libcall_of_words(99, word, n, &c), "library call 99 of 16");
    says(libcall_of_words(LIBCALL_MATMUL, word, 3, &c),
         "matmul: 3 numbers, not 14");
    word[0] = SD_TUPLE;
    says(libcall_of_words(LIBCALL_MATMUL, word, n, &c),
         "matmul: lhs cannot be 30");
}

/* What each operation takes, and that the table of fields fits. */
static void library_calls_know_their_memory(void **state)
{
    (void)state;
    for (int op = 0; op < LIBCALL_COUNT; op++) {
        libcall c = {.op = (libcall_op)op}, d;
        int64_t word[LIBCALL_WORDS];
        int n = libcall_words(&c, word);
        libcall_args a;

        assert_true(n <= LIBCALL_WORDS);
        for (int i = 0; i < n; i++)
            word[i] = 1;
        word[op == LIBCALL_CONV ? 1 : 0] = SD_F32;
        assert_null(libcall_of_words(op, word, n, &d));
        a = libcall_args_of(&d);
        assert_false(a.overflow);
        assert_true(a.noperand > 0 && a.n > a.noperand);
        assert_true(libcall_flops(&d) >= 0);
    }
}

/* A loop in a loop in a loop: saved in that depth as well. */
static void deep_programs_are_refused(void **state)
{
    thunk_program *p = example(), *q;
    sd_buf saved = {0};
    sd_status st;

    (void)state;
    for (int i = 0; i < 70; i++) {
        thunk *t = sd_arena_new(p->arena, thunk);

        *t =
            (thunk){.kind = THUNK_COND, .name = "branch", .narg = 1, .nseq = 1};
        t->arg = sd_arena_new(p->arena, thunk_slice);
        *t->arg = (thunk_slice){3, 0, 1};
        t->seq = sd_arena_new(p->arena, thunk_seq);
        *t->seq = p->seq;
        p->seq = (thunk_seq){t, 1};
    }
    assert_null(thunk_save(p, &saved));
    st = thunk_load(bytes(&saved), &q);
    assert_non_null(st);
    assert_non_null(strstr(st->message, "sequences nested less deeply"));
    sd_status_free(st);
    sd_buf_finish(&saved);
    refused(p, "sequences nest deeper than 64");
}

enum { HEAD = 28 }; /* bytes before the program's name, its sum among them */

/* The sum is made to be that of the changed bytes, which then are refused. */
static void is_refused_as_changed(sd_buf *saved, const char *says)
{
    uint64_t sum = sd_hash(saved->at + HEAD, saved->len - HEAD, THUNK_VERSION);
    thunk_program *q;
    sd_status st;

    memcpy(saved->at + 20, &sum, 8);
    st = thunk_load(bytes(saved), &q);
    assert_non_null(st);
    assert_non_null(strstr(st->message, says));
    sd_status_free(st);
    sd_buf_finish(saved);
}

/* The name's length is made to take in the first byte of what follows it. */
static void a_device_name_that_is_too_long_is_refused(void **state)
{
    thunk_program *p = example();
    sd_buf saved = {0};
    uint8_t *at;

    (void)state;
    memset(p->device.name, 'x', sizeof p->device.name - 1);
    assert_null(thunk_save(p, &saved));
    at = (uint8_t *)saved.at + HEAD + 4 + strlen(p->name) + 4;
    at[0] = sizeof p->device.name;
    at[4 + sizeof p->device.name - 1] = 'x';
    is_refused_as_changed(&saved, "a shorter name");
    thunk_program_release(p);
}

static void a_program_without_a_name_is_refused(void **state)
{
    thunk_program *p = example();
    sd_buf saved = {0};

    (void)state;
    assert_null(thunk_save(p, &saved));
    memset(saved.at + HEAD, 0xff, 4);
    is_refused_as_changed(&saved, "expected a name");
    thunk_program_release(p);
}

static void builders_grow(void **state)
{
    device_desc d = *device_desc_at(0);
    thunk_program *p = thunk_program_create("grow", &d);
    uint8_t blob[100];

    (void)state;
    for (int i = 0; i < 300; i++) {
        char name[16];

        memset(blob, i, sizeof blob);
        assert_int_equal(thunk_add_buffer(p, (thunk_buffer){.index = i}), i);
        assert_int_equal(thunk_add_constant(p, blob, 100), 128 * i);
        assert_int_equal(thunk_add_binary(p, THUNK_BIN_X86, blob, 100), i);
        snprintf(name, sizeof name, "s%d", i % 150);
        thunk_add_section(p, name, blob, 1);
    }
    assert_int_equal(p->nsection, 150);
    for (int i = 0; i < 300; i++) {
        assert_int_equal(p->buffer[i].index, i);
        assert_int_equal(p->constants[128 * i + 99], (uint8_t)i);
        assert_int_equal(p->binary[i].data[0], (uint8_t)i);
    }
    assert_int_equal(*thunk_find_section(p, "s7")->data, 157);
    thunk_program_release(p);
    thunk_program_release(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_program_reads_as_a_list_of_steps),
        cmocka_unit_test(participants_read_as_groups),
        cmocka_unit_test(a_kernel_reads_what_members_have),
        cmocka_unit_test(what_is_beside_is_joined),
        cmocka_unit_test(a_wrong_collective_is_named),
        cmocka_unit_test(a_wrong_kernel_of_members_is_named),
        cmocka_unit_test(a_saved_program_comes_back_whole),
        cmocka_unit_test(damaged_programs_are_refused_or_sound),
        cmocka_unit_test(a_wrong_table_is_named),
        cmocka_unit_test(two_outputs_in_one_parameter_are_refused),
        cmocka_unit_test(a_wrong_step_is_named),
        cmocka_unit_test(library_calls_are_words_and_back),
        cmocka_unit_test(library_calls_know_their_memory),
        cmocka_unit_test(deep_programs_are_refused),
        cmocka_unit_test(a_device_name_that_is_too_long_is_refused),
        cmocka_unit_test(a_program_without_a_name_is_refused),
        cmocka_unit_test(builders_grow),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
