#!/bin/sh
# Everything that `make test` runs, with its time.  C tests in the debug build
# (ASan, UBSan, LSan), the thread tests under TSan, then JAX end to end on the
# release build, `host` and `cl`.
set -eu
cd "$(dirname "$0")/.."
start=$(date +%s)
say() { echo "== $1 ($(($(date +%s) - start)) s)"; }

say "C tests under ASan and UBSan"
tools/sanitized.sh check
rm -f build/errors
SUNDOG_ERRORS_SEEN=$PWD/build/errors meson test -C build/check --no-rebuild \
    --print-errorlogs
say "messages that no C test produced, and docs/errors.md"
.venv/bin/python tools/gen_errors.py missing build/errors
.venv/bin/python tools/gen_errors.py check
say "thread tests under TSan"
tools/sanitized.sh tsan tests/unit/test_threads tests/unit/test_xpu tests/unit/test_xpu_interrupt \
    tests/unit/xpu_kernels.o tests/unit/xpu_kernels.spv tests/unit/xpu_kernels.ptx \
    tests/faults/libfakecl.so tests/faults/test_fake_cl tests/faults/test_queues \
    tests/faults/libfakecuda.so \
    tests/unit/test_plugin tests/unit/test_gang tests/unit/test_processes \
    tests/unit/test_process_words tests/unit/test_onednn_place tests/faults/test_foreign \
    tests/faults/test_mpi libsundog.so
meson test -C build/tsan --no-rebuild --print-errorlogs --suite threads
say "tests on an OpenCL device, and the soak, in the release build"
log=$(ninja -C build/release) || { echo "$log"; exit 1; }
VIRTUAL_ENV=$PWD/.venv meson test -C build/release --no-rebuild \
    --print-errorlogs "xpu cl" "cl overlap" "target run cl" "ir alone cl" \
    "engines pvc cl" "engines dg2-g10 cl" "random cases cl" "random rows cl" "random cl" \
    "random apart chosen in loop cl"
SUNDOG_DEVICE=host build/release/tests/unit/soak 2000 1000000
say "JAX end to end"
# In two halves: most tests keep one core busy.
jax_tests() { .venv/bin/python -m pytest -q -p no:cacheprovider "$@"; }
half=build/jax-half.log
jax_tests tests/python/test_[m-z]*.py >$half 2>&1 &
trap 'kill $! 2>/dev/null' EXIT
trap 'exit 130' INT TERM
jax_tests tests/python/test_[a-l]*.py && other=0 || other=1
wait $! && cat $half || { cat $half; exit 1; }
trap - EXIT INT TERM
[ $other = 0 ]
say "all passed"
