"""
Measures a pool of Python's standard library in this process, and prints one line of JSON, like task-contestant.php for
a pool of PHP. If a measurement has several chunk sizes, each size is measured, and the best one is the result.

    python3 peers.py MEASUREMENT pool|executor TASKS WORKERS [BYTES]
"""

import concurrent.futures
import json
import multiprocessing
import os
import platform
import resource
import signal
import statistics
import sys
import tempfile
import time
from collections import deque
from concurrent.futures import ProcessPoolExecutor

CHUNKS = {'bulk': (64, 256, 1024, 4096), 'mix': (1, 16, 64)}
RARE, LONG, SHORT = 100, 0.1, 10e-6
WINDOW = 1000


def same(number):
    return number


def nothing():
    return 1


class Numbered:
    def __init__(self, number):
        self.number = number

    def __call__(self):
        return self.number


def burn(number):
    until = time.process_time() + (LONG if number % RARE == 0 else SHORT)
    while time.process_time() < until:
        pass
    return number


def pause(seconds):
    time.sleep(seconds)


def die(path):
    with open(path, 'w') as file:
        file.write(str(time.monotonic_ns()))
    os.kill(os.getpid(), signal.SIGKILL)


class Pool:
    def __init__(self, workers):
        self.pool = multiprocessing.Pool(workers)

    def each(self, task, inputs, chunk=1):
        return self.pool.imap_unordered(task, inputs, chunk)

    def close(self):
        self.pool.close()
        self.pool.join()


class Executor:
    def __init__(self, workers):
        self.pool = ProcessPoolExecutor(workers)
        self.submit = self.pool.submit

    def each(self, task, inputs, chunk=1):
        return self.pool.map(task, inputs, chunksize=chunk)

    def close(self):
        self.pool.shutdown()


def numbered(pool, what, task, count, to_figure, best):
    by_chunk, right = {}, True
    for chunk in CHUNKS[what]:
        results = total = 0
        begin = time.perf_counter()
        for number in pool.each(task, range(count), chunk):
            results += 1
            total += number
        by_chunk[chunk] = to_figure(time.perf_counter() - begin)
        right = right and results == count and total == count * (count - 1) // 2
    chunk = best(by_chunk, key=by_chunk.get)
    return {'figure': by_chunk[chunk], 'chunk': chunk, 'by chunk': by_chunk, 'results': results, 'right': right}


def single(pool, count):
    times, total, begin = [], 0, time.perf_counter()
    for _ in range(count):
        then = time.perf_counter()
        total += pool.submit(nothing).result()
        times.append((time.perf_counter() - then) * 1e6)
    rate = count / (time.perf_counter() - begin)
    return {'figure': statistics.median(times), 'rate': rate, 'results': len(times), 'right': total == count}


def objects(pool, count):
    waiting, results, total, begin = deque(), 0, 0, time.perf_counter()
    for number in range(count):
        if len(waiting) == WINDOW:
            total += waiting.popleft().result()
            results += 1
        waiting.append(pool.submit(Numbered(number)))
    while waiting:
        total += waiting.popleft().result()
        results += 1
    rate = count / (time.perf_counter() - begin)
    return {'figure': rate, 'results': results, 'right': results == count and total == count * (count - 1) // 2}


def echo(pool, count, size):
    rest = b'spindle ' * (size // 8)
    results = total = wrong = 0
    begin = time.perf_counter()
    for string in pool.each(same, (b'%016d' % number + rest for number in range(count))):
        results += 1
        total += int(string[:16])
        wrong += not string.endswith(rest) or len(string) != 16 + len(rest)
    rate = count / (time.perf_counter() - begin)
    return {'figure': rate, 'results': results, 'right': results == count and wrong == 0 and total == count * (count - 1) // 2}


def start(kind, count, workers):
    one, first, last = [], [], []
    for number in range(count + 1):
        begin = time.perf_counter()
        pool = kind(workers)
        assert list(pool.each(same, [1])) == [1]
        alone = (time.perf_counter() - begin) * 1e3
        pool.close()
        begin, times, rest = time.perf_counter(), [], 20
        pool = kind(workers)
        for _ in pool.each(pause, [rest / 1e3] * workers):
            times.append((time.perf_counter() - begin) * 1e3 - rest)
        pool.close()
        if number > 0:
            one.append(alone)
            first.append(times[0])
            last.append(times[-1])
    return {'figure': statistics.median(one), 'first': statistics.median(first), 'last': statistics.median(last), 'results': len(one), 'right': len(one) == count}


def death(kind, count, workers):
    times = []
    with tempfile.NamedTemporaryFile() as file:
        for _ in range(count):
            pool = kind(workers)
            list(pool.each(pause, [0.002] * 2 * workers))
            try:
                pool.submit(die, file.name).result()
            except concurrent.futures.process.BrokenProcessPool:
                with open(file.name) as told:
                    times.append((time.monotonic_ns() - int(told.read())) / 1e6)
            pool.close()
    return {'figure': statistics.median(times), 'slowest': max(times), 'results': len(times), 'right': len(times) == count}


def cpu_time():
    both = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in both)


def main():
    what, name, count, workers = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    kind = {'pool': Pool, 'executor': Executor}[name]
    before = cpu_time()
    if what == 'start':
        figures = start(kind, count, workers)
    elif what == 'death':
        figures = death(kind, count, workers)
    else:
        pool = kind(workers)
        list(pool.each(pause, [0.002] * 2 * workers))
        figures = {
            'bulk': lambda: numbered(pool, what, same, count, lambda seconds: count / seconds, max),
            'mix': lambda: numbered(pool, what, burn, count, lambda seconds: seconds, min),
            'single': lambda: single(pool, count),
            'objects': lambda: objects(pool, count),
            'echo': lambda: echo(pool, count, int(sys.argv[5])),
        }[what]()
        pool.close()
    runs = len(CHUNKS.get(what, (1,)))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(json.dumps(figures | {'count': count, 'cpu': (cpu_time() - before) / runs, 'peak': peak, 'python': platform.python_version()}))


main()
