# Read by the scripts of rows. A script is run as `sh ROW.sh VERB`, in the folder of its data:
#   prepare        makes the data, once
#   serve          is the program, in the foreground, in the group
#   ready          ends when it answers
#   load PHASE     works with it from outside of the group; PHASE is warm or measure
#   stop           has it end
#   other          is what a second group does beside it
# $HERE is the folder of the scripts, $WORK one for what is not data, $SCALE divides sizes and counts.
set -eu
SCALE=${SCALE:-1}
# The clean end of a program by the number that it left in a file.
stop_by() {
	pid=$(cat "$1")
	kill -"$2" "$pid"
	while kill -0 "$pid" 2>/dev/null; do sleep 0.1; done
}
# A script of Python in this folder.
python() { script=$1; shift; python3 "$HERE/$script.py" "$@"; }
