# redis: starts from an append-only file, is written to and read, writes that file anew and a dump.
. "$HERE/common.sh"
keys=$((60000 / SCALE))
server() {
	exec redis-server --port 0 --unixsocket "$WORK/redis.socket" --appendonly yes --appendfsync everysec --save "" \
		--auto-aof-rewrite-percentage 0 >"$WORK/redis.log"
}
ask() { redis-cli -s "$WORK/redis.socket" "$@"; }
ready() { until ask ping 2>/dev/null | grep -q PONG; do sleep 0.1; done; }
stop() {
	ask shutdown nosave >/dev/null 2>&1 || true
	while ask ping >/dev/null 2>&1; do sleep 0.1; done
}
write() { redis-benchmark -s "$WORK/redis.socket" -t "$1" -n $(($2 / SCALE)) -r $keys -d 400 -c 1 -P 16 -q >/dev/null; }
# The end of what redis does in the background.
done_with() { while ask info persistence | grep -q "$1:1"; do sleep 0.2; done; }
case $1 in
prepare)
	server &
	ready
	write set 300000
	stop
	;;
serve)
	rm -f "$WORK/redis.socket"
	server
	;;
ready) ready ;;
load)
	write set,get 100000
	ask bgrewriteaof >/dev/null
	sleep 1
	done_with aof_rewrite_in_progress
	write set,get 100000
	ask bgsave >/dev/null
	sleep 1
	done_with rdb_bgsave_in_progress
	;;
stop) stop ;;
esac
