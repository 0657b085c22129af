#!/bin/sh
# Does this tree compile as another one does?  Every program of tests/plan for
# five devices, by build/release's tool and by BASE, the tool of another build
# (libsundog-compiler.so lies in the folder above each): the MD5 of each file
# that `sundog compile` writes, which are HLO after every pass, the plan, IR and
# code.  What differs is listed, and nothing should where only the source's shape
# has changed.
set -eu
cd "$(dirname "$0")/.."
ours=build/release/tools/sundog
out=build/same

# A line a file, "MD5 target/program/file"; what the tool says is one of them,
# for programs that it refuses.
compile() { # tool program target
    d=$3/$(basename "$2" .hlo)
    mkdir -p "$out/tmp/$d"
    "$1" compile --target="$3" --out="$out/tmp/$d" "$2" >$out/said 2>&1 || :
    mv $out/said "$out/tmp/$d"
    (cd $out/tmp && md5sum "$d"/*)
    rm -r "$out/tmp/$d"
}
sums() { # tool list
    "$1" compile --out=$out/tmp tests/plan/abs_sqrt.hlo >/dev/null
    for t in host:v4 cl:cpu cl:pvc cl:dg2-g10 cuda:sm_90; do
        for p in tests/plan/*.hlo; do
            compile "$1" "$p" $t
        done
    done >$out/list
    mv $out/list "$2"
}

[ -x "${BASE:-}" ] || { echo "same: BASE=path: the tools/sundog of another build"; exit 2; }
rm -rf $out/tmp
mkdir -p $out/tmp
# The list of a base is made once for the same programs and settings.
base=$out/$( (cat "$BASE" "$(dirname "$BASE")/../libsundog-compiler.so" tests/plan/*.hlo
    env | grep ^SUNDOG_ || :) | md5sum | cut -c 1-32)
[ -f "$base" ] || sums "$BASE" "$base"
sums $ours $out/ours
if diff "$base" $out/ours >$out/diff; then
    echo "same: all $(wc -l <$out/ours) files"
else
    awk '/^[<>]/ {print $3}' $out/diff | sort -u
    echo "same: these differ, or one of the two has not got them"
    exit 1
fi
