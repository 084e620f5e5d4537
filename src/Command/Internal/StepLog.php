<?php

declare(strict_types=1);

namespace Spindle\Command\Internal;

use Psr\Log\LoggerInterface;
use Spindle\Command\CommandResult;
use Spindle\Internal\IsolatedCall;

/** Reports to the caller's logger what a pool does. A logger that throws or suspends affects no command. */
final class StepLog
{
    public function __construct(private readonly LoggerInterface $logger) {}

    /** @param array<string, string|int|float|CommandResult> $context values; a result is logged as its description */
    public function write(string $message, array $context = []): void
    {
        $logger = $this->logger;
        $describe = static fn(string|int|float|CommandResult $value): string|int|float
            => $value instanceof CommandResult ? $value->describe() : $value;
        IsolatedCall::call(static fn() => $logger->debug($message, array_map($describe, $context)));
    }
}
