# One case: parameters come from the kernel's command line, as variables of init.
echo $LRU > /sys/kernel/mm/lru_gen/enabled
echo +memory +io +cpu > /sys/fs/cgroup/cgroup.subtree_control
case $SWAP in
zram) echo lz4 > /sys/block/zram0/comp_algorithm; echo 256M > /sys/block/zram0/disksize; mkswap /dev/zram0; swapon /dev/zram0;;
disk) mkswap /dev/nullb1; swapon /dev/nullb1;;
esac
mkdir /sys/fs/cgroup/g
[ -n "$MAX" ] && echo $MAX > /sys/fs/cgroup/g/memory.max
[ -n "$HIGH" ] && echo $HIGH > /sys/fs/cgroup/g/memory.high
head -3 /proc/meminfo; uname -r
/play/press g $KIND $PATTERN $MIB $HOT $SHARE $TASKS $WARM $N $WORK $SEED > /out/press.txt
