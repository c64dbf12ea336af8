# PostgreSQL with the table of pgbench, 540 MB: $LOAD is reads (points by a zipf distribution) or
# writes (TPC-B).
. "$HERE/common.sh"
PATH=$(echo /usr/lib/postgresql/*/bin):$PATH
scale=$((36 / SCALE))
rows=$((100000 * scale))
as_postgres() { setpriv --reuid postgres --regid postgres --init-groups "$@"; }
server="-D pg -k $WORK -c listen_addresses= -c shared_buffers=16MB -c max_connections=20 -c autovacuum=off \
	-c max_wal_size=128MB -c min_wal_size=64MB -c jit=off -c max_parallel_workers=0 -c huge_pages=off"
ready() { until pg_isready -q -h "$WORK" -U postgres; do sleep 0.1; done; }
stop() {
	kill -INT "$(head -n 1 pg/postmaster.pid)"
	while [ -e pg/postmaster.pid ]; do sleep 0.1; done
}
# So many transactions, by two clients.
bench() { pgbench -n -h "$WORK" -U postgres -c 2 -j 1 -t $(($2 / 2 / SCALE)) --random-seed="$1" -M prepared "$3" "$4" postgres >"$WORK/pgbench" 2>&1; }
reads() {
	printf '\\set aid 1 + permute(random_zipfian(1, %d, 1.05), %d)\nSELECT abalance FROM pgbench_accounts WHERE aid = :aid;\n' \
		$rows $rows >"$WORK/zipf.sql"
	bench "$1" "$2" -f "$WORK/zipf.sql"
}
writes() { bench "$1" "$2" -b tpcb-like; }
case $1 in
prepare)
	mkdir pg
	chown postgres pg
	chmod 700 pg
	as_postgres initdb -D pg -U postgres -A trust --no-sync >/dev/null
	chown postgres "$WORK"
	as_postgres postgres $server >/dev/null 2>&1 &
	ready
	pgbench -q -i -s $scale -h "$WORK" -U postgres postgres >/dev/null 2>&1
	psql -q -h "$WORK" -U postgres -c 'vacuum freeze' -c checkpoint postgres
	stop
	;;
serve)
	chown postgres "$WORK"
	exec setpriv --reuid postgres --regid postgres --init-groups postgres $server >"$WORK/server" 2>&1
	;;
ready) ready ;;
load)
	case $2 in
	warm) $LOAD 1 "$WARM" ;;
	measure) $LOAD 2 "$COUNT" ;;
	esac
	;;
stop) stop ;;
esac
