<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Postgres;

use PHPUnit\Framework\Attributes\After;
use PHPUnit\Framework\Attributes\Before;
use Revolt\EventLoop;
use Spindle\Tests\Eventually;

use function Amp\delay;

/** Waits until abandoned work has ended. A cancel request, for example, may take a moment. */
trait ComesToRest
{
    private const REST_WITHIN = 6.0;

    /** @var array<string> */
    private array $watchersBefore = [];

    #[Before(5)]
    protected function rememberWatchers(): void
    {
        $this->watchersBefore = EventLoop::getIdentifiers();
    }

    #[After(-5)]
    protected function comeToRest(): void
    {
        if (!$this->status()->isSuccess()) {
            return;
        }
        gc_collect_cycles();
        delay(0); // pending work has begun
        Eventually::holds(
            fn(): bool => array_diff(EventLoop::getIdentifiers(), $this->watchersBefore) === [],
            'nothing is left to do',
            self::REST_WITHIN,
        );
    }
}
