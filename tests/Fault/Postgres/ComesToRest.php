<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Postgres;

use PHPUnit\Framework\Attributes\After;
use PHPUnit\Framework\Attributes\Before;
use Revolt\EventLoop;
use Spindle\Tests\Eventually;

use function Amp\delay;

/** What a test has let go may take a moment to end, as a cancel request that is under way: it is given that. */
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
        delay(0); // what was to begin has begun
        Eventually::holds(fn(): bool => array_diff(EventLoop::getIdentifiers(), $this->watchersBefore) === [], 'nothing is left to do', self::REST_WITHIN);
    }
}
