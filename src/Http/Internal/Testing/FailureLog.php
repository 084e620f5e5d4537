<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Testing;

use Psr\Log\AbstractLogger;

final class FailureLog extends AbstractLogger
{
    /** @var list<\Throwable> */
    public array $failures = [];

    /** @param mixed[] $context */
    public function log($level, string|\Stringable $message, array $context = []): void
    {
        $failure = $context['exception'] ?? null;
        if ($failure instanceof \Throwable) {
            $this->failures[] = $failure;
        }
    }
}
