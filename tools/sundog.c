/* sundog: look at, compile and run programs without a framework. */
#include "sundog.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct {
    const char *name, *usage, *help;
    sd_status (*run)(const tool_args *t);
    int least, most; /* files */
} command;

static sd_status tool_options(const tool_args *t)
{
    (void)t;
    for (int i = 0; i < SD_OPT_COUNT; i++) {
        const sd_option_info *o = &sd_option_table[i];

        printf("%s=%s\n    %s", o->name, o->dflt, o->help);
        if (o->words)
            printf(" (%s)", o->words);
        if (o->alias)
            printf("; in XLA_FLAGS --%s", o->alias);
        putchar('\n');
    }
    return NULL;
}

static const command commands[] = {
    {"opt", "[--passes=a,b] [--target=NAME] [--plan] FILE",
     "optimise and print HLO, for host:v3 if no target is named; --plan: the "
     "plan\n"
     "      instead",
     tool_opt, 1, 1},
    {"passes", "",
     "the passes: names for opt --passes and SUNDOG_DISABLE_PASSES",
     tool_passes, 0, 0},
    {"dump", "[--to=FORMAT] FILE",
     "print the program as hlo_text, or as hlo or hlo_with_config (protobuf)",
     tool_dump, 1, 1},
    {"mlir", "[--out=DIR] FILE...",
     "print programs in MLIR, not HLO, as StableHLO text; --out: one file "
     "each,\n"
     "      NAME.mlir",
     tool_mlir, 1, INT_MAX},
    {"compile", "[--target=NAME] [--out=DIR] [--time] FILE",
     "compile for a device that need not be there (`sundog devices` has the "
     "names;\n"
     "      else host:v3) and write the dump files to DIR, or here; --time: "
     "where the\n"
     "      time goes instead, on one thread",
     tool_compile, 1, 1},
    {"run", "[--seed=N] [--out=PREFIX] [--time] FILE [ARG.npy ...]",
     "compile for this machine (SUNDOG_DEVICE chooses) and run; arguments left "
     "out\n"
     "      are random; --out: results to PREFIX0.npy, ...; --time: how long "
     "its steps\n"
     "      take, instead of the results",
     tool_run, 1, INT_MAX},
    {"spmd",
     "[--stage=NAME] [--devices=N] [--check] [--random=N] [--seed=N] [FILE]",
     "print a program of several participants: import, spmd-import (calls "
     "inlined),\n"
     "      spmd-local (what each runs), optimized; --check: evaluate it uncut "
     "and cut\n"
     "      and compare; without FILE: check N random programs, from seed on",
     tool_spmd, 0, 1},
    {"devices", "", "the devices found here and those that are described",
     tool_devices, 0, 0},
    {"selftest", "[--quick] [--only=CLASS,...] [--json=FILE] [DEVICE]",
     "what the device (host, cl, ...) computes right, and how fast: a report "
     "in two\n"
     "      minutes, or 20 seconds",
     tool_selftest, 0, 1},
    {"options", "", "every setting (an environment variable) and its default",
     tool_options, 0, 0},
};

static int usage(FILE *to)
{
    fprintf(to, "usage: sundog COMMAND ...\n"
                "FILE: MLIR bytecode or text (.mlir), HLO text or protobuf\n");
    for (size_t i = 0; i < SD_COUNTOF(commands); i++)
        fprintf(to, "  sundog %s%s%s\n      %s\n", commands[i].name,
                *commands[i].usage ? " " : "", commands[i].usage,
                commands[i].help);
    fprintf(to, "  sundog --version\n");
    return to == stderr ? 2 : 0;
}

static const char *value_of(const char *arg, const char *flag)
{
    size_t n = strlen(flag);

    return !strncmp(arg, flag, n) && arg[n] == '=' ? arg + n + 1 : NULL;
}

/* strtoull takes a minus sign. */
static bool read_number(const char *v, uint64_t *out)
{
    char *end;

    errno = 0;
    *out = strtoull(v, &end, 0);
    return isdigit((unsigned char)*v) && !*end && !errno;
}

/* A flag is the command's when its usage names it: where, or NULL. */
static const char *flag_of(const command *c, const char *arg)
{
    size_t n = strcspn(arg, "=");
    const char *at = c->usage;

    while ((at = strstr(at, "--")))
        if (strcspn(at, "= ]") == n && !memcmp(at, arg, n))
            return at;
        else
            at += 2;
    return NULL;
}

