# Runs a command as the only thing on a small machine of its own, which the caller made with unshare(1): its own process
# ids, mounts, System V IPC and network. Usage: sh isolated.sh TEMPORARY-DIRECTORY root|user COMMAND [ARGUMENT...]
#
# This shell is the first process of that machine: it reaps orphans, and when it ends, the kernel kills what is left.
temporary=$1 user=$2
shift 2
export TMPDIR="$temporary"

mount -t tmpfs -o mode=1777 spindle-tests "$temporary" &&
    mount -t tmpfs -o mode=1777 spindle-tests /dev/shm &&
    ip link set lo up || exit 99

# Without a foreground job of its own the shell would be replaced by the command, which does not reap.
if [ "$user" = root ]; then
    "$@"
else
    setpriv --inh-caps=-all --ambient-caps=-all --bounding-set=-all "$@"
fi
exit $?
