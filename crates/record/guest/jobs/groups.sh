# refault record and verify --play in memory cgroups of version 2, as most machines have them.
failed=0
check() { # what, then a condition
	what=$1; shift
	if "$@"; then echo "ok: $what"; else echo "FAILED: $what"; failed=1; fi
}
has() { grep -q "$1" "$2"; }
number() { sed -n "s/^ *\"$1\": \([0-9.]*\),*$/\1/p" "$2" | head -n 1; }
groups=/sys/fs/cgroup
uname -r
dd if=/dev/urandom of=file bs=1M count=48 status=none
sync
check "no group has a limit of memory yet" [ -z "$(cat $groups/cgroup.subtree_control)" ]

cold() { sync; echo 3 >/proc/sys/vm/drop_caches; }
cold
refault record --memory 16M --json -o own.parquet -- sh -c 'cat file file >/dev/null' >own.json
cat own.json
check "the limit of the recording" [ "$(number memory_max own.json)" = 16777216 ]
check "all reads are there" [ "$(number accesses own.json)" -ge $((2 * 48 * 256)) ]
check "nothing is lost" has '"lost": 0' own.json
check "the group is removed" [ -z "$(ls -d $groups/refault-* 2>/dev/null)" ]
check "the controller is on" has memory $groups/cgroup.subtree_control
refault verify own.parquet >own.txt; cat own.txt
check "the kernel evicted" has '^evicted pages  *[1-9]' own.txt
check "refaults of the group are there" has '^refaults  *[0-9]' own.txt

# A program in a group below the one that is recorded, which moves there itself and ends at once.
mkdir $groups/outer; echo +memory >$groups/outer/cgroup.subtree_control
echo 20M >$groups/outer/memory.max
refault record --cgroup /outer --json -o outer.parquet >outer.json & recorder=$!
sleep 2
mkdir $groups/outer/inner; echo 12M >$groups/outer/inner/memory.high
for i in 1 2 3 4 5; do
	cat file >/dev/null # is not in the group
	sh -c "echo 0 >$groups/outer/inner/cgroup.procs; dd if=file of=/dev/null bs=1M count=4 status=none"
	sh -c "echo 0 >$groups/outer/inner/cgroup.procs; exec dd if=file of=/dev/null bs=1M count=4 status=none"
done
sleep 1; kill -INT $recorder; wait $recorder
cat outer.json
check "what moved into the group is there, and nothing else" [ "$(number accesses outer.json)" -ge $((10 * 4 * 256)) ]
check "what did not is not" [ "$(number accesses outer.json)" -lt $((10 * 4 * 256 + 3000)) ]
check "the limit is that of the group" [ "$(number memory_max outer.json)" = 20971520 ]
refault record --cgroup /outer/inner --json -o inner.parquet -- cat file >/dev/null 2>inner.err
check "a program starts in a group" [ -s inner.parquet ]
refault verify --json inner.parquet >inner.json
check "memory.high is a limit" [ "$(number memory_pages inner.json)" = 3072 ]

refault trace generate --phase '60000: A:zipf:8000' zipf.parquet
refault verify --play zipf.parquet --memory 8M,16M --repeats 2 >play.txt 2>&1; cat play.txt
check "a trace is played" has '^| zipf | 6' play.txt
check "its groups are removed" [ -z "$(ls -d $groups/refault-* 2>/dev/null)" ]
check "and this process is where it was" has '^0::/$' /proc/self/cgroup
cp *.parquet *.json *.txt /out
exit $failed
