<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run;

use Psr\Log\AbstractLogger;
use Psr\Log\LoggerInterface;
use Symfony\Component\Console\Formatter\OutputFormatter;

/** Escapes messages for a logger that interprets <...> as tags. */
final class EscapedLogger extends AbstractLogger
{
    public function __construct(private readonly LoggerInterface $logger) {}

    /** @param string|\Stringable $message */
    public function log($level, $message, array $context = []): void
    {
        $escape = static fn(mixed $value): mixed => \is_string($value) || $value instanceof \Stringable
            ? OutputFormatter::escape((string) $value)
            : $value;
        $this->logger->log($level, OutputFormatter::escape((string) $message), array_map($escape, $context));
    }
}
