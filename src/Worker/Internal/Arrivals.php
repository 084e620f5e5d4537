<?php

declare(strict_types=1);

namespace Spindle\Worker\Internal;

use Spindle\Internal\WeakTimer;
use Spindle\LauncherException;
use Spindle\Worker\WorkerStartException;

/**
 * Starts workers, and knows each by its greeting when it comes.
 */
final class Arrivals
{
    private ?Reception $reception = null;

    /** @var array<int, WorkerHandle> those that were started and have not come, by number */
    private array $expected = [];

    /**
     * @param float                                                    $patience     seconds within which a worker must be ready
     * @param \Closure(WorkerHandle, int, int, string, int, int): void $heard        type, id, and where the payload lies: bytes, offset, length
     * @param \Closure(WorkerHandle, ?string): void                    $disconnected nothing more will come of it; what was wrong with what came, if anything
     * @param \Closure(WorkerHandle, WorkerStartException): void       $failed       it is not ready in time, or can't be let in
     */
    public function __construct(
        private readonly Context $context,
        private readonly Settings $settings,
        private readonly float $patience,
        private readonly \Closure $heard,
        private readonly \Closure $disconnected,
        private readonly \Closure $failed,
    ) {}

    /**
     * @param int $id       a number that no other worker of the pool has had
     * @param int $siblings how many workers there may be, with this one
     *
     * @throws LauncherException|WorkerStartException
     */
    public function start(int $id, Crew $crew, int $siblings): WorkerHandle
    {
        $this->reception ??= $this->receive();
        $worker = new WorkerHandle($id, Mark::newKey(), $crew);
        $this->context->start($id, $this->settings->forWorker($this->reception, $id, $worker->markKey, $siblings));
        $this->expected[$id] = $worker;
        $worker->timers[] = WeakTimer::after($this->patience, $this, static function (self $arrivals) use ($worker): void {
            if (!$worker->ready) {
                ($arrivals->failed)($worker, WorkerStartException::late($arrivals->patience));
            }
        });

        return $worker;
    }

    /** It is no more, whether it has come or not. */
    public function forget(WorkerHandle $worker): void
    {
        unset($this->expected[$worker->id]);
    }

    /** Lets nobody in any more. */
    public function close(): void
    {
        $this->reception?->close();
        $this->reception = null;
    }

    /** @throws WorkerStartException */
    private function receive(): Reception
    {
        Mark::sweep();
        $weak = \WeakReference::create($this);

        return new Reception(static function (Link $link, int $type, int $id, string $greeting) use ($weak): void {
            $weak->get()?->greeted($link, $type, $id, $greeting);
        }, static function (string $why) use ($weak): void {
            $weak->get()?->refused(WorkerStartException::impossible($why));
        });
    }

    private function greeted(Link $link, int $type, int $id, string $greeting): void
    {
        $worker = $type === Protocol::HELLO ? $this->expected[$id] ?? null : null;
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
        $worker->mark = $words['mark'] === 1 ? Mark::take($worker->markKey) : null;
        $heard = $this->heard;
        $disconnected = $this->disconnected;
        $hear = static fn(int $type, int $number, string $bytes, int $at, int $length) => $heard($worker, $type, $number, $bytes, $at, $length);
        $link->listen(
            $words['mark'] === 1 && $worker->mark === null ? self::refusingToServe($hear, $link, $worker, $disconnected) : $hear,
            static fn(?string $wrong) => $disconnected($worker, $wrong),
            $this->settings->maxResult + Protocol::BESIDE_RESULT,
            Protocol::MAGIC,
        );
        $link->heed($this->settings->budget);
    }

    /**
     * Ends a worker whose shared memory can't be opened once it is ready: the pool could not know which tasks it has
     * started. A worker that fails before removes the memory itself; then its failure is the reason that counts.
     *
     * @param \Closure(int, int, string, int, int): void $hear
     * @param \Closure(WorkerHandle, ?string): void      $disconnected
     *
     * @return \Closure(int, int, string, int, int): void
     */
    private static function refusingToServe(\Closure $hear, Link $link, WorkerHandle $worker, \Closure $disconnected): \Closure
    {
        return static function (int $type, int $number, string $bytes, int $at, int $length) use ($hear, $link, $worker, $disconnected): void {
            if ($type === Protocol::READY) {
                $link->close();
                $disconnected($worker, 'This process may not open the shared memory of the worker');
            } else {
                $hear($type, $number, $bytes, $at, $length);
            }
        };
    }

    /** Nobody can be let in. */
    private function refused(WorkerStartException $why): void
    {
        foreach ($this->expected as $worker) {
            ($this->failed)($worker, $why);
        }
    }
}
