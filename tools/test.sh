#!/bin/sh
# Everything that `make test` runs, with its time.  C tests in the debug build
# (ASan, UBSan, LSan), the thread tests under TSan, then JAX end to end on the
# release build, `host` and `cl`.
set -eu
cd "$(dirname "$0")/.."
start=$(date +%s)
say() { echo "== $1 ($(($(date +%s) - start)) s)"; }

say "C tests under ASan and UBSan"
[ -f build/check/build.ninja ] || meson setup build/check \
    --buildtype=debugoptimized -Db_sanitize=address,undefined \
    -Db_lundef=false >/dev/null
ninja -C build/check --quiet
meson test -C build/check --no-rebuild --print-errorlogs
say "thread tests under TSan"
[ -f build/tsan/build.ninja ] || meson setup build/tsan \
    --buildtype=debugoptimized -Db_sanitize=thread -Db_lundef=false >/dev/null
ninja -C build/tsan --quiet
meson test -C build/tsan --no-rebuild --print-errorlogs --suite threads
say "JAX end to end"
.venv/bin/python -m pytest -q -p no:cacheprovider tests/python
say "all passed"
