#!/bin/sh
# tests/fuzz/pack.sh BINARIES OUT: the fuzz targets of the folder BINARIES, the
# libraries that a bare Debian or Ubuntu lacks, corpora and run_all.sh in one
# folder, to be carried to another machine and run there:
#
#   OUT/run_all.sh 1800 RESULTS OUT 2
set -eu
here=$(cd "$(dirname "$0")" && pwd)
bin=$1 out=$2
mkdir -p "$out/lib"
for f in "$bin"/fuzz_*; do
    [ -f "$f" ] && cp "$f" "$out/"
done
ldd "$out"/fuzz_bytecode | sed -n 's/.*=> \(\/[^ ]*\) .*/\1/p' |
    grep -Ev '/lib(c|m|dl|rt|resolv|pthread|stdc\+\+|gcc_s)\.so' |
    xargs -I{} cp -L {} "$out/lib/"
cp -r "$here/corpus" "$here/found" "$here/run_all.sh" "$out/"
du -sh "$out"
