#!/bin/sh
# Runs the measurements of docs/explanation/benchmarks.md one after the other.
#
#   bench/all.sh                     everything, with small numbers: some minutes
#   bench/all.sh --full              everything, at full length: some hours
#   bench/all.sh [--full] NAME...    only these: echo memory without-ffi sleep shell-line latency generator idle
#                                    arguments output tables tasks-bulk tasks-single tasks-objects tasks-mix tasks-cpu
#                                    tasks-echo tasks-memory tasks-start contexts postgres-select postgres-cells
#                                    postgres-far postgres-unit postgres-update postgres-rows postgres-parameter
#                                    postgres-stream postgres-copy postgres-sleep postgres-gaps postgres-cancel
#                                    postgres-acquire http-text http-text-same http-json http-echo http-one
#                                    http-connections http-two http-wait http-psr7 http-collide http-crowd
#                                    http-pieces http-pieces-gzip http-pieces-large http-idle http-soak http-slow
#                                    http-tls http-client aircraft-crud aircraft-latency aircraft-sleep
#                                    aircraft-certificates aircraft-bulk remote-bulk remote-single remote-recovery
#                                    remote-backlog
#   bench/all.sh --core              eight lines of Spindle alone in one table: echo memory tasks-bulk tasks-single
#                                    postgres-select http-text aircraft-crud remote-bulk; see bench/core.php for
#                                    its options
#   bench/all.sh --against DIR ...   each of Spindle's contestants in this checkout and in the one in DIR, with the
#                                    ratios; works with all of the above
#
# Environment variables: PHP is the PHP to measure, such as /usr/bin/php8.4. PHPS lists several for contexts, separated
# by blanks. PUMICE is the folder of Pumice's source. AUTOLOAD lists files through which PHP finds the peers of http,
# separated by blanks. UNDICI is the folder in which npm has installed undici. JSON is the folder for raw data.
set -eu
from=$PWD
cd "$(dirname "$0")/.."

