<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Remote;

use Psr\Log\AbstractLogger;

/** Keeps each entry of a log as "level: message". */
final class RecordedLog extends AbstractLogger
{
    /** @var list<string> */
    private array $lines = [];

    /** @param array<mixed> $context */
    public function log(mixed $level, string|\Stringable $message, array $context = []): void
    {
        $values = [];
        foreach ($context as $name => $value) {
            $values["{{$name}}"] = \is_scalar($value) ? (string) $value : '';
        }
        $this->lines[] = (\is_string($level) ? $level : '') . ': ' . strtr((string) $message, $values);
    }

    /** @return list<string> the entries of some levels, in their order */
    public function lines(string ...$levels): array
    {
        $hasLevel = static fn(string $line): bool => \in_array(explode(':', $line)[0], $levels, true);

        return array_values(array_filter($this->lines, $hasLevel));
    }
}
