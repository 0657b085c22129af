#!/bin/sh
# leaks.sh COMMAND...: runs a test of the ASan build, once more where
# LeakSanitizer itself failed.  gcc 12's guesses where thread-local storage
# begins; in one layout of memory of thousands it guesses wrong, and crashes
# before it has looked.  The next run has another layout.  Leaks that it finds
# are told in other words, and count.
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
