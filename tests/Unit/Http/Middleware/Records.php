<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Http\Middleware;

use Psr\Log\AbstractLogger;

/** Keeps log entries. */
final class Records extends AbstractLogger
{
    /** @var list<array{level: mixed, message: string, context: array<mixed>}> */
    public array $all = [];

    /**
     * @param mixed              $level
     * @param string|\Stringable $message
     * @param array<mixed>       $context
     */
    public function log($level, $message, array $context = []): void
    {
        $this->all[] = ['level' => $level, 'message' => (string) $message, 'context' => $context];
    }
}
