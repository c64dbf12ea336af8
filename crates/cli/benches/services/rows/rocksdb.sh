# RocksDB, 420 MB of values of 400 bytes, read at random, some keys more often than others.
. "$HERE/common.sh"
keys=$((1000000 / SCALE))
bench() { exec db_bench --db=db --num=$keys --value_size=400 --compression_type=none --cache_size=8388608 "$@" >"$WORK/db_bench" 2>&1; }
reads() { bench --benchmarks=readrandom --use_existing_db=1 --readonly=1 --threads=1 --read_random_exp_range=4 --reads=$(($2 / SCALE)) --seed="$1"; }
case $1 in
prepare) bench --benchmarks=fillrandom,compact --disable_wal=1 --seed=3 --threads=1 ;;
serve) reads 7 "$COUNT" ;;
other) reads 8 100000000 ;;
esac
