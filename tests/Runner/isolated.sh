# Runs a command in namespaces that the caller made with unshare(1): process ids, mounts, System V IPC and network.
# Usage: sh isolated.sh TEMPORARY-DIRECTORY root|user COMMAND [ARGUMENT...]
#
# This shell is process 1 of the namespace: it reaps orphans, and when it ends, the kernel kills all other processes.
temporary=$1 user=$2
shift 2
export TMPDIR="$temporary"

mount -t tmpfs -o mode=1777 spindle-tests "$temporary" &&
    mount -t tmpfs -o mode=1777 spindle-tests /dev/shm &&
    ip link set lo up || exit 99

# The shell must not replace itself by the command, which would not reap orphans.
# The command starts with the standard descriptors only.
set -- bash -c '
    for fd in /proc/self/fd/*; do
        fd=${fd##*/}
        [ "$fd" -le 2 ] || eval "exec $fd>&-"
    done
    exec "$@"' bash "$@"

# A session of its own keeps signals to a process group away from the runner.
if [ "$user" = root ]; then
    setsid "$@"
else
    setsid setpriv --inh-caps=-all --ambient-caps=-all --bounding-set=-all "$@"
fi
exit $?
