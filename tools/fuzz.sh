#!/bin/sh
# tools/fuzz.sh TARGET SECONDS: libFuzzer on one target of tests/fuzz (all:
# every one of them), under ASan and UBSan.  Corpora and findings stay in
# build/fuzz/out; see tests/fuzz/run_all.sh.
set -eu
cd "$(dirname "$0")/.."
t=$1 n=$2
all=$(sed -n "s/^  '\([a-z_]*\)': \['fuzz_.*/\1/p" tests/fuzz/meson.build)
[ "$t" = all ] && t=$all
for i in $t; do
    echo "$all" | grep -qx "$i" || {
        echo "fuzz: no target $i; there are: all" $all
        exit 2
    }
done
[ -f build/fuzz/build.ninja ] || CC=clang-22 meson setup build/fuzz \
    --buildtype=debugoptimized -Db_sanitize=address,undefined \
    -Db_lundef=false -Dwerror=true -Dfuzz=true -Ddevlib="$PWD/build/release" >/dev/null
ninja -C build/fuzz --quiet $(printf 'tests/fuzz/fuzz_%s ' $t)
TARGETS=$t exec tests/fuzz/run_all.sh "$n" build/fuzz/out
