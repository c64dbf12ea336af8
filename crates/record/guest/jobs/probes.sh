# programs: sqlite3
# files: data/orders.sql data/orders-day.sql
# refault record on a kernel before 6.12, which takes probes: what is recorded, and that they are removed.
failed=0
check() { # what, then a condition
	what=$1; shift
	if "$@"; then echo "ok: $what"; else echo "FAILED: $what"; failed=1; fi
}
has() { grep -q -- "$1" "$2"; }
number() { sed -n "s/^ *\"$1\": \([0-9.]*\),*$/\1/p" "$2" | head -n 1; }
probes=/sys/kernel/tracing/kprobe_events
uname -r
refault doctor | tail -n 8
check "doctor says that it works with probes" sh -c "refault doctor | grep -q 'works here with probes of its own'"
dd if=/dev/urandom of=file bs=1M count=48 status=none
cold() { sync; echo 3 >/proc/sys/vm/drop_caches; }
cold
refault record --memory 16M --json -o own.parquet -- sh -c 'cat file >/dev/null; dd if=file of=/dev/null bs=4k skip=12000 status=none; dd if=file of=/dev/null bs=4k skip=12000 status=none' >own.json
cat own.json
# 288 pages are the end of the file: the first reads of them miss or were read ahead, the others hit.
check "all reads are there" [ "$(number accesses own.json)" -ge $((48 * 256 + 2 * 288)) ]
check "and not much more" [ "$(number accesses own.json)" -lt $((48 * 256 + 2 * 288 + 3000)) ]
check "nothing is lost" has '"lost": 0' own.json
check "the probes are removed" [ ! -s $probes ]
refault verify own.parquet >own.txt; cat own.txt
refault record --for 60s --all -o killed.parquet & recorder=$!
sleep 3
check "they are there while it records" has refault_$recorder/read $probes
kill -9 $recorder; sleep 3
check "and gone when it was killed" [ ! -s $probes ]
echo "p:refault_4194303/read filemap_read" >$probes
refault record -o next.parquet -- cat file >/dev/null
check "what was left all the same the next one removes" [ ! -s $probes ]
sqlite3 orders.db <orders.sql
cold
refault record --memory 24M --json -o sqlite.parquet -- sqlite3 orders.db '.read orders-day.sql' >sqlite.json
refault verify sqlite.parquet >sqlite.txt; cat sqlite.txt
if [ -e /sys/kernel/mm/lru_gen/enabled ]; then
	echo 7 >/sys/kernel/mm/lru_gen/enabled; cold
	refault record --memory 24M --json -o sqlite-mglru.parquet -- sqlite3 orders.db '.read orders-day.sql' >sqlite-mglru.json
	refault verify sqlite-mglru.parquet >sqlite-mglru.txt; cat sqlite-mglru.txt
fi
cp *.parquet *.json *.txt /out
exit $failed
