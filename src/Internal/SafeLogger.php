<?php

declare(strict_types=1);

namespace Spindle\Internal;

use Psr\Log\AbstractLogger;
use Psr\Log\LoggerInterface;
use Psr\Log\NullLogger;

/** Catches a logger's exceptions, so that no request or job fails. error_log() gets at most one of them a minute. */
final class SafeLogger extends AbstractLogger
{
    private readonly RepeatedWarnings $failures;

    public function __construct(private readonly LoggerInterface $logger)
    {
        $this->failures = new RepeatedWarnings();
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
            if ($this->failures->isNew('')) {
                $text = ThrownText::message($failure);
                error_log("Spindle: log entries are lost, because the logger threw: {$text}");
            }
        }
    }
}
