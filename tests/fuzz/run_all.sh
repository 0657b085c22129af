#!/bin/sh
# tests/fuzz/run_all.sh SECONDS OUT [BINARIES [JOBS]]
#
# Every fuzz target for SECONDS, side by side, JOBS processes each (1 when left
# out), from the binaries fuzz_* of the folder BINARIES (build/fuzz/tests/fuzz
# when left out) and the inputs beside this script (corpus and found).  OUT
# keeps, per target, a log, the merged inputs and every finding; what was in OUT
# before is taken up again.  TARGETS="thunk options" runs those alone; LEAKS=0
# looks for no leaks, where a process may not be traced.
#
# A folder lib beside the binaries is searched for libraries first: with
# libLLVM there they run on a machine that has no LLVM.
#
# Prints per target: executions, edges covered, inputs kept, findings.  Ends
# with 1 when there are findings.
set -u
[ $# -ge 2 ] || { sed -n '2,16s/^# \{0,1\}//p' "$0"; exit 2; }
seconds=$1
out=$2
here=$(cd "$(dirname "$0")" && pwd)
bin=$(cd "${3:-$here/../../build/fuzz/tests/fuzz}" && pwd) || exit 2
jobs=${4:-1}
[ -d "$bin/lib" ] && export LD_LIBRARY_PATH="$bin/lib"
export ASAN_OPTIONS=detect_leaks=${LEAKS:-1}:allocator_may_return_null=1
export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1

# Processes of one target share its corpus folder and read what the others find.
fuzz() {
    t=$1
    mkdir -p "$out/$t/corpus" "$out/$t/findings"
    [ -f "$here/found/$t.tar" ] && tar -xf "$here/found/$t.tar" -C "$out/$t/corpus"
    "$bin/fuzz_$t" -fork="$jobs" -max_total_time="$seconds" \
        -rss_limit_mb=2048 -timeout=10 -max_len=16384 \
        -ignore_crashes=1 -ignore_ooms=1 -ignore_timeouts=1 \
        -artifact_prefix="$out/$t/findings/" \
        "$out/$t/corpus" $(ls -d "$here/corpus/$t" 2>/dev/null) \
        >"$out/$t/log" 2>&1
}

targets=${TARGETS:-$(cd "$bin" && ls -d fuzz_* | grep -v '\.p$' | sed 's/^fuzz_//')}
out=$(mkdir -p "$out" && cd "$out" && pwd)
for t in $targets; do
    fuzz "$t" &
done
wait

found=0
printf '%-10s %12s %8s %8s %9s\n' target executions edges inputs findings
for t in $targets; do
    last=$(grep '^#[0-9]*: cov:' "$out/$t/log" | tail -1)
    n=$(ls "$out/$t/findings" | wc -l)
    printf '%-10s %12s %8s %8s %9s\n' "$t" \
        "$(echo "$last" | sed 's/^#\([0-9]*\):.*/\1/')" \
        "$(echo "$last" | sed 's/.* cov: \([0-9]*\) .*/\1/')" \
        "$(ls "$out/$t/corpus" | wc -l)" "$n"
    found=$((found + n))
done
[ "$found" -eq 0 ]
