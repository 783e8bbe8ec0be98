#!/bin/sh
# Runs the tests of the BPF programs under other kernels, each in an emulator of
# its own: does its verifier take them, do they copy what they should?
# usage: kernels.sh [VMLINUZ...]     without one: the kernel of this Debian's cloud images
# It needs no rights but those to install packages. Emulated, it says nothing about speed.
set -eu
cd "$(dirname "$0")/.."
"$(dirname "$0")/install-packages.sh" kernels
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT INT TERM

if [ $# = 0 ]; then
    name=$(apt-cache depends --important linux-image-cloud-amd64 | sed -n 's/^ *Depends: \(linux-image-.*\)/\1/p' | head -n 1)
    [ -n "$name" ] || { echo "kernels: no package linux-image-cloud-amd64 is known here: name a vmlinuz" >&2; exit 1; }
    echo "fetching $name"
    (cd "$work" && { apt-get download -qq "$name-unsigned" || apt-get download -qq "$name"; } 2>"$work/log") || { cat "$work/log" >&2; exit 1; }
    dpkg-deb -x "$work"/linux-image-*.deb "$work/kernel"
    set -- "$work"/kernel/boot/vmlinuz-*
fi

root=$work/root
mkdir -p "$root/bin" "$root/proc" "$root/sys" "$root/dev" "$root/tmp"
cp "$(command -v busybox)" "$root/bin/busybox"
for applet in sh mount ifconfig poweroff cat; do ln -s busybox "$root/bin/$applet"; done
CGO_ENABLED=0 ${GO:-go} test -c -o "$root/bpf.test" ./bpf
cat >"$root/init" <<'INIT'
#!/bin/sh
export PATH=/bin HOME=/tmp
mount -t proc proc /proc; mount -t sysfs sysfs /sys; mount -t devtmpfs dev /dev; mount -t tmpfs tmp /tmp
mount -t tracefs tracefs /sys/kernel/tracing
ifconfig lo 127.0.0.1 up
cat /proc/version
/bpf.test -test.v -test.timeout 300s 2>&1
echo "tests ended with $?"
poweroff -f
INIT
chmod 755 "$root/init"
(cd "$root" && find . | cpio -o -H newc --quiet | gzip -1) >"$work/initrd"

failed=0
for kernel; do
    timeout 600 qemu-system-x86_64 -m 1500 -smp 2 -nographic -no-reboot -kernel "$kernel" -initrd "$work/initrd" \
        -append "console=ttyS0 rdinit=/init panic=-1 quiet" </dev/null >"$work/console" 2>&1 || true
    tr -d '\r' <"$work/console" | grep -aE '^(Linux version|--- |    [a-z_]+\.go:|    [a-z_]+_test\.go:)' || true
    if tr -d '\r' <"$work/console" | grep -aq '^tests ended with 0$'; then
        echo "ok    $kernel"
    else
        echo "FAIL  $kernel; the end of its console:" >&2
        tail -n 20 "$work/console" >&2
        failed=1
    fi
done
exit $failed
