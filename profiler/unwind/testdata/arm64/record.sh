#!/bin/sh
# Records the files in this folder anew, in a few minutes. Needs the Debian packages
# qemu-user gdb-multiarch gcc-aarch64-linux-gnu libc6-dev-arm64-cross.
set -eu
cd "$(dirname "$0")"
tmp=$(mktemp -d)
qemu=
trap 'kill $qemu 2>/dev/null || true; rm -rf "$tmp"' EXIT

build() { # NAME FLAGS...
    name=$1
    shift
    aarch64-linux-gnu-gcc -Wno-unused-result -O2 "$@" -o "$tmp/$name" ../target.c -lm
}

record() { # NAME MODE MOST [bound]    bound: names are bound at the start, not when first called
    port=$((20000 + $$ % 20000))
    out=$tmp/$1-$2${4:+-$4}.json
    qemu-aarch64 -cpu max,sve=off -E LD_BIND_NOW="${4:-}" -L /usr/aarch64-linux-gnu -g $port "$tmp/$1" "$2" >/dev/null &
    qemu=$!
    sleep 2
    PORT=$port QEMU_PID=$qemu OUT=$out PROGRAM=$tmp/$1 LIMIT=$3 gdb-multiarch -nx -batch -x record.py 2>&1 | grep -E "kept|Error"
    kill $qemu 2>/dev/null || true
    wait $qemu 2>/dev/null || true
}

build signed -fomit-frame-pointer -mbranch-protection=standard
build records -fno-omit-frame-pointer
build norules -fno-asynchronous-unwind-tables -fno-unwind-tables
record signed loop 200
record signed loop 400 bound
record signed signal 200 bound
record signed altstack 230 bound
record signed noreturn 260 bound
record records loop 400 bound
record norules loop 400 bound
python3 pack.py . "$tmp"/*.json
