/*
 * The rate at which this machine starts a program, has its output and its exit: what a pool of commands is measured
 * against. posix_spawn, one pipe for each output, one epoll instance, SIGCHLD through a signalfd; as little else as can be.
 *
 *     limit COUNT CONCURRENCY PROGRAM [ARGUMENT...]
 *
 * An argument {} becomes the command's number. Prints the commands per second, and the median time in microseconds from
 * a start to its reaped exit.
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

struct job { pid_t pid; int out, err; double started; };

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

int main(int argc, char **argv)
{
    if (argc < 4) {
        fprintf(stderr, "usage: limit COUNT CONCURRENCY PROGRAM [ARGUMENT...]\n");
        return 255;
    }
    int count = atoi(argv[1]), concurrency = atoi(argv[2]), started = 0, ended = 0;
    struct job *jobs = calloc(concurrency, sizeof *jobs);
    double *times = calloc(count, sizeof *times);
    char number[16], buffer[65536];
    char **command = argv + 3;
    int slot = -1;
    for (int i = 0; command[i]; i++) if (!strcmp(command[i], "{}")) slot = i;

    sigset_t none, all, mask;
    sigemptyset(&none); sigfillset(&all); sigemptyset(&mask); sigaddset(&mask, SIGCHLD);
    sigprocmask(SIG_BLOCK, &mask, NULL);
    int signals = signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK), epoll = epoll_create1(EPOLL_CLOEXEC);
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    struct epoll_event event = { .events = EPOLLIN, .data.fd = signals }, events[64];
    epoll_ctl(epoll, EPOLL_CTL_ADD, signals, &event);

    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
    posix_spawnattr_setpgroup(&attributes, 0);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &all);

    double begin = now();
    while (ended < count) {
        for (int i = 0; i < concurrency && started < count; i++) {
            if (jobs[i].pid) continue;
            int out[2], err[2];
            if (pipe2(out, O_CLOEXEC) || pipe2(err, O_CLOEXEC)) fail("pipe2");
            fcntl(out[0], F_SETFL, O_NONBLOCK);
            fcntl(err[0], F_SETFL, O_NONBLOCK);
            posix_spawn_file_actions_t actions;
            posix_spawn_file_actions_init(&actions);
            posix_spawn_file_actions_adddup2(&actions, null, 0);
            posix_spawn_file_actions_adddup2(&actions, out[1], 1);
            posix_spawn_file_actions_adddup2(&actions, err[1], 2);
            if (slot >= 0) { snprintf(number, sizeof number, "%d", started); command[slot] = number; }
            jobs[i].started = now();
            errno = posix_spawnp(&jobs[i].pid, command[0], &actions, &attributes, command, environ);
            if (errno) fail(command[0]);
            posix_spawn_file_actions_destroy(&actions);
            close(out[1]); close(err[1]);
            jobs[i].out = out[0]; jobs[i].err = err[0];
            event.data.fd = out[0]; epoll_ctl(epoll, EPOLL_CTL_ADD, out[0], &event);
            event.data.fd = err[0]; epoll_ctl(epoll, EPOLL_CTL_ADD, err[0], &event);
            started++;
        }
        int ready = epoll_wait(epoll, events, 64, -1), child = 0;
        for (int e = 0; e < ready; e++) {
            if (events[e].data.fd == signals) child = 1;
            else for (int i = 0; i < concurrency; i++) {
                if (!jobs[i].pid) continue;
                int *fd = jobs[i].out == events[e].data.fd ? &jobs[i].out : jobs[i].err == events[e].data.fd ? &jobs[i].err : NULL;
                if (fd && read(*fd, buffer, sizeof buffer) == 0) { close(*fd); *fd = -1; }
            }
        }
        if (!child) continue;
        while (read(signals, buffer, sizeof(struct signalfd_siginfo) * 16) > 0) continue;
        int status;
        for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
            for (int i = 0; i < concurrency; i++) {
                if (jobs[i].pid != pid) continue;
                int ends[2] = { jobs[i].out, jobs[i].err };
                for (int k = 0; k < 2; k++) if (ends[k] >= 0) {
                    while (read(ends[k], buffer, sizeof buffer) > 0) continue;
                    close(ends[k]);
                }
                times[ended++] = now() - jobs[i].started;
                jobs[i].pid = 0;
            }
        }
    }
    double elapsed = now() - begin;
    qsort(times, count, sizeof *times, compare);
    printf("%.1f %.0f\n", count / elapsed, times[count / 2] * 1e6);
    return 0;
}
