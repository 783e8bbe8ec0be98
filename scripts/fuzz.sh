#!/bin/sh
# Runs every fuzz target of the project, as many at a time as there are cores, at most two.
# usage: fuzz.sh TIME [OTHERS]
# TIME, as go test takes it (60s), is for the targets named below, which read what another process can
# write: its memory and its images. OTHERS is for the rest; if it is not given, TIME.
set -eu
long='profiler/luajit:FuzzWalk profiler/unwind/cfi:FuzzTable profiler/symbol:FuzzImage proxy:FuzzFindRequest'
go=${GO:-go}

# one runs a target, DIR:NAME, and says how far it came. Go would spend up to a minute on making an input smaller
# that it found interesting, and try nothing new meanwhile.
one() {
    out=$($go test -run '^$' -fuzz "^${1#*:}\$" -fuzztime "$2" -fuzzminimizetime 10x -parallel 1 "./${1%:*}" 2>&1) || {
        # Go sometimes takes the end of the time itself for a failure; then there is no input that failed.
        case "$out" in
        *"Failing input"* | *panic:*) bad=1 ;;
        *"context deadline exceeded"*) bad= ;;
        *) bad=1 ;;
        esac
        if [ -n "$bad" ]; then
            printf '%s\n%s\n' "$1" "$out" >&2
            exit 255 # and xargs starts no more
        fi
    }
    echo "$1 $(echo "$out" | sed -n 's/^fuzz: elapsed/elapsed/p' | tail -n 1)"
}

if [ "$1" = -one ]; then
    one "$2" "$3"
    exit
fi
time=${1:?usage: fuzz.sh TIME [OTHERS]}
others=${2:-$time}

# The names come from the sources, so that a new target is not forgotten.
all=$(for dir in $($go list -f '{{.Dir}}' ./...); do
    sed -n "s|^func \(Fuzz[A-Za-z0-9_]*\)(.*|${dir#"$PWD"/}:\1|p" "$dir"/*_test.go 2>/dev/null || true
done)
for t in $long; do
    echo "$all" | grep -qx "$t" || { echo "fuzz.sh: no target $t" >&2; exit 1; }
done
jobs=$(nproc)
[ "$jobs" -le 2 ] || jobs=2
{
    for t in $long; do echo "$t $time"; done
    for t in $all; do
        case " $long " in *" $t "*) ;; *) echo "$t $others" ;; esac
    done
} | xargs -n 2 -P "$jobs" "$0" -one
