#!/bin/sh
# Runs every fuzz target of the project for a while, one after the other.
# usage: fuzz.sh TIME [PACKAGE...]      TIME as go test takes it: 60s
set -eu
time=${1:?usage: fuzz.sh TIME [PACKAGE...]}
shift
[ $# -gt 0 ] || set -- ./...
go=${GO:-go}

# The names come from the sources, so that a new target is not forgotten.
for dir in $($go list -f '{{.Dir}}' "$@"); do
    for target in $(sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\)(.*/\1/p' "$dir"/*_test.go 2>/dev/null); do
        echo "$target in ${dir#"$PWD"/}"
        out=$($go test -run '^$' -fuzz "^$target\$" -fuzztime "$time" "$dir" 2>&1) || {
            echo "$out" >&2
            exit 1
        }
        echo "$out" | sed -n 's/^fuzz: elapsed/  elapsed/p' | tail -n 1
    done
done
