<?php

declare(strict_types=1);

namespace Spindle\Internal;

/** Checks whether the terminal of standard input or standard error was closed. */
final class Terminal
{
    /** @var list<int> descriptors that were a terminal when this object was created */
    private readonly array $initial;

    public function __construct()
    {
        $this->initial = self::descriptors();
    }

    /** Returns whether the terminal was closed. If so, SIGHUP comes from the system and is no request for a reload. */
    public function isClosed(): bool
    {
        return array_diff($this->initial, self::descriptors()) !== [];
    }

    /** @return list<int> descriptors that are a terminal */
    private static function descriptors(): array
    {
        $terminals = [];
        foreach ([0, 2] as $descriptor) {
            $stream = Warnings::suppressed(static fn(): mixed => fopen("php://fd/{$descriptor}", 'r'));
            if ($stream !== false && stream_isatty($stream)) {
                $terminals[] = $descriptor;
            }
        }

        return $terminals;
    }
}
