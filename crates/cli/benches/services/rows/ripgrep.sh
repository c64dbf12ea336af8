# ripgrep over 12,000 files of 25 KB, twice, and five times over a tenth of them.
. "$HERE/common.sh"
look() { rg -j1 -c needle "$@" >/dev/null || [ $? = 1 ]; }
case $1 in
prepare) python files tree $((12000 / SCALE)) 25000 ;;
serve)
	look tree
	for i in 1 2 3 4 5; do look tree/0*; done
	look tree
	for i in 1 2 3 4 5; do look tree/1*; done
	;;
esac
