<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Worker;

use Psr\Log\AbstractLogger;
use Spindle\Worker\WorkerPool;

/** Kills a pool when it logs a certain message for the first time. */
final class KillingLogger extends AbstractLogger
{
    public ?WorkerPool $pool = null;

    public function __construct(private readonly string $message) {}

    public function log(mixed $level, string|\Stringable $message, array $context = []): void
    {
        if ($message === $this->message) {
            [$pool, $this->pool] = [$this->pool, null];
            $pool?->kill();
        }
    }
}
