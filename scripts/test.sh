#!/bin/sh
# scripts/test.sh TRIES PARALLEL PACKAGE...: the tests of these packages, PARALLEL packages at a time. With TRIES, tests that fail run again until each
# has been run so often; what failed at first stays in the output. More than ten that fail are no accident and are not run again.
set -eu
tries=$1 parallel=$2
shift 2
if [ -z "$tries" ]; then exec "${GO:-go}" test -p "$parallel" -timeout 14m "$@"; fi
exec build/tools/gotestsum --format standard-quiet --rerun-fails=$((tries - 1)) --packages="$*" -- -p "$parallel" -timeout 14m
