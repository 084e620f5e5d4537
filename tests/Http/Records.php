<?php

declare(strict_types=1);

namespace Spindle\Tests\Http;

use Psr\Log\AbstractLogger;

/**
 * Keeps a server's log entries. Warnings about code that has blocked the event loop are left out by default, because a
 * busy machine may block it.
 */
final class Records extends AbstractLogger
{
    private const BLOCK_WARNING = '/ blocked the event loop for |^The event loop was blocked for /';

    /** @var list<array{level: mixed, message: string, context: array<mixed>}> */
    public array $all = [];

    public function __construct(private readonly bool $keepsBlockWarnings = false) {}

    public static function isBlockWarning(string $message): bool
    {
        return preg_match(self::BLOCK_WARNING, $message) === 1;
    }

    /**
     * @param mixed              $level
     * @param string|\Stringable $message
     * @param array<mixed>       $context
     */
    public function log($level, $message, array $context = []): void
    {
        if ($this->keepsBlockWarnings || !self::isBlockWarning((string) $message)) {
            $this->all[] = ['level' => $level, 'message' => (string) $message, 'context' => $context];
        }
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
