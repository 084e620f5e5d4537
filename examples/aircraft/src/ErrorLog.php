<?php

declare(strict_types=1);

namespace Aircraft;

use Psr\Log\AbstractLogger;

/** PHP's own error log: standard error in a server, nginx's log under PHP-FPM. */
final class ErrorLog extends AbstractLogger
{
    /** @param array<array-key, mixed> $context */
    public function log($level, string|\Stringable $message, array $context = []): void
    {
        $texts = array_filter($context, static fn(mixed $value): bool => \is_scalar($value) || $value instanceof \Stringable);
        error_log(strtr((string) $message, array_combine(array_map(static fn(int|string $name): string => "{{$name}}", array_keys($texts)), array_map(strval(...), $texts))));
    }
}
