<?php

declare(strict_types=1);

namespace Spindle\Tests\Http;

use Psr\Log\AbstractLogger;

/** Keeps a server's log entries. */
final class Records extends AbstractLogger
{
    /** @var list<array{level: mixed, message: string, context: array<mixed>}> */
    public array $all = [];

    /**
     * @param mixed              $level
     * @param string|\Stringable $message
     * @param array<mixed>       $context
     */
    public function log($level, $message, array $context = []): void
    {
        $this->all[] = ['level' => $level, 'message' => (string) $message, 'context' => $context];
    }

    /** @return list<string> */
    public function messages(): array
    {
        return array_column($this->all, 'message');
    }

    /** @return list<\Throwable> exceptions in the log */
    public function failures(): array
    {
        $failures = [];
        foreach ($this->all as $record) {
            if (($record['context']['exception'] ?? null) instanceof \Throwable) {
                $failures[] = $record['context']['exception'];
            }
        }

        return $failures;
    }
}
