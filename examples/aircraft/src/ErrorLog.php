<?php

declare(strict_types=1);

namespace Aircraft;

use Psr\Log\AbstractLogger;

/**
 * Writes to PHP's error log: standard error in a server, nginx's log under PHP-FPM. Includes the context's exception.
 */
final class ErrorLog extends AbstractLogger
{
    /** @param array<array-key, mixed> $context */
    public function log($level, string|\Stringable $message, array $context = []): void
    {
        $failure = $context['exception'] ?? null;
        unset($context['exception']);
        $texts = array_filter(
            $context,
            static fn(mixed $value): bool => \is_scalar($value) || $value instanceof \Stringable,
        );
        $line = strtr(
            (string) $message,
            array_combine(
                array_map(static fn(int|string $name): string => "{{$name}}", array_keys($texts)),
                array_map(strval(...), $texts),
            ),
        );
        $cause = $failure instanceof \Throwable
            ? ': ' . $failure::class . ": {$failure->getMessage()} in {$failure->getFile()}:{$failure->getLine()}"
            : '';
        // Control characters are escaped, so that an entry stays on one line.
        error_log(addcslashes($line . $cause, "\0..\37\177"));
    }
}
