#!/bin/sh
# Installs a wheel as a stranger would, in a root that has glibc, Python and
# what Python and jaxlib themselves need, and runs Python there.
#   tests/wheel/bare_root.sh WHEEL ARGUMENTS_OF_PYTHON...
#   tests/wheel/bare_root.sh --pins     what it installs beside the wheel
# The root is made of this Debian's packages and of PyPI's wheels, and stays in
# build/bare.  No LLVM, no compiler, no shell is in it, and no network.
set -eu
cd "$(dirname "$0")/../.."
wheel=$1
shift
root=$PWD/build/bare
pins=$(sed -n '/^python_packages="/,/"$/p' tools/setup.sh |
    grep -oE '\b(jax|jaxlib|numpy)==[0-9.]+' | tr '\n' ' ')
[ "$wheel" != --pins ] || { echo "$pins"; exit; }
of_debian="libc6 python3.11-minimal libpython3.11-minimal libpython3.11-stdlib
 zlib1g libexpat1 libffi8 libssl3 libbz2-1.0 liblzma5 libuuid1 libstdc++6
 libgcc-s1"

if [ "$(cat "$root/.made" 2>/dev/null)" != "$pins" ]; then
    rm -rf "$root"
    mkdir -p "$root/usr/lib" "$root/usr/lib64" "$root/usr/bin" \
        "$root/wheels" "$root/proc" "$root/dev" "$root/tmp"
    ln -s usr/lib usr/lib64 usr/bin "$root" # as in Debian
    for p in $of_debian; do
        dpkg -L "$p" | while read -r f; do
            [ -d "$f" ] || echo "${f#/}"
        done
    done | grep -E '^(usr/)?(lib|lib64|bin)/' | tar -C / -chf - -T - |
        tar -C "$root" -x --keep-directory-symlink
    # shellcheck disable=SC2086
    .venv/bin/python -m pip download -q --disable-pip-version-check \
        --only-binary :all: -d "$root/wheels" $pins
    cp -r .venv/lib/python3.11/site-packages/pip "$root/usr/lib/python3.11/"
    echo "$pins" > "$root/.made"
fi
rm -rf "$root/wheels/"sundog-* "$root/tests" "$root/examples"
cp "$wheel" "$root/wheels/"
mkdir -p "$root/tests/python"
cp -r examples "$root/"
cp tests/python/programs.py "$root/tests/python/"

# In name spaces of its own: nothing stays mounted, and nothing is downloaded.
exec unshare -rmn sh -eu -c '
root=$1 pins=$2
shift 2
mount --rbind /proc "$root/proc"
mount --rbind /dev "$root/dev"
python="env -i PATH=$PATH HOME=/tmp PYTHONPATH=/site chroot $root python3.11"
$python -m pip install -q --disable-pip-version-check \
    --root-user-action=ignore --no-index \
    --find-links /wheels --target /site --upgrade $pins sundog
exec $python "$@"
' sh "$root" "$pins" "$@"
