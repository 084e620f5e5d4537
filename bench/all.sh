#!/bin/sh
# Measures what Spindle's commands claim, one line of docs/explanation/benchmarks.md after the other.
#
#   bench/all.sh                     everything, small: some minutes
#   bench/all.sh --full              everything, at full length: about two hours
#   bench/all.sh [--full] NAME...    only these: echo memory without-ffi sleep shell-line latency generator idle output tables
#
# PHP=/usr/bin/php8.4 bench/all.sh measures another PHP. Raw data goes to the folder that JSON names, where it is set.
set -eu
cd "$(dirname "$0")/.."

php=${PHP:-php}
many=1000 rounds=3 generated=20000 idle=10 megabytes=1024 tasks=500
if [ "${1:-}" = --full ]; then
    shift
    many=3000 rounds=7 generated=1000000 idle=60 megabytes=10240 tasks=1000
fi

title() {
    printf '\n## %s\n\n' "$*"
}

bench() {
    script=$1
    shift
    "$php" "bench/$script.php" "$@" ${JSON:+--json "$JSON/$name.json"}
}

measure() {
    name=$1
    case $name in
        echo)
            title 'echo hi, 8 at once, nothing held: >= 0.95 of the limit, and above every peer'
            bench commands -n "$many" --rounds "$rounds" ;;
        memory)
            title 'The same with 500 MB held: >= 0.97 of its own at 0 MB, and on PHP 8.2 >= 12 x the in-process pool'
            bench commands -n "$many" --rounds "$rounds" --memory 0,500 --start auto --peers proc_open ;;
        without-ffi)
            title 'Without FFI: >= the in-process pool at 0 MB on PHP 8.2, >= 0.95 of it on 8.4, flat in memory'
            bench commands -n "$many" --rounds "$rounds" --memory 0,500 --start proc_open --peers proc_open ;;
        sleep)
            title 'Tasks that sleep 1 to 10 ms, 16 at once: >= 0.9 of the ideal, or of the limit where that is lower'
            bench commands -n "$many" --rounds "$rounds" -j 16 --tasks sleep --peers proc_open,json-lines ;;
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
        output)
            title 'Much output from one command: identical, < 16 MB more memory'
            "$php" bench/output.php --megabytes "$megabytes" ;;
        tables)
            title "The tables of TaskRunner.php's benchmark"
            "$php" bench/task-runner.php --table -n "$tasks" --rounds "$rounds" ;;
        *)
            echo "bench/all.sh: there is no '$name'; the first lines of this file name all" >&2
            exit 255 ;;
    esac
}

[ $# -gt 0 ] || set -- echo memory without-ffi sleep shell-line latency generator idle output tables
for name; do
    measure "$name"
done
