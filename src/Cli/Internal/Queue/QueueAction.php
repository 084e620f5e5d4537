<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Queue;

enum QueueAction: string
{
    case Show = 'show';
    case Retry = 'retry';
    case Delete = 'delete';
    case Purge = 'purge';

    /** Returns whether the action selects dead letters by id. */
    public function takesIds(): bool
    {
        return $this === self::Retry || $this === self::Delete;
    }

    /** @return list<string> names of this action's options, without the options that every action has */
    public function options(): array
    {
        return match ($this) {
            self::Show => ['status', 'limit'],
            self::Retry, self::Delete => ['all'],
            self::Purge => ['yes'],
        };
    }
}
