# programs: sqlite3 fio rg split
# files: data/orders.sql data/orders-day.sql
# Recordings of programs in groups of version 2, of each at several limits, by both kinds of lists:
# for the standing table (`cargo bench -p refault-cli --bench services -- --from OUT`).
set -e
group=/sys/fs/cgroup/service
sqlite3 orders.db <orders.sql
dd if=/dev/urandom of=big bs=1M count=96 status=none
dd if=/dev/urandom of=rest bs=1M count=48 status=none
mkdir tree
split -a 4 -b 16384 rest tree/
rm rest
cold() { sync; echo 3 >/proc/sys/vm/drop_caches; }
fio='--name=r --filename=big --size=96M --bs=4k --thread --randseed=7 --rw=randread --random_distribution=zipf:0.9'
run() { # name, MiB, program: from its start
	name=$1 limit=$2; shift 2
	cold
	refault record --memory ${limit}M -o /out/$name-$lists-$limit.parquet -- "$@" >/tmp/said
}
# The same queries twice in one process: the second time is recorded.
attached() { # MiB
	cold
	echo +memory >/sys/fs/cgroup/cgroup.subtree_control
	mkdir $group
	echo ${1}M >$group/memory.max
	rm -f asked answers; mkfifo asked
	sh -c "echo 0 >$group/cgroup.procs; exec sqlite3 orders.db" <asked >answers & server=$!
	exec 3>asked
	ask() { printf '.read orders-day.sql\n.print end of %s\n' $1 >&3; until grep -q "end of $1" answers; do sleep 0.2; done; }
	ask warm
	refault record --cgroup /service -o /out/sqlite-attached-$lists-$1.parquet & recorder=$!
	sleep 4
	ask measured
	kill -INT $recorder; wait $recorder
	exec 3>&-
	wait $server
	rmdir $group
}
for mode in 7 n; do
	echo $mode >/sys/kernel/mm/lru_gen/enabled
	lists=mglru; [ $mode = n ] && lists=lru
	for limit in 18 24 36; do
		run sqlite $limit sqlite3 orders.db '.read orders-day.sql'
		attached $limit
	done
	for limit in 24 32 48; do
		run ripgrep $limit sh -c 'for i in 1 2 3; do rg -j1 -c needle tree; rg -j1 -c needle tree/aaa*; done; true'
	done
	for limit in 32 48 64; do
		run fio-zipf $limit fio $fio --ioengine=psync --fadvise_hint=0 --io_size=256M
		run fio-mapped $limit fio $fio --ioengine=mmap --fadvise_hint=0 --io_size=128M
	done
done
