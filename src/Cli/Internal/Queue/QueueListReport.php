<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Queue;

use Spindle\Cli\Internal\TerminalText;

final class QueueListReport
{
    private const COLUMNS = ['waiting', 'running', 'delayed', 'blocked', 'dead', 'agents'];

    /**
     * @param list<array{string, array<string, int>}> $queues     name, and numbers as from
     *                                                            {@see \Spindle\Remote\Broker::statistics()}
     * @param list<array{string, string}>             $unreadable name, and why the keys of the queue can't be read
     */
    public function __construct(private readonly array $queues, private readonly array $unreadable) {}

    /** @return array<string, mixed> for `--json` */
    public function data(): array
    {
        $queues = [
            ...array_map(static fn(array $row): array => ['queue' => $row[0], 'statistics' => $row[1]], $this->queues),
            ...array_map(static fn(array $row): array => ['queue' => $row[0], 'error' => $row[1]], $this->unreadable),
        ];

        return ['queues' => $queues];
    }

    /** @return non-empty-list<string> */
    public function lines(): array
    {
        if ($this->queues === [] && $this->unreadable === []) {
            return ['The engine has no queues. Is its address correct?'];
        }
        $rows = array_map(static fn(array $row): array => [
            $row[0],
            ...array_map(static fn(string $name): string => (string) ($row[1][$name] ?? 0), self::COLUMNS),
        ], $this->queues);

        return AlignedRows::lines([['queue', ...self::COLUMNS], ...$rows]);
    }

    /** @return list<string> a message for each queue whose keys can't be read */
    public function errors(): array
    {
        return array_map(static fn(array $row): string => \sprintf(
            'spindle: the keys spindle:{%s}:* of the engine can\'t be read: %s',
            TerminalText::escape($row[0]),
            TerminalText::escape($row[1]),
        ), $this->unreadable);
    }
}
