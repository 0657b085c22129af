#!/bin/sh
# leaks.sh COMMAND...: runs a test of the ASan build, once more where
# LeakSanitizer itself failed.  It stops a process's threads to look through
# its memory, and once in thousands of runs it cannot: what it prints then says
# nothing of the program.  Leaks that it finds have other words, and count.
set -u
said=$(mktemp)
trap 'rm -f "$said"' EXIT
for turn in 1 2; do
    rc=0
    "$@" 2>"$said" || rc=$?
    cat "$said" >&2
    grep -q 'LeakSanitizer has encountered a fatal error' "$said" || break
done
exit $rc
