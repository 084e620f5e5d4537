<?php

declare(strict_types=1);

namespace Spindle\Worker\Internal\Process;

use parallel\Runtime;
use Spindle\Worker\Internal\SharedFlags;
use Spindle\Worker\Internal\ValueSerializer;
use Spindle\Worker\Internal\WorkerProtocol;

/**
 * The process whose threads are workers. The host loads no code of the application, and only starts and ends threads.
 * Each thread runs one worker. A Future of ext-parallel 1.2 may read freed memory, so this class gives each thread two
 * closures instead. The first runs the worker. When the first has ended in any way, the second reports this through a
 * socket. The closures have no class scope, because a thread at its memory limit could not load this class.
 */
final class ThreadHost
{
    private const SIGKILL = 9;

    /** @var array<int, Runtime> threads by worker */
    private array $threads = [];

    /** @var array<int, array{resource, resource}> socket pair for the report that the thread has ended, by worker */
    private array $ends = [];

    /** @var array<int, int> keys of the {@see SharedFlags}, by worker */
    private array $sharedMemoryKeys = [];

    public function __construct(private readonly PoolLink $link) {}

    public function run(): never
    {
        set_error_handler(null); // otherwise, a handler that auto_prepend_file has set could throw, in spite of `@`
        $this->link->send(WorkerProtocol::READY, 0, '');
        while (true) {
            $reads = [-1 => $this->link->socket] + array_map(static fn(array $pair): mixed => $pair[0], $this->ends);
            $none = null;
            if ((int) @stream_select($reads, $none, $none, null) === 0) {
                continue;
            }
            foreach (array_keys($reads) as $id) {
                if ($id >= 0) {
                    $this->ended($id);
                    continue;
                }
                do {
                    $frame = $this->link->receive();
                    if ($frame === null) {
                        $this->killSelf();
                    }
                    $this->handle(...$frame);
                } while ($this->link->isBuffered());
            }
        }
    }

    private function handle(int $type, int $id, #[\SensitiveParameter] string $payload): void
    {
        if ($type === WorkerProtocol::START) {
            $this->start($id, $payload);
        } elseif ($type === WorkerProtocol::KILL && isset($this->threads[$id])) {
            // kill() waits for the thread. If that takes longer than the grace period, the pool kills this process.
            $this->threads[$id]->kill();
            $this->forget($id);
            $this->link->send(WorkerProtocol::ENDED, $id, pack('llP', -1, self::SIGKILL, 0));
        }
    }

    private function start(int $id, #[\SensitiveParameter] string $settings): void
    {
        $pair = @stream_socket_pair(\STREAM_PF_UNIX, \STREAM_SOCK_STREAM, 0);
        try {
            $thread = $pair === false
                ? throw new \RuntimeException(error_get_last()['message'] ?? 'no socket')
                : new Runtime();
        } catch (\Throwable $failure) {
            $this->link->send(
                WorkerProtocol::PRINTED,
                $id,
                "The thread could not be started: {$failure->getMessage()}\n",
            );
            $this->link->send(WorkerProtocol::ENDED, $id, pack('llP', 255, 0, 0));

            return;
        }
        /** @var array{sharedMemoryKey: int} $fields */
        $fields = ValueSerializer::unserializeData($settings);
        $this->sharedMemoryKeys[$id] = $fields['sharedMemoryKey'];
        // A closure for ext-parallel must not yield, use references, or declare classes or functions. Loaded files may.
        $thread->run(\Closure::bind(static function (string $classes, string $settings): void {
            require $classes;
            WorkerBoot::inThread($settings);
        }, null, null), [__DIR__ . '/classes.php', $settings]);
        $thread->run(\Closure::bind(static function (string $classes, $end): void {
            require_once $classes;
            WorkerBoot::endThread(\is_int($end) ? $end : -1);
        }, null, null), [__DIR__ . '/classes.php', $pair[1]]); // ext-parallel passes the descriptor number
        $this->threads[$id] = $thread;
        $this->ends[$id] = [$pair[0], $pair[1]];
    }

    private function ended(int $id): void
    {
        if (!isset($this->threads[$id])) {
            return;
        }
        $this->threads[$id]->close();
        $this->forget($id);
        $this->link->send(WorkerProtocol::ENDED, $id, pack('llP', -1, 0, 0));
    }

    /** Removes the threads' shared memory and kills this process, because a normal end would wait for each thread. */
    private function killSelf(): never
    {
        array_map(SharedFlags::remove(...), $this->sharedMemoryKeys);
        posix_kill((int) getmypid(), self::SIGKILL);
        exit(255);
    }

    private function forget(int $id): void
    {
        array_map(fclose(...), $this->ends[$id]);
        unset($this->threads[$id], $this->ends[$id], $this->sharedMemoryKeys[$id]);
    }
}
