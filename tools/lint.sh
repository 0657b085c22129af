#!/bin/sh
# What a reviewer would say about form: banned calls, long files, clang-tidy.
set -eu
cd "$(dirname "$0")/.."
bad=0
if git grep -nE '\b(strcpy|strcat|sprintf|gets|alloca|strtok)\(' -- 'src/*.c' 'plugin/*.c' 'tools/*.c'; then
    echo "lint: banned calls above"; bad=1
fi
git ls-files 'src/*.c' 'plugin/*.c' 'tools/*.c' | xargs wc -l |
    awk '$2 != "total" && $1 > 700 { print "lint: " $2 " has " $1 " lines: is there a seam?" }'
if command -v clang-tidy-22 >/dev/null; then
    git ls-files 'src/*.c' 'plugin/*.c' | xargs clang-tidy-22 -p build/check \
        --quiet --warnings-as-errors='*' \
        --checks='-*,clang-analyzer-core*,clang-analyzer-unix*,bugprone-sizeof*,bugprone-macro-*' ||
        bad=1
fi
exit $bad
