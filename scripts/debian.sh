#!/bin/sh
# A clean Debian 12 with systemd, and with an nginx that runs as Debian's unit,
# in namespaces of its own: no process, file, port or cgroup of the host is
# touched. It has no network but loopback; what the quick start installs is in
# its apt's cache. Needs root and the host's kernel, and nothing else of the host.
# usage: debian.sh make                    makes what is copied for each run, if it is not there
#        debian.sh run SCRIPT [FILE...]    runs SCRIPT in a fresh copy, FILEs in /root/build;
#                                          debian-guest.sh says what it may use
set -eu
cache=${SPINGUARD_CACHE:-/var/cache/spinguard}
# Made by another recipe than below, it is another one.
base=$cache/debian-12-$(sed -n '/^make_base/,/^)/p' "$0" | cksum | cut -d ' ' -f 1)

# make_base lays a Debian from the mirror that apt has here. One that is older
# than two months is made anew.
make_base() (
    flock 9
    [ -z "$(find "$base" -maxdepth 0 -mtime -60 2>/dev/null)" ] || return 0
    mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' | grep -m 1 '/debian/$') || mirror=
    echo "debian: making $base, once" >&2
    rm -rf "$cache"/debian-12-*
    # Without what nobody reads here, and with /usr merged from the start.
    mmdebstrap --quiet --variant=essential --include=apt,usr-is-merged,systemd-sysv,nginx \
        --hook-dir=/usr/share/mmdebstrap/hooks/merged-usr --skip=cleanup/apt \
        --dpkgopt=force-unsafe-io --aptopt='Acquire::Languages "none"' \
        --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/locale/*' --dpkgopt='path-exclude=/usr/share/man/*' \
        --customize-hook="chroot \"\$1\" apt-get install -qq --download-only libnginx-mod-http-lua lua-cjson curl" \
        bookworm "$base.new" ${mirror:+"$mirror"} >&2
    mv "$base.new" "$base"
) 9>"$cache/lock"

# host, in a mount namespace: a copy in memory, a cgroup, and the guest in them.
host() {
    work=$1 group=$2 script=$3
    shift 3
    mount -t tmpfs none "$work"
    mkdir -p "$work/up/root/build" "$work/work" "$work/root" "$work/cgroup"
    cp "$script" "$work/up/root/script"
    cp "$(dirname "$0")/debian-guest.sh" "$work/up/root/guest"
    [ $# = 0 ] || cp "$@" "$work/up/root/build"
    mount -t cgroup2 none "$work/cgroup"
    mkdir "$work/cgroup/$group"
    sh -c 'echo $$ >"$1"/cgroup.procs && shift && exec "$@"' sh "$work/cgroup/$group" \
        unshare --mount --pid --cgroup --uts --ipc --net --fork --kill-child sh "$0" guest "$work" </dev/null >"$work/console" 2>&1 &
    guest=$!
    end() {
        # With its first process all others of it end.
        kill -KILL ${init:-$guest} 2>/dev/null || true
        wait $guest 2>/dev/null || true
        find "$work/cgroup/$group" -depth -type d -exec rmdir {} +
    }
    trap end EXIT
    trap 'exit 1' INT TERM
    # It is Debian from the moment that its first process is systemd.
    for try in $(seq 600); do
        init=$(ps -o pid= --ppid $guest | tr -d ' ')
        case $(readlink "/proc/${init:-none}/exe") in */systemd) break ;; esac
        kill -0 $guest || { cat "$work/console" >&2; exit 1; }
        sleep 0.1
    done
    inside() { nsenter --target "$init" --all env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 TERM=dumb "$@"; }
    for try in $(seq 600); do
        state=$(inside systemctl is-system-running --wait 2>/dev/null) || true
        case $state in running | degraded) break ;; esac
        sleep 0.1
    done
    [ "$state" = running ] || { cat "$work/console"; inside journalctl --priority warning || true; } >&2
    inside bash /root/guest &
    wait $! # it can be interrupted
}

# guest, in all namespaces: becomes the first process of the copy.
guest() {
    root=$1/root
    mount -t overlay overlay -o "lowerdir=$base,upperdir=$1/up,workdir=$1/work" "$root"
    mount -t proc proc "$root/proc"
    mount -t sysfs sysfs "$root/sys"
    mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
    mount -t tmpfs none "$root/run"
    mount -t tmpfs -o mode=755 none "$root/dev"
    for name in null zero full random urandom tty; do
        : >"$root/dev/$name"
        mount --bind "/dev/$name" "$root/dev/$name"
    done
    mkdir "$root/dev/shm" "$root/dev/pts"
    mount -t tmpfs none "$root/dev/shm"
    mount -t devpts -o newinstance,ptmxmode=666 none "$root/dev/pts"
    ln -s pts/ptmx "$root/dev/ptmx"
    ip link set lo up
    hostname debian
    cd "$root"
    pivot_root . mnt
    umount -l /mnt
    exec env -i container=spinguard PATH=/usr/sbin:/usr/bin:/sbin:/bin /lib/systemd/systemd
}

case ${1:-} in
make | run) mkdir -p "$cache" ;;
esac
case ${1:-} in
make) make_base ;;
run)
    make_base
    work=$(mktemp -d)
    trap 'rmdir "$work"' EXIT
    trap 'exit 1' INT TERM
    shift
    unshare --mount sh "$0" host "$work" "spinguard-${work##*.}" "$@" &
    trap 'kill $! && wait $!; rmdir "$work"; exit 1' INT TERM
    wait $!
    ;;
host | guest) "$@" ;;
*)
    sed -n '/^# usage/,/^set/s/^# //p' "$0" >&2
    exit 2
    ;;
esac
