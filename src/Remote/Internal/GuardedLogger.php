<?php

declare(strict_types=1);

namespace Spindle\Remote\Internal;

use Psr\Log\AbstractLogger;
use Psr\Log\LoggerInterface;
use Spindle\Internal\LoggerFailures;

/** Catches a logger's exceptions, so that no job fails. {@see LoggerFailures} reports them. */
final class GuardedLogger extends AbstractLogger
{
    private readonly LoggerFailures $failures;

    public function __construct(private readonly LoggerInterface $logger)
    {
        $this->failures = new LoggerFailures();
    }

    /**
     * @param mixed              $level
     * @param string|\Stringable $message
     * @param array<mixed>       $context
     */
    public function log($level, $message, array $context = []): void
    {
        try {
            $this->logger->log($level, $message, $context);
        } catch (\Throwable $failure) {
            $this->failures->report($failure);
        }
    }
}
