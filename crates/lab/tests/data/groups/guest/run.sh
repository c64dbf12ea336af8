#!/bin/bash
# Records one run: boots a kernel in QEMU, plays a case, and prints a line of JSON.
#
# usage: run.sh KERNEL POLICY CASE DELAY
#   KERNEL  an unpacked package linux-image-* (of newer ones: linux-binary-* and linux-modules-*)
#   POLICY  lru or mglru
#   CASE    a section of ../cases.txt; those called zswap-* take a kernel with zswap
#   DELAY   ms: 0, 700 and 1400 for repeats
# MEM (MiB) can be set, and TRACE: a script that the guest runs before it plays.
#
# It takes: qemu-system-x86 busybox-static cpio e2fsprogs gcc libc6-dev xz-utils. No rights, no /dev/kvm.
set -euo pipefail
kernel=$(realpath "$1") policy=$2 case=$3 delay=$4
here=$(dirname "$(realpath "$0")")
tmp=$(mktemp -d); trap 'rm -rf "$tmp"' EXIT
root=$tmp/root play=$tmp/play
mkdir -p "$root"/{bin,lib/mod} "$play"

cp "$(command -v busybox)" "$root/bin/busybox"; ln -s busybox "$root/bin/sh"
cp "$here/init" "$root/init"; chmod +x "$root/init"
n=10
for name in virtio_ring virtio virtio_pci_legacy_dev virtio_pci_modern_dev virtio_pci virtio_blk \
	crc16 crc32c_generic mbcache jbd2 ext4 lz4_compress lz4hc_compress lz4 zsmalloc zram; do
	file=$(find "$kernel" -name "$name.ko*" | head -1); n=$((n + 1))
	case $file in # one that is built into the kernel is simply not there
	"") ;;
	*.xz) xz -dc "$file" >"$root/lib/mod/$n-$name.ko" ;;
	*) cp "$file" "$root/lib/mod/$n-$name.ko" ;;
	esac
done
(cd "$root" && find . | cpio -o -H newc --quiet) | gzip -1 >"$tmp/initrd"

gcc -O2 -static -o "$play/groups" "$here/groups.c"
sed -n "/^case $case\$/,/^\$/p" "$here/../cases.txt" | grep -v -e '^case ' -e '^$' >"$play/$case"
options=memory_recursiveprot
case $case in *-flat) options= ;; esac
zswap=; case $case in zswap-*) zswap=yes ;; esac
[ -z "${TRACE:-}" ] || cp "$TRACE" "$play/trace"
printf '%s\n' "POLICY=$policy CASE=$case DELAY=$delay OPTIONS=$options ZSWAP=$zswap TRACE=${TRACE:+yes}" >"$play/env"
truncate -s 3G "$tmp/data"; mkfs.ext4 -q -O ^has_journal -E lazy_itable_init=0 -d "$play" "$tmp/data"

qemu-system-x86_64 -accel tcg,thread=single -icount "shift=0,sleep=off" -cpu max,-la57 -machine q35 \
	-m "${MEM:-160}" -smp 1 -nodefaults -no-reboot -display none -serial stdio \
	-kernel "$(find "$kernel" -name 'vmlinuz*' | head -1)" -initrd "$tmp/initrd" \
	-append "console=ttyS0 quiet mitigations=off nopti nokaslr random.trust_cpu=1 panic=-1 psi=1 transparent_hugepage=never" \
	-drive "file=$tmp/data,if=virtio,format=raw,cache=unsafe" </dev/null >"$tmp/console" 2>&1
[ -z "${TRACE:-}" ] || cp "$tmp/console" "$TRACE.log"
tr -d '\r' <"$tmp/console" | sed -n 's/^RESULT //p' | grep . || { cat "$tmp/console" >&2; exit 1; }
