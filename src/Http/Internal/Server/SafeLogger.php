<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Server;

use Psr\Log\AbstractLogger;
use Psr\Log\LoggerInterface;
use Psr\Log\NullLogger;
use Spindle\Internal\LoggerFailures;

/** Catches a logger's exceptions, so that no request fails. {@see LoggerFailures} reports them. */
final class SafeLogger extends AbstractLogger
{
    private readonly LoggerFailures $failures;

    public function __construct(private readonly LoggerInterface $logger)
    {
        $this->failures = new LoggerFailures();
    }

    public function isSilent(): bool
    {
        return $this->logger instanceof NullLogger || $this->logger instanceof self && $this->logger->isSilent();
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
