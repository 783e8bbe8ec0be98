#!/bin/sh
# Installs the Debian or Ubuntu packages that a task needs and this machine lacks.
# usage: install-packages.sh demo|test|kernels
# It says what it installs; elsewhere it says what to install by hand.
set -eu

demo="nginx libnginx-mod-http-lua lua-resty-core lua-resty-lrucache lua-cjson ca-certificates"
test="$demo haproxy lua5.3 lua5.4 clang llvm libbpf-dev lua-check curl procps gcc libc6-dev musl-tools binutils gdb zsh groff-base chromium prometheus prometheus-alertmanager tmux nodejs npm mmdebstrap iproute2"
kernels="qemu-system-x86 busybox-static cpio"

case "${1:-}" in
demo) want=$demo ;;
test) want=$test ;;
kernels) want=$kernels ;;
*) echo "usage: $0 demo|test|kernels" >&2; exit 2 ;;
esac

# npm comes with some nodejs packages and then conflicts with its own.
have() {
    case "$1" in
    nodejs) command -v node >/dev/null ;;
    npm) command -v npm >/dev/null ;;
    gcc) command -v gcc >/dev/null ;;
    *) dpkg-query -W -f '${Status}' "$1" 2>/dev/null | grep -q 'ok installed' ;;
    esac
}

if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
    echo "This is not Debian or Ubuntu. Install what these Debian packages hold, then run again:" >&2
    echo "  $want" >&2
    [ -n "${SPINGUARD_SKIP_PACKAGES:-}" ] && exit 0
    echo "If all of it is there already, set SPINGUARD_SKIP_PACKAGES=1." >&2
    exit 1
fi

lack=
for p in $want; do have "$p" || lack="$lack $p"; done
[ -n "$lack" ] || exit 0
if [ "$(id -u)" != 0 ]; then
    echo "Missing packages:$lack" >&2
    echo "Run as root, or first: sudo apt-get install$lack" >&2
    exit 1
fi

echo "Installing:$lack"
# Installing nginx or Prometheus must not start a service on this machine.
policy=/usr/sbin/policy-rc.d
if [ ! -e $policy ]; then
    trap 'rm -f $policy' EXIT INT TERM
    printf '#!/bin/sh\nexit 101\n' >$policy
    chmod 755 $policy
fi
export DEBIAN_FRONTEND=noninteractive
log=$(mktemp)
install() { apt-get install -y --no-install-recommends $lack >"$log" 2>&1; }
# An old package list is the usual reason for a failure.
if ! install && ! { apt-get update >>"$log" 2>&1 && install; }; then
    tail -n 20 "$log" >&2
    echo "Could not install:$lack (see above)" >&2
    exit 1
fi
rm -f "$log"
