#!/bin/sh
# What a reviewer would say about form: banned calls, long files, clang-tidy.
#   tools/lint.sh [BUILD]   a debug build; build/check when not given
set -eu
cd "$(dirname "$0")/.."
bad=0
if git grep -nE '\b(strcpy|strcat|sprintf|gets|alloca|strtok)\(' -- 'src/*.c' 'plugin/*.c' 'tools/*.c'; then
    echo "lint: banned calls above"; bad=1
fi
git ls-files 'src/*.c' 'plugin/*.c' 'tools/*.c' | xargs wc -l |
    awk '$2 != "total" && $1 > 700 { print "lint: " $2 " has " $1 " lines: is there a seam?" }'
# clang's analyzer sees one file at a time: not that a failure elsewhere is
# remembered in a status, nor that two loops run over one rank.  What it then
# says of null and unset values is noise; ASan and UBSan look for those.
checks='-*,clang-analyzer-apiModeling*,clang-analyzer-core*,clang-analyzer-unix*'
checks="$checks,-clang-analyzer-core.NullDereference,-clang-analyzer-core.NonNullParamChecker"
checks="$checks,-clang-analyzer-core.CallAndMessage,-clang-analyzer-core.DivideZero,-clang-analyzer-core.BitwiseShift"
checks="$checks,-clang-analyzer-core.UndefinedBinaryOperatorResult,-clang-analyzer-core.uninitialized*"
checks="$checks,bugprone-macro-repeated-side-effects,bugprone-infinite-loop,bugprone-posix-return"
checks="$checks,bugprone-suspicious-memset-usage,bugprone-signed-char-misuse"
if command -v clang-tidy-22 >/dev/null; then
    # devlib is clang's own vector C, built for each target by its own flags
    git ls-files 'src/*.c' 'plugin/*.c' | grep -v 'devlib/dl_' |
        xargs -P "$(nproc)" -n 8 clang-tidy-22 -p "${1:-build/check}" --quiet \
            --warnings-as-errors='*' --checks="$checks" || bad=1
fi
exit $bad
