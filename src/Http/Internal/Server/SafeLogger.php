<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Server;

use Psr\Log\AbstractLogger;
use Psr\Log\LoggerInterface;

/** A log that can't be written harms no request: what it was to be told is lost, and PHP's error log is told once. */
final class SafeLogger extends AbstractLogger
{
    private bool $told = false;

    public function __construct(private readonly LoggerInterface $logger) {}

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
            $this->told || error_log("Spindle: the log can't be written, so that messages are missing in it: {$failure->getMessage()}");
            $this->told = true;
        }
    }
}
