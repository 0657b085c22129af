#!/bin/sh
# tools/fuzz_cover.sh: per fuzz target, how many lines of each room its corpus
# reaches: tests/fuzz/corpus, and what build/fuzz/out has found beside it.  By
# clang's source coverage, in a build of its own.
set -eu
cd "$(dirname "$0")/.."
b=build/cover
flags="-fprofile-instr-generate -fcoverage-mapping"
[ -f $b/build.ninja ] || CC=clang-22 CFLAGS=$flags LDFLAGS=$flags \
    meson setup $b --buildtype=debugoptimized -Db_ndebug=true >/dev/null
targets=$(sed -n "s/^  '\([a-z_]*\)': \['fuzz_.*/\1/p" tests/fuzz/meson.build)
ninja -C $b --quiet $(printf 'tests/fuzz/replay_%s ' $targets)
for t in $targets; do
    bin=$b/tests/fuzz/replay_$t
    found=build/fuzz/out/$t/corpus
    LLVM_PROFILE_FILE=$b/$t-%p.profraw "$bin" "tests/fuzz/corpus/$t" \
        $([ -d "$found" ] && echo "$found") >/dev/null
    llvm-profdata-22 merge -o $b/$t.profdata $b/$t-*.profraw
    rm -f $b/$t-*.profraw
    printf '%-10s' "$t"
    llvm-cov-22 export -summary-only -instr-profile=$b/$t.profdata "$bin" |
        python3 -c '
import json, re, sys
rooms = {}
for f in json.load(sys.stdin)["data"][0]["files"]:
    m = re.search(r"/src/(\w+)/", f["filename"])
    if m:
        r = rooms.setdefault(m.group(1), [0, 0])
        r[0] += f["summary"]["lines"]["covered"]
        r[1] += f["summary"]["lines"]["count"]
print("  ".join(f"{k} {100 * c // max(n, 1)}%" for k, (c, n) in rooms.items()
                if c))'
done