/* False: the flag has no value that it can have. */
static bool parse_flag(tool_args *t, const char *arg)
{
    const char *v;

    if ((v = value_of(arg, "--target")))
        t->target = v;
    else if ((v = value_of(arg, "--passes")))
        t->passes = v;
    else if ((v = value_of(arg, "--to")))
        t->to = v;
    else if ((v = value_of(arg, "--out")))
        t->out = v;
    else if ((v = value_of(arg, "--seed")))
        return read_number(v, &t->seed);
    else if ((v = value_of(arg, "--json")))
        t->json = v;
    else if ((v = value_of(arg, "--only")))
        t->only = v;
    else if ((v = value_of(arg, "--stage")))
        t->stage = v;
    else if ((v = value_of(arg, "--devices")))
        return read_number(v, &t->devices) && t->devices &&
               t->devices < 1 << 20;
    else if ((v = value_of(arg, "--random")))
        return read_number(v, &t->random);
    else if (!strcmp(arg, "--check"))
        t->check = true;
    else if (!strcmp(arg, "--plan"))
        t->plan = true;
    else if (!strcmp(arg, "--quick"))
        t->quick = true;
    else if (!strcmp(arg, "--time"))
        t->time = true;
    else
        return false;
    return true;
}

static int usage_of(const command *c, FILE *to)
{
    fprintf(to, "usage: sundog %s%s%s\n    %s\n", c->name, *c->usage ? " " : "",
            c->usage, c->help);
    return to == stderr ? 2 : 0;
}

/* Says which word of the command line is wrong. */
static bool read_arguments(const command *c, tool_args *t, int argc,
                           char **argv)
{
    for (int i = 0; i < argc; i++) {
        const char *flag;

        if (argv[i][0] != '-') {
            argv[t->nfile++] = argv[i];
            continue;
        }
        flag = flag_of(c, argv[i]);
        if (flag && parse_flag(t, argv[i]))
            continue;
        if (flag)
            fprintf(stderr, "sundog %s: %s: %.*s is wanted\n", c->name, argv[i],
                    (int)strcspn(flag, " ]"), flag);
        else
            fprintf(stderr, "sundog %s: %s is no flag of this command\n",
                    c->name, argv[i]);
        return false;
    }
    if (t->nfile >= c->least && t->nfile <= c->most)
        return true;
    if (t->nfile < c->least)
        fprintf(stderr, "sundog %s: a FILE is wanted\n", c->name);
    else
        fprintf(stderr, "sundog %s: %s is one argument too many\n", c->name,
                argv[c->most]);
    return false;
}

/* Whoever reads the output may stop reading (`sundog options | head`). */
static int end_output(void)
{
    if (!fflush(stdout) && !ferror(stdout))
        return 0;
    if (errno != EPIPE)
        fprintf(stderr, "sundog: standard output: %s\n", strerror(errno));
    return 1;
}

static int run(const command *c, int argc, char **argv)
{
    bool bad = false;
    tool_args t = {.file = argv, .bad = &bad};
    sd_status st;

    for (int i = 0; i < argc; i++)
        if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h"))
            return usage_of(c, stdout);
    if (!read_arguments(c, &t, argc, argv))
        return usage_of(c, stderr);
    if (!(st = c->run(&t)))
        return bad;
    fflush(stdout); /* what was found comes before what was not */
    fprintf(stderr, "sundog %s: %s\n", c->name, st->message);
    sd_status_free(st);
    return 1;
}

static const command *find(const char *name)
{
    for (size_t i = 0; i < SD_COUNTOF(commands); i++)
        if (!strcmp(name, commands[i].name))
            return &commands[i];
    return NULL;
}

static bool is_one_of(const char *s, const char *a, const char *b)
{
    return !strcmp(s, a) || !strcmp(s, b);
}

static int answer(int argc, char **argv)
{
    const char *name = argc >= 2 ? argv[1] : NULL;
    const command *c;

    sd_log_init();
    if (!name)
        return usage(stderr);
    if (!strcmp(name, "help") && argc >= 3 && (c = find(argv[2])))
        return usage_of(c, stdout);
    if (!strcmp(name, "help") || is_one_of(name, "--help", "-h"))
        return usage(stdout);
    if (!strcmp(name, "--version")) {
        printf("sundog %s\n", tool_build);
        return 0;
    }
    if ((c = find(name)))
        return run(c, argc - 2, argv + 2);
    fprintf(stderr,
            "sundog: there is no command '%s'; `sundog --help` has "
            "them\n",
            name);
    return 2;
}

int main(int argc, char **argv)
{
    int status = answer(argc, argv), written = end_output();

    return status ? status : written;
}
