#!/bin/sh
# tools/fuzz.sh TARGET SECONDS: libFuzzer over tests/fuzz/fuzz_TARGET.c, under
# ASan and UBSan, from the corpus in tests/fuzz/corpus/TARGET.
set -eu
cd "$(dirname "$0")/.."
t=$1 n=$2
[ -f "tests/fuzz/fuzz_$t.c" ] || {
    echo "fuzz: no target $t; there are:"
    ls tests/fuzz | sed -n 's/^fuzz_\(.*\)\.c$/  \1/p'
    exit 2
}
[ -f build/fuzz/build.ninja ] || CC=clang-22 meson setup build/fuzz \
    --buildtype=debugoptimized -Db_sanitize=address,undefined -Db_lundef=false \
    -Dfuzz=true >/dev/null
ninja -C build/fuzz --quiet "tests/fuzz/fuzz_$t"
mkdir -p "build/fuzz/corpus_$t"
exec "build/fuzz/tests/fuzz/fuzz_$t" -max_total_time="$n" -rss_limit_mb=2048 \
    -timeout=10 "build/fuzz/corpus_$t" "tests/fuzz/corpus/$t"
