<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Queue;

enum QueueAction: string
{
    case List = 'list';
    case Show = 'show';
    case Cancel = 'cancel';
    case Retry = 'retry';
    case Delete = 'delete';
    case Purge = 'purge';

    public function selectsDeadLetters(): bool
    {
        return $this === self::Retry || $this === self::Delete;
    }

    public function maxIds(): int
    {
        return match ($this) {
            self::Show => 1,
            self::Cancel, self::Retry, self::Delete => \PHP_INT_MAX,
            self::List, self::Purge => 0,
        };
    }

    /** @return list<string> names of this action's options, without the options that every action has */
    public function options(): array
    {
        return match ($this) {
            self::Show => ['status', 'limit'],
            self::List, self::Cancel => [],
            self::Retry, self::Delete => ['all'],
            self::Purge => ['yes'],
        };
    }
}
