/* sundog: look at, compile and run programs without a framework. */
#include "sundog.h"

#include <stdio.h>
#include <stdlib.h>

typedef struct {
    const char *name, *usage, *help;
    sd_status (*run)(const tool_args *t);
    int min_files;
} command;

static const command commands[] = {
    {"opt", "[--passes=a,b] [--target=NAME] [--plan] FILE",
     "optimise and print HLO; --plan: the plan instead", tool_opt, 1},
    {"dump", "[--to=FORMAT] FILE",
     "print the program as hlo_text, or as hlo or hlo_with_config (protobuf)",
     tool_dump, 1},
    {"mlir", "[--out=DIR] FILE...",
     "print programs as StableHLO text; --out: one file each, NAME.mlir",
     tool_mlir, 1},
    {"compile", "--target=NAME [--out=DIR] FILE",
     "compile for a device that need not be there; write the dump files",
     tool_compile, 1},
    {"run", "[--seed=N] [--out=PREFIX] FILE [ARG.npy ...]",
     "compile for this machine and run; arguments left out are random",
     tool_run, 1},
    {"devices", "", "the devices found here and those that are described",
     tool_devices, 0},
};

static int usage(FILE *to)
{
    fprintf(to, "usage: sundog COMMAND ...   FILE: MLIR bytecode or text "
                "(.mlir), HLO text "
                "or protobuf\n");
    for (size_t i = 0; i < SD_COUNTOF(commands); i++)
        fprintf(to, "  sundog %s %s\n      %s\n", commands[i].name,
                commands[i].usage, commands[i].help);
    fprintf(to, "  sundog options\n      every setting and its default\n");
    return to == stderr ? 2 : 0;
}

static int options(void)
{
    for (int i = 0; i < SD_OPT_COUNT; i++) {
        const sd_option_info *o = &sd_option_table[i];

        printf("%-22s %-26s default %-6s %s\n", o->name,
               o->alias ? o->alias : "", *o->dflt ? o->dflt : "(empty)",
               o->help);
    }
    return 0;
}

static const char *value_of(const char *arg, const char *flag)
{
    size_t n = strlen(flag);

    return !strncmp(arg, flag, n) && arg[n] == '=' ? arg + n + 1 : NULL;
}

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
        t->seed = strtoull(v, NULL, 0);
    else if (!strcmp(arg, "--plan"))
        t->plan = true;
    else
        return false;
    return true;
}

static int run(const command *c, int argc, char **argv)
{
    tool_args t = {.file = argv};
    sd_status st;

    for (int i = 0; i < argc; i++) {
        if (argv[i][0] != '-') {
            argv[t.nfile++] = argv[i];
        } else if (!parse_flag(&t, argv[i])) {
            fprintf(stderr, "sundog %s: unknown flag %s\n", c->name, argv[i]);
            return usage(stderr);
        }
    }
    if (t.nfile < c->min_files)
        return usage(stderr);
    st = c->run(&t);
    if (!st)
        return 0;
    fprintf(stderr, "sundog %s: %s\n", c->name, st->message);
    sd_status_free(st);
    return 1;
}

int main(int argc, char **argv)
{
    sd_log_init();
    if (argc >= 2 && (!strcmp(argv[1], "--help") || !strcmp(argv[1], "help")))
        return usage(stdout);
    if (argc >= 2 && !strcmp(argv[1], "options"))
        return options();
    for (size_t i = 0; argc >= 2 && i < SD_COUNTOF(commands); i++)
        if (!strcmp(argv[1], commands[i].name))
            return run(&commands[i], argc - 2, argv + 2);
    return usage(stderr);
}
