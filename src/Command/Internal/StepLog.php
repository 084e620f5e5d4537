<?php

declare(strict_types=1);

namespace Spindle\Command\Internal;

use Psr\Log\LoggerInterface;
use Spindle\Command\CommandResult;
use Spindle\Internal\Aside;

/** What a pool does, for the caller's logger, which may throw or suspend: no outcome depends on it. */
final class StepLog
{
    public function __construct(private readonly ?LoggerInterface $logger) {}

    /** @param array<string, string|int|float|CommandResult> $context a result is described */
    public function write(string $message, array $context = []): void
    {
        $logger = $this->logger;
        if ($logger === null) {
            return;
        }
        $describe = static fn(string|int|float|CommandResult $value): string|int|float => $value instanceof CommandResult ? $value->describe() : $value;
        Aside::call(static fn() => $logger->debug($message, array_map($describe, $context)));
    }
}
