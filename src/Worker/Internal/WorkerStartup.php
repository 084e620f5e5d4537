<?php

declare(strict_types=1);

namespace Spindle\Worker\Internal;

use Spindle\Internal\WeakTimer;
use Spindle\LauncherException;
use Spindle\Worker\WorkerStartException;

/** Starts workers, and assigns each incoming connection to its worker by the greeting. */
final class WorkerStartup
{
    private ?WorkerListener $reception = null;

    /** @var array<int, WorkerHandle> started workers that have not connected, by number */
    private array $expected = [];

    /**
     * @param float $patience seconds within which a worker must be ready
     * @param \Closure(WorkerHandle, int, int, string, int, int): void $heard receives each frame: type, id, then bytes
     *                                                                        that contain the payload, its offset and
     *                                                                        length
     * @param \Closure(WorkerHandle, ?string): void $disconnected called when the connection has ended; the string
     *                                                            describes a protocol error, if there was one
     * @param \Closure(WorkerHandle, WorkerStartException): void $failed called when the worker was not ready in time,
     *                                                                   or its connection cannot be accepted
     */
    public function __construct(
        private readonly Context $context,
        private readonly WorkerSettings $settings,
        private readonly float $patience,
        private readonly \Closure $heard,
        private readonly \Closure $disconnected,
        private readonly \Closure $failed,
    ) {}

    /**
     * @param int $id       a number that no other worker of the pool has had
     * @param int $siblings largest number of workers in the pool, including this one
     *
     * @throws LauncherException|WorkerStartException
     */
    public function start(int $id, WorkerGroup $crew, int $siblings): WorkerHandle
    {
        $this->reception ??= $this->receive();
        $worker = new WorkerHandle($id, SharedFlags::newKey(), $crew);
        $this->context->start($id, $this->settings->forWorker($this->reception, $id, $worker->markKey, $siblings));
        $this->expected[$id] = $worker;
        $worker->timers[] = WeakTimer::after(
            $this->patience,
            $this,
            static function (self $arrivals) use ($worker): void {
                if (!$worker->ready) {
                    ($arrivals->failed)($worker, WorkerStartException::late($arrivals->patience));
                }
            },
        );

        return $worker;
    }

    /** Removes a worker that has ended, whether it had connected or not. */
    public function forget(WorkerHandle $worker): void
    {
        unset($this->expected[$worker->id]);
    }

    /** Stops accepting connections. */
    public function close(): void
    {
        $this->reception?->close();
        $this->reception = null;
    }

    /** @throws WorkerStartException */
    private function receive(): WorkerListener
    {
        SharedFlags::sweep();
        $weak = \WeakReference::create($this);

        return new WorkerListener(
            static function (WorkerLink $link, int $type, int $id, string $greeting) use ($weak): void {
                $weak->get()?->greeted($link, $type, $id, $greeting);
            },
            static function (string $why) use ($weak): void {
                $weak->get()?->refused(WorkerStartException::impossible($why));
            },
        );
    }

    private function greeted(WorkerLink $link, int $type, int $id, string $greeting): void
    {
        $worker = $type === WorkerProtocol::HELLO ? $this->expected[$id] ?? null : null;
        if ($worker === null) {
            if (!$this->context->connected($link, $type, $greeting)) {
                $link->close();
            }

            return;
        }
        unset($this->expected[$id]);
        $worker->link = $link;
        /** @var array{pid: int, mark: int} $words */
        $words = unpack('Vpid/Cmark', $greeting);
        $worker->pid = $words['pid'];
        $worker->mark = $words['mark'] === 1 ? SharedFlags::take($worker->markKey) : null;
        $heard = $this->heard;
        $disconnected = $this->disconnected;
        $hear = static fn(int $type, int $number, string $bytes, int $at, int $length)
            => $heard($worker, $type, $number, $bytes, $at, $length);
        $link->listen(
            $words['mark'] === 1 && $worker->mark === null
                ? self::refusingToServe($hear, $link, $worker, $disconnected)
                : $hear,
            static fn(?string $wrong) => $disconnected($worker, $wrong),
            $this->settings->maxResult + WorkerProtocol::BESIDE_RESULT,
            WorkerProtocol::MAGIC,
        );
        $link->heed($this->settings->budget);
    }

    /**
     * Ends a worker whose shared memory this process cannot open, as soon as the worker is ready. Without that memory,
     * the pool would not know which tasks the worker has started. A worker that fails earlier removes the memory
     * itself, and its own failure is reported.
     *
     * @param \Closure(int, int, string, int, int): void $hear
     * @param \Closure(WorkerHandle, ?string): void      $disconnected
     *
     * @return \Closure(int, int, string, int, int): void
     */
    private static function refusingToServe(
        \Closure $hear,
        WorkerLink $link,
        WorkerHandle $worker,
        \Closure $disconnected,
    ): \Closure {
        return static function (
            int $type,
            int $number,
            string $bytes,
            int $at,
            int $length,
        ) use ($hear, $link, $worker, $disconnected): void {
            if ($type === WorkerProtocol::READY) {
                $link->close();
                $disconnected($worker, 'This process may not open the shared memory of the worker');
            } else {
                $hear($type, $number, $bytes, $at, $length);
            }
        };
    }

    /** Fails all expected workers, because no connection can be accepted. */
    private function refused(WorkerStartException $why): void
    {
        foreach ($this->expected as $worker) {
            ($this->failed)($worker, $why);
        }
    }
}
