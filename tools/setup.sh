#!/bin/sh
# Sets up what is missing on Debian 12: packages, the Python environment with a
# pinned JAX, Intel's OpenCL runtime for CPUs (a test device), our build, our
# wheel.  A second run finds everything in place and returns at once.
#   tools/setup.sh [build|sd|test|models|jax-tests]   the later ones bring
#   what only they need, too; sd is for examples/stable_diffusion.py, models for
#   bench/models
set -eu
cd "$(dirname "$0")/.."
want=${1:-build}

# What Meson looks for when it configures, the tests' libraries too.
build_packages="gcc libc6-dev pkg-config meson ninja-build llvm-22-dev
 libllvm22 clang-22 libdnnl2 python3 python3-venv opencl-c-headers
 libcmocka-dev libmpfr-dev libstdc++-12-dev libzstd-dev zlib1g-dev"
test_packages="spirv-tools ocl-icd-libopencl1 intel-opencl-icd binutils
 libclang-rt-22-dev"
# jax.export writes programs with flatbuffers.
flatbuffers="flatbuffers==25.12.19"
python_packages="jax==0.10.2 jaxlib==0.10.2 numpy==2.4.6 pytest==9.2.0 absl-py==2.3.1
 $flatbuffers"
# The last diffusers and transformers that have Flax classes, and what goes
# together with them on this JAX.
sd_packages="diffusers==0.35.2 transformers==4.57.6 huggingface_hub==0.36.2
 tokenizers==0.22.2 flax==0.12.8 safetensors==0.8.0 pillow==13.0.0"
# A model of bench/models is Keras's; its results are drawn.
models_packages="keras==3.12.0 matplotlib==3.11.2"
# What JAX's own tests import.
jax_test_packages="hypothesis==6.142.1 mpmath==1.3.0 cloudpickle==3.1.2
 pillow==13.0.0 portpicker==1.6.0 $flatbuffers filelock==4.2.11
 rich==15.0.0 matplotlib==3.11.2"
cl_packages="intel-opencl-rt==2026.2.0 intel-cmplr-lib-rt==2026.2.0"
# ptxas, which takes what we make for CUDA GPUs or says what is wrong with it.
ptxas_packages="nvidia-cuda-nvcc-cu12==12.9.86"

packages=$build_packages
[ "$want" = test ] || [ "$want" = jax-tests ] &&
    packages="$packages $test_packages"
missing=
for p in $packages; do
    dpkg-query -W -f='${db:Status-Abbrev}' "$p" 2>/dev/null | grep -q '^ii' ||
        missing="$missing $p"
done
if [ -n "$missing" ]; then
    echo "setup: installing Debian packages:$missing"
    sudo=
    if [ "$(id -u)" != 0 ]; then
        command -v sudo >/dev/null || {
            echo "setup: run as root, or install: apt-get install$missing" >&2
            exit 1
        }
        sudo=sudo
    fi
    $sudo apt-get update -qq
    # shellcheck disable=SC2086
    $sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq \
        --no-install-recommends $missing >/dev/null
fi

stamp() { [ -f ".venv/.$1" ] && [ "$(cat ".venv/.$1")" = "$2" ]; }
pip_install() { # stamp name, packages
    stamp "$1" "$2" && return
    echo "setup: pip install $2"
    # shellcheck disable=SC2086
    .venv/bin/python -m pip install -q --disable-pip-version-check $2
    echo "$2" > ".venv/.$1"
}
[ -x .venv/bin/python ] || python3 -m venv .venv
pip_install jax "$python_packages"
pip_install cl "$cl_packages"
[ "$want" = test ] && pip_install ptxas "$ptxas_packages"
case $want in
sd | test) pip_install sd "$python_packages $sd_packages" ;;
models) pip_install models "$python_packages $models_packages" ;;
jax-tests) pip_install jax-tests "$jax_test_packages" ;;
esac

# What is tested is what is shipped: LLVM inside.  A linker takes 7 s for that;
# for shorter rounds: meson configure build/release -Dportable=false
[ -f build/release/build.ninja ] ||
    meson setup build/release --buildtype=release -Dportable=true >/dev/null
# The oracle is for tests/python, which may be run after any setup.
log=$(ninja -C build/release libsundog.so libsundog-compiler.so \
    tools/sundog tests/oracle/oracle.so) || { echo "$log"; exit 1; }
wheel=$(.venv/bin/python tools/make_wheel.py build/release)
sum=$(sha256sum "$wheel" | cut -d' ' -f1)
stamp wheel "$sum" || {
    .venv/bin/python -m pip install -q --disable-pip-version-check \
        --force-reinstall --no-deps "$wheel"
    echo "$sum" > .venv/.wheel
}