# The options come before the names, in any order. The folder of --against is relative to the caller's directory.
php=${PHP:-php} full= core= against=
while :; do
    case ${1:-} in
        --full) full=yes ;;
        --core) core=yes ;;
        --against)
            [ $# -gt 1 ] || { echo 'bench/all.sh: --against needs a folder' >&2; exit 255; }
            case $2 in /*) against=$2 ;; *) against=$from/$2 ;; esac
            shift ;;
        *) break ;;
    esac
    shift
done
if [ -n "$core" ]; then
    exec "$php" bench/core.php ${against:+--against "$against"} ${JSON:+--json "$JSON/core.json"} "$@"
fi
many=1000 rounds=3 generated=20000 idle=10 arguments=100000 megabytes=1024 tasks=500
bulk=100000 single=500 objects=20000 mixed=2000 iterations=1000000 strings=50 memory=1000000 starts=2 samples=2
selects=20000 units=500 updates=5000 streamed=100000
seconds=1 soak=100000 transferred=256 cycles=20 aircraft=100000
remote=20000 kills=4 backlog=100000
if [ -n "$full" ]; then
    many=3000 rounds=7 generated=1000000 idle=60 arguments=1000000 megabytes=10240 tasks=1000
    bulk=2000000 single=5000 objects=100000 mixed=10000 iterations=10000000 strings=300 memory=10000000
    starts=10 samples=5
    selects=100000 units=5000 updates=50000 streamed=1000000
    seconds=3 soak=10000000 transferred=1024 cycles=200 aircraft=1000000
    remote=100000 kills=100 backlog=1000000
fi

title() {
    printf '\n## %s\n\n' "$*"
}

bench() {
    script=$1
    shift
    case $script in
        commands | tasks | postgres | http | http-client | aircraft | remote) set -- "$@" ${against:+--against "$against"} ;;
    esac
    "$php" "bench/$script.php" "$@" ${JSON:+--json "$JSON/$name.json"}
}

http() {
    set -- --only "$1" -n "$soak" --seconds "$seconds" --rounds "$rounds"
    for one in ${AUTOLOAD:-}; do
        set -- "$@" --autoload "$one"
    done
    bench http "$@"
}

aircraft() {
    bench aircraft --only "$1" -n "$aircraft" --cycles "$cycles" --seconds "$seconds" --rounds "$rounds" \
        ${JSON:+--html "$JSON/$name.html"}
}

remote() {
    bench remote --only "$1" -n "$remote" --kills "$kills" --backlog "$backlog" --rounds "$rounds"
}

measure() {
    name=$1
    case $name in
        echo)
            title 'echo hi, 8 at once, no additional memory: >= 0.95 of the limit, and above every peer'
            bench commands -n "$many" --rounds "$rounds" ;;
        memory)
            title 'The same while the process holds 500 MB: >= 0.97 of its rate at 0 MB; on PHP 8.2 >= 12 x the in-process pool'
            bench commands -n "$many" --rounds "$rounds" --memory 0,500 --start-method auto --peers proc_open ;;
        without-ffi)
            title 'Without FFI: >= the in-process pool at 0 MB on PHP 8.2, >= 0.95 of it on 8.4, the same rate at 500 MB'
            bench commands -n "$many" --rounds "$rounds" --memory 0,500 --start-method proc_open --peers proc_open ;;
        sleep)
            title 'Tasks that sleep 1 to 10 ms, 16 at once: >= 0.9 of the ideal, or of the limit where that is lower'
            bench commands -n "$many" --rounds "$rounds" -j 16 --workload sleep --peers proc_open,json-lines ;;
        shell-line)
            title '/bin/true as a shell line: >= 1.4 x sh -c in C'
            bench shell-line -n "$many" --rounds "$rounds" ;;
        latency)
            title 'One command at a time: < 1 ms above the limit'
            bench latency --rounds "$rounds" ;;
        generator)
            title 'Commands from a generator: process and launcher each under 40 MB'
            "$php" bench/generator.php -n "$generated" ;;
        idle)
            title 'An idle pool: < 50 ms of CPU in 60 s'
            "$php" bench/idle.php --seconds "$idle" ;;
        arguments)
            title 'A million arguments in few commands: >= 0.9 x xargs, in constant memory'
            bench arguments -n "$arguments" --rounds "$rounds" ;;
        output)
            title 'Much output from one command: identical, < 16 MB more memory'
            "$php" bench/output.php --megabytes "$megabytes" ;;
        tables)
            title "The tables of TaskRunner.php's benchmark"
            "$php" bench/task-runner.php --table -n "$tasks" --rounds "$rounds" ;;
        tasks-bulk)
            title 'No-op tasks, 1 to 8 workers: results in the order of the tasks and in the order of completion'
            bench tasks --only bulk -n "$bulk" --rounds "$rounds" ;;
        tasks-single)
            title 'One task at a time'
            bench tasks --only single -n "$single" --rounds "$rounds" ;;
        tasks-objects)
            title 'Invokable objects, at most 1,000 outcomes awaited'
            bench tasks --only objects -n "$objects" --rounds "$rounds" ;;
        tasks-mix)
            title 'One long task in 100: against the ideal and against plain forks'
            bench tasks --only mix -n "$mixed" --rounds "$rounds" ;;
        tasks-cpu)
            title "The 15 tasks of Pumice's example"
            bench tasks --only cpu --iterations "$iterations" --rounds "$rounds" ${PUMICE:+--pumice "$PUMICE"} ;;
        tasks-echo)
            title 'Strings of 1 MB to a worker and back'
            bench tasks --only echo -n "$strings" --rounds "$rounds" ;;
        tasks-memory)
            title 'Tasks from a generator: the same memory at the end as after a tenth of the tasks'
            bench tasks --only memory -n "$memory" ;;
        tasks-start)
            title 'The start of a pool, and the death of a worker'
            bench tasks --only start,death -n "$starts" --rounds "$rounds" ;;
        contexts)
            title 'Threads, forks, processes, and a worker that is used again'
            set --
            for one in ${PHPS:-$php}; do
                set -- "$@" --php "$(command -v "$one")"
            done
            bench contexts --samples "$samples" "$@" ;;
        postgres-select)
            title 'A row by its key, 64 fibers on 4 connections: >= 2.5 x ext-pgsql by hand with 8; one fiber on one: >= ext-pgsql'
            bench postgres --only select -n "$selects" --rounds "$rounds" ;;
        postgres-cells)
            title 'A row by its key, 8 to 1,024 fibers on 1 to 16 connections: each >= 0.8 of the best for its number of fibers'
            bench postgres --only cells --rounds "$rounds" ;;
        postgres-far)
            title '50 fibers, two connections, a round trip of 20 ms: <= 100 ms'
            bench postgres --only far --rounds "$rounds" ;;
        postgres-unit)
            title 'Units of 20 queries'
            bench postgres --only unit -n "$units" --rounds "$rounds" ;;
        postgres-update)
            title 'Updates, each by itself and in transactions'
            bench postgres --only update -n "$updates" --rounds "$rounds" ;;
        postgres-rows)
            title '5,000 rows of three types: >= 0.9 x ext-pgsql with pg_fetch_all and casts'
            bench postgres --only rows --rounds "$rounds" ;;
        postgres-parameter)
            title 'A parameter of 32 MiB to the server and back'
            bench postgres --only parameter --rounds "$rounds" ;;
        postgres-stream)
            title 'Rows streamed: < 16 MB more memory'
            bench postgres --only stream -n "$streamed" --rounds "$rounds" ;;
        postgres-copy)
            title 'Rows copied in and out: < 16 MB more memory'
            bench postgres --only copy -n "$streamed" --rounds "$rounds" ;;
        postgres-sleep)
            title '10 x pg_sleep(1) in ten fibers: <= 1.10 s'
            bench postgres --only sleep --rounds "$rounds" ;;
        postgres-gaps)
            title 'The longest gap between ticks: <= 20 ms'
            bench postgres --only gaps --rounds "$rounds" ;;
        postgres-cancel)
            title 'From a cancellation, or from close(), until the server runs and keeps nothing: <= 100 ms'
            bench postgres --only cancel --rounds "$rounds" ;;
        postgres-acquire)
            title '100 fibers that wait for one connection: in the order of their calls, no timeout more than 20 ms late'
            bench postgres --only acquire --rounds "$rounds" ;;
        http-text)
            title 'Plain text: >= Workerman, 2 x ReactPHP, 7 x amphp, 0.6 of the limit; <= 1/4 of the CPU of nginx with FPM'
            http text ;;
        http-text-same)
            title 'Plain text, identical requests'
            http text-same ;;
        http-json)
            title 'JSON'
            http json ;;
        http-echo)
            title 'A POST of 1 KB to the server and back: >= Workerman'
            http echo ;;
        http-one)
            title 'One client on one kept connection: p50 < 0.3 ms'
            http one ;;
        http-connections)
            title 'Plain text for 32 and for 256 connections'
            http connections ;;
        http-two)
            title 'Two processes: >= 1.8 x one'
            http two ;;
        http-wait)
            title 'A handler that waits for 10 ms, 256 at once'
            http wait ;;
        http-psr7)
            title 'Plain text answered with the response of nyholm/psr7: >= 0.68 x the native one'
            http psr7 ;;
        http-collide)
            title 'A JSON body whose keys collide: <= 20 ms of processor time'
            http collide ;;
        http-pieces)
            title 'A response in 1,000 small pieces'
            http pieces ;;
        http-pieces-gzip)
            title 'A response in 1,000 small pieces, compressed'
            http pieces-gzip ;;
        http-pieces-large)
            title 'A response in 16 pieces of 16 KiB'
            http pieces-large ;;
        http-crowd)
            title '1,100 idle connections: p99 of new connections of the same address <= 50 ms'
            http crowd ;;
        http-idle)
            title 'An idle connection: < 20 KB'
            http idle ;;
        http-soak)
            title 'Memory after very many requests: within 2 % of the memory after a tenth of the requests'
            http soak ;;
        http-slow)
            title '500 slow clients: p99 of the other clients < 2 x, all slow connections closed at the deadline'
            http slow ;;
        http-tls)
            title 'Plain text over TLS'
            http tls ;;
        http-client)
            title 'The HTTP client: >= 3 x Guzzle, >= 0.8 x undici; ten calls of 100 ms <= 120 ms;' \
                'an open stream of events < 40 KB; >= 0.7 x curl, in constant memory'
            bench http-client --rounds "$rounds" -n "$selects" --megabytes "$transferred" \
                ${UNDICI:+--undici "$UNDICI"} ;;
        aircraft-crud)
            title 'Create, read, update, delete: >= 3 x nginx with FPM, at <= 1/4 of its CPU, in less memory than 4 workers need'
            aircraft crud ;;
        aircraft-latency)
            title 'The same with a distant database: >= 20 x with 50 ms'
            aircraft latency ;;
        aircraft-sleep)
            title '/sleep?n=10: <= 1.10 s; 100 clients on 100 connections: <= 12 s'
            aircraft sleep ;;
        aircraft-certificates)
            title 'Light requests while four certificates are rendered: p99 < 3 x, no gap of the loop over 20 ms'
            aircraft certificates ;;
        aircraft-bulk)
            title 'Rows imported and exported: < 16 MB more memory'
            aircraft bulk ;;
        remote-bulk)
            title 'No-op tasks over an engine: >= 10,000/s durable, >= 14,000/s fast'
            remote bulk ;;
        remote-single)
            title 'One task at a time over an engine: p50 < 1.5 ms'
            remote single ;;
        remote-recovery)
            title 'From SIGKILL until the task runs again: p99 <= 1 s for a worker, <= 15 s for an agent'
            remote recovery ;;
        remote-backlog)
            title 'Claims from a long queue: p99 <= 1.5 x that of 1,000 jobs'
            remote backlog ;;
        *)
            echo "bench/all.sh: there is no measurement '$name'; the first lines of this file list all of them" >&2
            exit 255 ;;
    esac
}

[ $# -gt 0 ] || set -- echo memory without-ffi sleep shell-line latency generator idle arguments output \
    tables tasks-bulk tasks-single tasks-objects tasks-mix tasks-cpu tasks-echo tasks-memory tasks-start contexts \
    postgres-select postgres-cells postgres-far postgres-unit postgres-update postgres-rows postgres-parameter \
    postgres-stream postgres-copy postgres-sleep postgres-gaps postgres-cancel postgres-acquire \
    http-text http-text-same http-json http-echo http-one http-connections http-two http-wait http-psr7 http-collide \
    http-pieces http-pieces-gzip http-pieces-large http-crowd http-idle http-soak http-slow http-tls http-client \
    aircraft-crud aircraft-latency aircraft-sleep aircraft-certificates aircraft-bulk \
    remote-bulk remote-single remote-recovery remote-backlog
for name; do
    measure "$name"
done
