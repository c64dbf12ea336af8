# A mapped file of 480 MB of which pages are read at random: $POWER 1 is uniform, 3 skewed.
. "$HERE/common.sh"
case $1 in
prepare)
	cc -O1 -o mapped "$HERE/mapped.c"
	head -c $((480000000 / SCALE)) /dev/urandom >data
	;;
serve) exec ./mapped data $((COUNT / SCALE)) "$POWER" ;;
esac
