<?php

declare(strict_types=1);

namespace Spindle\Worker\Internal;

use Revolt\EventLoop;
use Spindle\Internal\WeakTimer;

/** Workers that came to nothing: after each of them the pool pauses before it starts another one. */
final class Setbacks
{
    /** So many in a row that end before they have begun a task, and no more are tried for now. */
    private const VAIN = 3;

    /** Seconds until another worker is started, while others work. */
    private const PAUSE = 0.5;

    private int $inARow = 0;
    private ?string $pausing = null;

    /** @param \Closure(): void $over called when a pause is */
    public function __construct(private readonly \Closure $over) {}

    public function count(bool $vain): void
    {
        $this->inARow = $vain ? $this->inARow + 1 : 0;
    }

    public function areTooMany(): bool
    {
        return $this->inARow >= self::VAIN;
    }

    public function isPausing(): bool
    {
        return $this->pausing !== null;
    }

    public function pause(): void
    {
        $this->pausing ??= WeakTimer::after(self::PAUSE, $this, static function (self $setbacks): void {
            $setbacks->pausing = null;
            ($setbacks->over)();
        });
    }

    public function endPause(): void
    {
        if ($this->pausing !== null) {
            EventLoop::cancel($this->pausing);
            $this->pausing = null;
        }
    }
}
