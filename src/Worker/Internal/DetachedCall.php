<?php

declare(strict_types=1);

namespace Spindle\Worker\Internal;

use Revolt\EventLoop;
use Revolt\EventLoop\Suspension;
use Spindle\Internal\Fibers;

/**
 * A call in a fiber of its own, so that the caller regains control when the called code suspends its fiber. The fiber
 * is reused, because a new one takes longer than most calls. It has a large stack: on the stack of most fibers,
 * serialize() crashes the process at about 1,300 levels.
 */
final class DetachedCall
{
    /** Bytes of stack. The system only provides the pages that are used. */
    private const STACK_BYTES = 16 << 20;

    /** @var \Fiber<self, self, void, self>|null fiber that waits for the next call */
    private static ?\Fiber $idle = null;

    private bool $isStarted = false;
    private bool $isOver = false;
    private mixed $result = null;
    private ?\Throwable $thrown = null;

    /** @var Suspension<null>|null fiber that waits for the end of the call */
    private ?Suspension $waiting = null;

    /** @param \Closure(): mixed $work */
    private function __construct(private readonly \Closure $work) {}

    /** @param \Closure(): mixed $work called now; start() returns when $work has returned or suspended its fiber */
    public static function start(\Closure $work): self
    {
        $call = new self($work);
        // A signal handler that throws may have ended the fiber.
        $fiber = self::$idle?->isSuspended() === true ? self::$idle : null;
        self::$idle = null; // $work may start another call
        try {
            $fiber === null ? self::startFiber($call) : $fiber->resume($call);
        } catch (\FiberError $blocked) {
            if ($call->isStarted) {
                throw $blocked;
            }
            self::$idle = $fiber;
            $call->run(); // PHP cannot switch fibers here, for example in a destructor, so the call cannot suspend
        }

        return $call;
    }

    public function isOver(): bool
    {
        return $this->isOver;
    }

    /** Returns what the call returned, or throws what it threw. Waits until the call is over. */
    public function await(): mixed
    {
        if (!$this->isOver) {
            $this->waiting = EventLoop::getSuspension();
            try {
                Fibers::suspend($this->waiting);
            } finally {
                $this->waiting = null;
            }
        }

        return $this->thrown === null ? $this->result : throw $this->thrown;
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
            $this->result = ($this->work)();
        } catch (\Throwable $thrown) {
            $this->thrown = $thrown;
        }
        $this->isOver = true;
        $this->waiting?->resume();
    }
}
