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
command -v clang-tidy-22 >/dev/null || { echo "lint: clang-tidy-22 is missing: apt-get install clang-tidy-22"; exit 1; }
# devlib is clang's own vector C, built for each target by its own flags;
# glibc.c defines functions of glibc's headers
git ls-files 'src/*.c' 'plugin/*.c' 'tools/*.c' | grep -v -e 'devlib/dl_' -e 'src/glibc.c' |
    xargs -P "$(nproc)" -n 8 clang-tidy-22 -p "${1:-build/check}" --quiet --warnings-as-errors='*' || bad=1
exit $bad
