<?php

declare(strict_types=1);

namespace Spindle\Worker\Internal;

use Spindle\Internal\Async\OneShot;

/**
 * A call in a separate fiber, so that the caller continues when the called code suspends its fiber. When the call has
 * ended, its fiber is kept for a later call, because starting a fiber takes longer than most calls. The fiber has a
 * large stack. With the default stack size, serialize() crashes the process at about 1,300 levels of nesting.
 */
final class DetachedCall
{
    /** Size of the stack in bytes. The system only allocates the pages that are used. */
    private const STACK_BYTES = 16 << 20;

    /** @var \Fiber<self, self, void, self>|null fiber that waits for the next call */
    private static ?\Fiber $idle = null;

    private bool $isStarted = false;

    /** @var OneShot<mixed> */
    private readonly OneShot $result;

    /** @param \Closure(): mixed $work */
    private function __construct(private readonly \Closure $work)
    {
        $this->result = new OneShot();
    }

    /**
     * @param \Closure(): mixed $work called now; start() returns when $work has ended or suspended its fiber
     *
     * @return OneShot<mixed>
     */
    public static function start(\Closure $work): OneShot
    {
        $call = new self($work);
        // The idle fiber may have ended, because a signal handler has thrown in it.
        $fiber = self::$idle?->isSuspended() === true ? self::$idle : null;
        self::$idle = null; // $work may start another call, which needs another fiber
        try {
            $fiber === null ? self::startFiber($call) : $fiber->resume($call);
        } catch (\FiberError $blocked) {
            if ($call->isStarted) {
                throw $blocked;
            }
            self::$idle = $fiber;
            $call->run(); // PHP refused to switch fibers, for example in a destructor, so $work runs in this fiber
        }

        return $call->result;
    }

    private static function startFiber(self $call): void
    {
        $before = (string) ini_set('fiber.stack_size', (string) self::STACK_BYTES);
        $fiber = new \Fiber(static function (self $call): void {
            while (true) {
                $call->run();
                unset($call); // releases the result
                if (self::$idle !== null) {
                    return;
                }
                self::$idle = \Fiber::getCurrent();
                /** @var self $call */
                $call = \Fiber::suspend();
            }
        });
        try {
            $fiber->start($call);
        } finally {
            $before === '' ? ini_restore('fiber.stack_size') : ini_set('fiber.stack_size', $before);
        }
    }

    private function run(): void
    {
        $this->isStarted = true;
        try {
            $result = ($this->work)();
        } catch (\Throwable $thrown) {
            $this->result->fail($thrown);

            return;
        }
        $this->result->complete($result);
    }
}
