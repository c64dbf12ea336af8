# programs: sqlite3 fio
# files: data/orders.sql data/orders-day.sql
# Recordings of programs with multi-gen LRU and with two lists, each from a cold cache.
set -e
sqlite3 orders.db <orders.sql
fio=' --name=r --filename=big --size=96M --bs=4k --ioengine=psync --thread --randseed=7'
dd if=/dev/urandom of=big bs=1M count=96 status=none
record() { # name, MiB, program
	name=$1 limit=$2; shift 2
	sync; echo 3 >/proc/sys/vm/drop_caches
	refault record --memory ${limit}M -o /out/$name-$limit-$lists.parquet -- "$@" >/tmp/said
}
for mode in 7 n; do
	echo $mode >/sys/kernel/mm/lru_gen/enabled
	lists=mglru; [ $mode = n ] && lists=lru
	for limit in 24 36; do record sqlite $limit sqlite3 orders.db '.read orders-day.sql'; done
	for limit in 32 64; do
		record fio-zipf $limit fio $fio --rw=randread --random_distribution=zipf:0.9 --io_size=512M
		record fio-uniform $limit fio $fio --rw=randread --fadvise_hint=0 --io_size=256M
	done
	record fio-sequential 64 fio $fio --rw=read --bs=128k --loops=3
done
