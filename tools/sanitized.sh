#!/bin/sh
# tools/sanitized.sh check|tsan [TARGET...]: a build whose tests run under ASan
# and UBSan, or under TSan.  Its device library is the release build's, which
# is there already; lines of code are kept for stack traces, variables are not
# (meson configure build/check -Dc_args=-g brings them back).  What UBSan finds
# ends a test, as what ASan finds does: meson 1.0 lets it go on.
set -eu
cd "$(dirname "$0")/.."
b=build/${1-}
case ${1-} in
check) by=address,undefined optimize=2 ;;
tsan) by=thread optimize=1 ;; # compiled in two thirds of the time
*) echo "usage: tools/sanitized.sh check|tsan [TARGET...]" >&2; exit 2 ;;
esac
shift
[ -f "$b/build.ninja" ] || meson setup "$b" --buildtype=debugoptimized \
    -Doptimization=$optimize -Db_ndebug=false -Dc_args="-g1 -fno-sanitize-recover=all" -Db_sanitize=$by -Db_lundef=false \
    -Ddevlib="$PWD/build/release" >/dev/null
log=$(ninja -C "$b" "$@") || { echo "$log"; exit 1; }
