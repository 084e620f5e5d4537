<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Postgres;

use Psr\Log\AbstractLogger;

/** A logger that keeps its records. */
final class Journal extends AbstractLogger
{
    /** @var list<array{level: mixed, message: string, context: array<array-key, mixed>}> */
    public array $records = [];

    /**
     * @param mixed               $level
     * @param string|\Stringable  $message
     * @param array<array-key, mixed> $context
     */
    public function log($level, $message, array $context = []): void
    {
        $this->records[] = ['level' => $level, 'message' => (string) $message, 'context' => $context];
    }

    /** @return list<string> */
    public function messages(): array
    {
        return array_column($this->records, 'message');
    }

    public function text(): string
    {
        return print_r($this->records, true);
    }
}
