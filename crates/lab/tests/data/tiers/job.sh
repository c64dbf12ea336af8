# Job of a guest with two memory tiers; arguments: multi-gen LRU (7 or 0), limit in MB/s, seconds, pattern, share,
# threads; with a file or swap also MiB and a file.
echo 1 > /sys/kernel/mm/numa/demotion_enabled
echo 2 > /proc/sys/kernel/numa_balancing
echo never > /sys/kernel/mm/transparent_hugepage/enabled
echo "$1" > /sys/kernel/mm/lru_gen/enabled
echo "$2" > /proc/sys/kernel/numa_balancing_promote_rate_limit_MBps
if [ "$7" = 700 ]; then
	echo 512M > /sys/block/zram0/disksize
	mkswap /dev/zram0
	swapon /dev/zram0
fi
/play/tiers "${7:-420}" "$3" "$4" "$5" "$6" $8
