#!/bin/sh
# tools/fuzz_cover.sh [TARGET...]: per fuzz target, how many lines of each room
# its inputs reach: those of tests/fuzz, and what build/fuzz/out has found
# beside them; then all of them together.  A target counts the files that are
# linked into it.  By clang's source coverage, in a build of its own.
set -eu
cd "$(dirname "$0")/.."
b=build/cover
flags="-fprofile-instr-generate -fcoverage-mapping"
[ -f $b/build.ninja ] || CC=clang-22 CFLAGS=$flags LDFLAGS=$flags \
    meson setup $b --buildtype=debugoptimized -Db_ndebug=true >/dev/null
targets=${*:-$(sed -n "s/^  '\([a-z_]*\)': \['fuzz_.*/\1/p" \
    tests/fuzz/meson.build)}
ninja -C $b --quiet $(printf 'tests/fuzz/replay_%s ' $targets)

row() { # NAME PROFILE BINARY [-object BINARY...]
    name=$1 profile=$2
    shift 2
    llvm-cov-22 export -summary-only -instr-profile="$profile" "$@" |
        python3 -c '
import json, re, sys
rooms = dict.fromkeys("frontend hlo passes plan target thunk xpu".split())
for f in json.load(sys.stdin)["data"][0]["files"]:
    m = re.search(r"/src/(\w+)/", f["filename"])
    if m and m[1] in rooms:
        lines = f["summary"]["lines"]
        c, n = rooms[m[1]] or (0, 0)
        rooms[m[1]] = c + lines["covered"], n + lines["count"]
print("%-10s" % sys.argv[1], *(
    "%8s" % (f"{100 * r[0] // r[1]} %" if r else "-") for r in rooms.values()))
' "$name"
}

printf '%-10s %8s %8s %8s %8s %8s %8s %8s\n' \
    target frontend hlo passes plan target thunk xpu
objects=
for t in $targets; do
    bin=$b/tests/fuzz/replay_$t
    of=$t
    [ "$t" = mlir_write ] && of=mlir_text
    inputs=$(ls -d tests/fuzz/corpus/$of tests/fuzz/found/$of.tar \
        "build/fuzz/out/$t/corpus" 2>/dev/null || true)
    rm -f $b/"$t"-*.profraw
    LLVM_PROFILE_FILE=$b/$t-%p.profraw "$bin" $inputs >/dev/null
    llvm-profdata-22 merge -o $b/"$t".profdata $b/"$t"-*.profraw
    row "$t" $b/"$t".profdata "$bin"
    objects="$objects -object $bin"
done
llvm-profdata-22 merge -o $b/all.profdata \
    $(for t in $targets; do echo $b/"$t".profdata; done)
row all $b/all.profdata ${objects# -object }
