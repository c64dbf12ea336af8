# nginx, 30,000 files by sendfile, some more often than others.
. "$HERE/common.sh"
files=$((30000 / SCALE))
case $1 in
prepare) python files www $files 16000 ;;
serve)
	cat >"$WORK/nginx.conf" <<CONF
daemon off;
user root;
worker_processes 1;
pid $WORK/nginx.pid;
error_log $WORK/nginx.log;
events { worker_connections 64; }
http {
	access_log off;
	sendfile on;
	keepalive_requests 1000000;
	server { listen unix:$WORK/nginx.socket; root $PWD/www; }
}
CONF
	rm -f "$WORK/nginx.socket"
	exec nginx -e "$WORK/nginx.log" -c "$WORK/nginx.conf"
	;;
ready) until [ -S "$WORK/nginx.socket" ] && [ -s "$WORK/nginx.pid" ]; do sleep 0.1; done ;;
load) python gets "$WORK/nginx.socket" $files $((COUNT / SCALE)) ;;
stop) stop_by "$WORK/nginx.pid" QUIT ;;
esac
