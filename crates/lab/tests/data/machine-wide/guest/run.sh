#!/bin/bash
# Records one run: boots a kernel in QEMU, plays traces, and prints the line of JSON of each program.
#
# usage: run.sh KERNEL POLICY TRACE...
#   KERNEL  an unpacked package linux-image-* (apt-get download; dpkg-deb -x)
#   POLICY  lru or mglru
#   TRACE   one; with THREADS=1 one for each thread of a program, and with PAIR=1 two programs
# MEM (MiB), CPUS, DELAY (ms; 2700 and 3400 for repeats), PROBE (cachestat), MODULES (lz4 for 6.1) can
# be set. REALTIME=1 gives each CPU a thread of the host, and the host's time.
#
# It takes: qemu-system-x86 busybox-static cpio e2fsprogs gcc libc6-dev xz-utils. No rights, no /dev/kvm.
set -euo pipefail
kernel=$(realpath "$1") policy=$2; shift 2
here=$(dirname "$(realpath "$0")") mem=${MEM:-512} cpus=${CPUS:-1}
tmp=$(mktemp -d); trap 'rm -rf "$tmp"' EXIT
root=$tmp/root play=$tmp/play
mkdir -p "$root"/{bin,lib/mod} "$play"

cp "$(command -v busybox)" "$root/bin/busybox"; ln -s busybox "$root/bin/sh"
cp "$here/init" "$root/init"; chmod +x "$root/init"
n=10
for name in virtio_ring virtio virtio_pci_legacy_dev virtio_pci_modern_dev virtio_pci virtio_blk \
	lz4_compress lz4hc_compress lzo_compress lzo lzo-rle ${MODULES:-} zsmalloc zram; do
	file=$(find "$kernel" -name "$name.ko*" | head -1); n=$((n + 1))
	case $file in # one that is built into the kernel is simply not there
	"") ;;
	*.xz) xz -dc "$file" >"$root/lib/mod/$n-$name.ko" ;;
	*) cp "$file" "$root/lib/mod/$n-$name.ko" ;;
	esac
done
(cd "$root" && find . | cpio -o -H newc --quiet) | gzip -1 >"$tmp/initrd"

gcc -O2 -static -pthread -o "$play/play" "$here/play.c"
cp "$@" "$play"
traces=("${@##*/}"); traces=("${traces[@]/#//play/}")
common="-c $((cpus - 1)) -d ${DELAY:-2000} -p ${PROBE:-mincore}"
[ -z "${THREADS:-}" ] || [ "$cpus" = 1 ] || common="-c 0 -s -d ${DELAY:-2000} -p ${PROBE:-mincore}"
second= files=
[ -z "${PAIR:-}" ] || { second="$common ${traces[1]}"; traces=("${traces[0]}"); }
case ${traces[0]} in
*writers-*)
	common+=" -f /files/file"; files=600M; [ "$mem" -lt 1024 ] || files=2700M
	cp /sbin/mkfs.ext4 "$play"
	ldd /sbin/mkfs.ext4 | grep -o '/[^ ]*' | while read -r library; do cp -L "$library" "$play"; done
	mv "$play"/ld-linux* "$play/ld.so"
	;;
esac
swap=768M; [ "$mem" -lt 2048 ] || swap=3G
printf '%s\n' "POLICY=$policy SWAP=$swap ZRAM_FILES=$files" "ARGS='$common ${traces[*]}'" "ARGS2='$second'" >"$play/env"
truncate -s 3G "$tmp/data"; mkfs.ext4 -q -O ^has_journal -E lazy_itable_init=0 -d "$play" "$tmp/data"
# Two disks more, which nobody uses: what the kernel has of them is in its own pages.
truncate -s 64M "$tmp/out"; truncate -s 512M "$tmp/swap"

time=(-accel tcg,thread=single -icount "shift=0,sleep=off")
[ -z "${REALTIME:-}" ] || time=(-accel tcg,thread=multi)
qemu-system-x86_64 "${time[@]}" -cpu max,-la57 -machine q35 -m "$mem" -smp "$cpus" -nodefaults -no-reboot \
	-display none -serial stdio -kernel "$(find "$kernel" -name 'vmlinuz*' | head -1)" -initrd "$tmp/initrd" \
	-append "console=ttyS0 quiet mitigations=off nopti nokaslr random.trust_cpu=1 panic=-1 psi=1 transparent_hugepage=never" \
	-drive "file=$tmp/data,if=virtio,format=raw,cache=unsafe" \
	-drive "file=$tmp/out,if=virtio,format=raw,cache=unsafe" \
	-drive "file=$tmp/swap,if=virtio,format=raw,cache=unsafe" </dev/null >"$tmp/console" 2>&1
tr -d '\r' <"$tmp/console" | sed -n 's/^RESULT //p' | grep . || { cat "$tmp/console" >&2; exit 1; }
