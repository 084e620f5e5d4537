<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal;

/** What `spindle queue` is to do. */
enum QueueAction: string
{
    case Show = 'show';
    case Retry = 'retry';
    case Delete = 'delete';
    case Purge = 'purge';

    /** Whether it is for dead letters, which are named by their ids. */
    public function takesIds(): bool
    {
        return $this === self::Retry || $this === self::Delete;
    }

    /** @return list<string> the options that only some have */
    public function options(): array
    {
        return match ($this) {
            self::Show => ['status', 'most'],
            self::Retry, self::Delete => ['all'],
            self::Purge => ['yes'],
        };
    }
}
