#!/bin/sh
# The wheel of build/release: what it asks for, how large it is, and the demo in
# a root that has nothing of ours.
set -eu
cd "$(dirname "$0")/../.."
meson configure build/release -Dportable=true
log=$(ninja -C build/release libsundog.so libsundog-compiler.so tools/sundog) || {
    echo "$log"
    exit 1
}
wheel=$(.venv/bin/python tools/make_wheel.py build/release)
ls -l "$wheel" | awk '{ printf "%s: %.1f MB\n", $NF, $5 / 1e6 }'
case $wheel in
*-manylinux_*) ;;
*) echo "wheel: its libraries need more than glibc 2.28:"; failed=1 ;;
esac
for lib in libsundog.so libsundog-compiler.so tools/sundog; do
    readelf -dVW build/release/$lib | awk -v lib=$lib '
        /\(NEEDED\)/ { gsub(/[][]/, "", $NF); needed = needed " " $NF }
        match($0, /Name: GLIBC_[0-9.]+ /) {
            split(substr($0, RSTART + 12, RLENGTH - 13), v, ".")
            if (v[2] > newest) newest = v[2]
        }
        END { print lib ": glibc 2." newest ";" needed }'
done
[ -z "${failed:-}" ] || exit 1
tests/wheel/bare_root.sh "$wheel" -m sundog selftest --quick host
tests/wheel/bare_root.sh "$wheel" examples/demo.py
