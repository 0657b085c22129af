#!/bin/sh
# docs/numerics.md's table of the evaluator's functions, measured anew.
#   tools/numerics.sh BUILD
set -eu
cd "$(dirname "$0")/.."
doc=docs/numerics.md new=$(mktemp)
trap 'rm -f "$new"' EXIT
sed '/^<!-- rows -->$/q' "$doc" > "$new"
"$1/tests/unit/test_hlo_scalar" table >> "$new"
cat "$new" > "$doc"
