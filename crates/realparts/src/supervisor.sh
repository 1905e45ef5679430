# Becomes a server, and leaves a watcher behind that ends it when standard input closes, which the kernel does when
# our parent ends.
# usage: sh supervisor.sh SIGNAL GRACE FOLDER PROGRAM [ARGUMENT...]
#   SIGNAL  asks the server to end; GRACE: tenths of a second before KILL; FOLDER: removed afterwards.
signal=$1 grace=$2 folder=$3
shift 3
exec 3<&0 </dev/null

# True until process $$, the server, is gone or $1 tenths of a second have passed.
outlasts() {
	left=$1
	while [ "$left" -gt 0 ] && kill -0 $$; do
		sleep 0.1
		left=$((left - 1))
	done
	kill -0 $$
}

# The watcher is in the server's process group, whose number is the server's: so the number stays taken, and the
# signals below reach no stranger, even if the server ended long before.
(
	trap '' HUP INT TERM
	while read -r _ <&3; do :; done
	kill -s "$signal" $$
	outlasts "$grace" && kill -s KILL $$
	outlasts 50
	# Servers of one instance have folders side by side; the last to go takes the common one along.
	cd /
	rm -rf "$folder"
	rmdir "$(dirname "$folder")"
) >/dev/null 2>&1 &

exec "$@" 3<&-
