# Job of a guest with two memory tiers; arguments: multi-gen LRU (7 or 0), limit in MB/s, seconds, pattern, share,
# threads.
echo 1 > /sys/kernel/mm/numa/demotion_enabled
echo 2 > /proc/sys/kernel/numa_balancing
echo never > /sys/kernel/mm/transparent_hugepage/enabled
echo "$1" > /sys/kernel/mm/lru_gen/enabled
echo "$2" > /proc/sys/kernel/numa_balancing_promote_rate_limit_MBps
/play/tiers 420 "$3" "$4" "$5" "$6"
