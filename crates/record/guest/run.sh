#!/bin/bash
# Runs a job on another kernel: boots it in QEMU, with refault and the job's programs on an ext4 disk.
#
# usage: run.sh KERNEL JOB OUT
#   KERNEL  an unpacked package linux-image-* (apt-get download; dpkg-deb -x)
#   JOB     a script of jobs/, or another: it runs in the guest as root and leaves its results in /out
#   OUT     a folder on this machine for what it left, and for the console
# The guest has busybox, refault, what the job names in a line "# programs:", and in the job's folder
# what of this repository it names in a line "# files:".
# REFAULT, MEM (MiB), CPUS, LIMIT (seconds), APPEND (to the kernel's command line), DISK (size) can be set.
#
# It takes: qemu-system-x86 busybox-static cpio e2fsprogs xz-utils binutils. No rights, no /dev/kvm.
set -euo pipefail
kernel=$(realpath "$1") job=$(realpath "$2") out=$3
here=$(dirname "$(realpath "$0")")
refault=${REFAULT:-$here/../../../target/release/refault}
mkdir -p "$out"; out=$(realpath "$out")
tmp=$(mktemp -d); trap 'rm -rf "$tmp"' EXIT
first=$tmp/first root=$tmp/root
mkdir -p "$first"/{bin,dev,disk} "$root"/{bin,dev,proc,sys,out,tmp,files,usr/bin,lib/modules}

# A program with the libraries that it is linked with, where its loader looks for them.
add() {
	cp -L "$1" "$root/usr/bin/"
	{ ldd "$1" 2>/dev/null || true; } | grep -o '/[^ ]*' | while read -r library; do
		mkdir -p "$root$(dirname "$library")"
		cp -Lu "$library" "$root$library"
	done
}
add "$refault"
strip "$root/usr/bin/refault"
for program in $(sed -n 's/^# programs: *//p' "$job"); do add "$(command -v "$program")"; done
for file in $(sed -n 's/^# files: *//p' "$job"); do cp "$here/../../../$file" "$root/files/"; done
cp "$(command -v busybox)" "$root/bin/busybox"; ln -s busybox "$root/bin/sh"
cp "$job" "$root/job.sh"; cp "$here/init" "$root/init"; chmod +x "$root/init"

# The first root only mounts the disk. A module that is built into the kernel is simply not there.
cp "$root/bin/busybox" "$first/bin/"; ln -s busybox "$first/bin/sh"
cat >"$first/init" <<'INIT'
#!/bin/sh
/bin/busybox mount -t devtmpfs dev /dev
for module in /*.ko; do [ -f "$module" ] && /bin/busybox insmod "$module"; done
/bin/busybox mount -t ext4 -o noatime /dev/vda /disk
exec /bin/busybox switch_root /disk /init
INIT
chmod +x "$first/init"
n=10
for name in virtio_ring virtio virtio_pci_legacy_dev virtio_pci_modern_dev virtio_pci virtio_blk; do
	file=$(find "$kernel/lib/modules" -name "$name.ko*" | head -1); n=$((n + 1))
	case $file in
	"") ;;
	*.xz) xz -dc "$file" >"$first/$n-$name.ko" ;;
	*) cp "$file" "$first/$n-$name.ko" ;;
	esac
done
(cd "$first" && find . | cpio -o -H newc --quiet) >"$tmp/initrd"
truncate -s "${DISK:-2G}" "$tmp/disk"
mkfs.ext4 -q -E lazy_itable_init=0,root_owner=0:0 -d "$root" "$tmp/disk"
truncate -s 256M "$tmp/result"

timeout "${LIMIT:-1200}" qemu-system-x86_64 -accel tcg,thread=multi -cpu max,-la57 -machine q35 \
	-m "${MEM:-1024}" -smp "${CPUS:-2}" -nodefaults -no-reboot -display none -serial stdio \
	-kernel "$kernel"/boot/vmlinuz-* -initrd "$tmp/initrd" \
	-append "console=ttyS0 quiet mitigations=off nopti nokaslr random.trust_cpu=1 panic=-1 ${APPEND:-}" \
	-drive "file=$tmp/disk,if=virtio,format=raw,cache=unsafe" \
	-drive "file=$tmp/result,if=virtio,format=raw,cache=unsafe" \
	</dev/null >"$out/console" 2>&1 || echo "qemu: exit status $?" >>"$out/console"
tar xf "$tmp/result" -C "$out" 2>/dev/null || { tail -5 "$out/console"; echo "no result; the console is in $out/console"; exit 1; }
cat "$out/job.log"
[ "$(cat "$out/status")" = 0 ]
