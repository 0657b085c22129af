#!/bin/sh
# A fixed sample of JAX's own tests, about 15 minutes on two cores: one of 40
# of all files on `host`, one of 160 of tier A on `cl`, 64-bit types off and
# on.  What fails is listed in failures.tsv with its reason; anything else that
# fails ends this with 1.  Without a checkout of JAX it says so.
#   JAX_SOURCE=path tests/jax/nightly.sh [TIMES]   a sample so many times smaller
set -eu
cd "$(dirname "$0")/../.."
less=${1:-1}
if [ -z "${JAX_SOURCE:-}" ]; then
    echo "jax-tests: JAX_SOURCE names no checkout of JAX's repository, and its" \
        "wheel has no tests: its test programs are what make conform runs"
    exit 0
fi
tools/setup.sh jax-tests
python=.venv/bin/python
$python tests/jax/run.py --device host --source "$JAX_SOURCE" \
    --sample $((40 * less)) --workers 2
$python tests/jax/run.py --device cl --source "$JAX_SOURCE" --files A \
    --sample $((160 * less)) --workers 2
exec $python tests/jax/table.py --print --strict
