/*
 * Measures how many programs a second this machine can start, with their outputs and exit codes. The rates of command
 * pools are compared with this limit. Uses posix_spawn, one pipe for each output, one epoll instance, and SIGCHLD
 * through a signalfd, and does as little as possible besides.
 *
 *     limit COUNT CONCURRENCY PROGRAM [ARGUMENT...]     an argument {} becomes the command's number
 *     limit COUNT CONCURRENCY - < LINES                 sh -c runs each line
 *
 * Prints the commands per second, the median time in microseconds from the start of a command until its exit was
 * reaped, the number of bytes from standard output, and the number of commands that did not exit with 0.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

enum { OUT, ERR };

struct job { pid_t pid; int ends[2]; double started; };

static struct job *jobs;
static int concurrency, epoll, null;
static long long bytes;
static char buffer[65536];
static posix_spawnattr_t attributes;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec / 1e9;
}

static int compare(const void *a, const void *b)
{
    double d = *(const double *)a - *(const double *)b;
    return d < 0 ? -1 : d > 0;
}

static void fail(const char *what)
{
    perror(what);
    exit(1);
}

static char **read_lines(int count)
{
    char **lines = calloc(count, sizeof *lines);
    for (int i = 0; i < count; i++) {
        size_t size = 0;
        ssize_t length = getline(&lines[i], &size, stdin);
        if (length < 0) {
            fprintf(stderr, "limit: %d lines expected, %d read\n", count, i);
            exit(255);
        }
        if (length && lines[i][length - 1] == '\n') lines[i][length - 1] = 0;
    }
    return lines;
}

/* Gives commands the attributes that a pool gives: a separate process group, no blocked signals, default SIGPIPE. */
static void set_attributes(void)
{
    sigset_t none, ignored;
    sigemptyset(&none);
    sigemptyset(&ignored);
    sigaddset(&ignored, SIGPIPE);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
    posix_spawnattr_setpgroup(&attributes, 0);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &ignored);
}

static void start(struct job *job, char **command)
{
    int pipes[2][2];
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, null, 0);
    for (int end = OUT; end <= ERR; end++) {
        if (pipe2(pipes[end], O_CLOEXEC)) fail("pipe2");
        fcntl(pipes[end][0], F_SETFL, O_NONBLOCK);
        posix_spawn_file_actions_adddup2(&actions, pipes[end][1], end + 1);
    }
    job->started = now();
    errno = posix_spawnp(&job->pid, command[0], &actions, &attributes, command, environ);
    if (errno) fail(command[0]);
    posix_spawn_file_actions_destroy(&actions);
    for (int end = OUT; end <= ERR; end++) {
        close(pipes[end][1]);
        job->ends[end] = pipes[end][0];
        struct epoll_event event = { .events = EPOLLIN, .data.u64 = (job - jobs) * 2 + end };
        epoll_ctl(epoll, EPOLL_CTL_ADD, job->ends[end], &event);
    }
}

/* Reads once for an event, and until the pipe is empty after the exit of the command. */
static void take(struct job *job, int end, int ended)
{
    if (job->ends[end] < 0) return;
    ssize_t length;
    do {
        length = read(job->ends[end], buffer, sizeof buffer);
        if (length > 0 && end == OUT) bytes += length;
    } while (ended && length > 0);
    if (length == 0 || ended) {
        close(job->ends[end]);
        job->ends[end] = -1;
    }
}

int main(int argc, char **argv)
{
    if (argc < 4) {
        fprintf(stderr, "usage: limit COUNT CONCURRENCY PROGRAM [ARGUMENT...] | -\n");
        return 255;
    }
    int count = atoi(argv[1]), started = 0, ended = 0, failed = 0, slot = -1;
    concurrency = atoi(argv[2]);
    jobs = calloc(concurrency, sizeof *jobs);
    double *times = calloc(count, sizeof *times);
    char number[16], *shell[] = { "/bin/sh", "-c", NULL, NULL }, **command = argv + 3;
    char **lines = strcmp(command[0], "-") ? NULL : read_lines(count);
    for (int i = 0; command[i]; i++) if (!strcmp(command[i], "{}")) slot = i;

    sigset_t mask;
    sigemptyset(&mask);
    sigaddset(&mask, SIGCHLD);
    sigprocmask(SIG_BLOCK, &mask, NULL);
    int signals = signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
    epoll = epoll_create1(EPOLL_CLOEXEC);
    null = open("/dev/null", O_RDWR | O_CLOEXEC);
    struct epoll_event event = { .events = EPOLLIN, .data.u64 = -1 }, events[64];
    epoll_ctl(epoll, EPOLL_CTL_ADD, signals, &event);
    set_attributes();

    double begin = now();
    while (ended < count) {
        for (int i = 0; i < concurrency && started < count; i++) {
            if (jobs[i].pid) continue;
            if (lines) { shell[2] = lines[started]; command = shell; }
            if (slot >= 0) { snprintf(number, sizeof number, "%d", started); command[slot] = number; }
            start(&jobs[i], command);
            started++;
        }
        int ready = epoll_wait(epoll, events, 64, -1), child = 0;
        for (int e = 0; e < ready; e++) {
            if (events[e].data.u64 == (uint64_t)-1) child = 1;
            else take(&jobs[events[e].data.u64 / 2], events[e].data.u64 % 2, 0);
        }
        if (!child) continue;
        while (read(signals, buffer, sizeof(struct signalfd_siginfo) * 16) > 0) continue;
        int status;
        for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
            for (int i = 0; i < concurrency; i++) {
                if (jobs[i].pid != pid) continue;
                take(&jobs[i], OUT, 1);
                take(&jobs[i], ERR, 1);
                times[ended++] = now() - jobs[i].started;
                failed += status != 0;
                jobs[i].pid = 0;
            }
        }
    }
    double elapsed = now() - begin;
    qsort(times, count, sizeof *times, compare);
    printf("%.1f %.0f %lld %d\n", count / elapsed, times[count / 2] * 1e6, bytes, failed);
    return 0;
}
