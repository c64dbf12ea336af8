# programs: sqlite3
# files: data/orders.sql
# refault record --touches: touches of memory in place, by each method that this kernel has.
failed=0
check() { # what, then a condition
	what=$1; shift
	if "$@"; then echo "ok: $what"; else echo "FAILED: $what"; failed=1; fi
}
has() { grep -q -- "$1" "$2"; }
number() { sed -n "s/^ *\"$1\": \([0-9.]*\),*$/\1/p" "$2" | head -n 1; }
uname -r
refault doctor | grep -A 3 'touches of memory by'
sqlite3 orders.db <orders.sql
# A table in anonymous memory, of which a part is written again and again; and a mapped file, of
# which a part is read.
cat >memory.sql <<'SQL'
create table t(id integer primary key, n, filler);
with recursive i(n) as (select 1 union all select n + 1 from i where n < 40000)
insert into t select n, 0, hex(randomblob(100)) from i;
SQL
for i in $(seq 150); do echo "update t set n = n + 1 where id < 500;"; done >>memory.sql
echo 'pragma mmap_size = 268435456;' >mapped.sql
for i in $(seq 400); do echo "select sum(length(note)) from orders where id < 9000;"; done >>mapped.sql
tried=0
for by in idle soft-dirty write-protect; do
	refault doctor --json >doctor.json
	sed -n "/\"$by\": {/,/}/p" doctor.json | grep -q '"works": true' || { echo "no $by here"; continue; }
	tried=$((tried + 1))
	record() { refault record --memory 24M --json --touches 200ms --touches-by $by -o "$1.parquet" -- sqlite3 $2 ".read $3" >"$1.json" 2>"$1.err"; }
	record memory-$by :memory: memory.sql; cat memory-$by.json memory-$by.err
	check "$by: it is said" has "\"touches_by\": \"$by\"" memory-$by.json
	check "$by: nothing is lost" has '"lost": 0' memory-$by.json
	refault trace info memory-$by.parquet >memory-$by.txt; cat memory-$by.txt
	check "$by: memory is an object" has '^memory of sqlite3' memory-$by.txt
	sampled=$(sed -n 's/^sampled  *\([0-9,]*\) .*/\1/p' memory-$by.txt | tr -d ,)
	check "$by: what is written again is seen" [ "${sampled:-0}" -gt 100 ]
	record mapped-$by orders.db mapped.sql; cat mapped-$by.json mapped-$by.err
	refault verify mapped-$by.parquet >mapped-$by.txt; cat mapped-$by.txt
	refault verify --json mapped-$by.parquet >verified.json
	touches=$(number touches verified.json)
	case $by in
	idle) check "$by: reads of a mapped file are seen" [ "${touches:-0}" -gt 500 ] ;;
	*) check "$by: reads of a mapped file are not" [ "${touches:-0}" -lt 100 ] ;;
	esac
done
check "there is a method" [ $tried -gt 0 ]
cp *.parquet *.json *.txt /out
exit $failed
