<?php

declare(strict_types=1);

namespace Spindle\Internal;

/** The terminal that standard input and standard error were at the start, if they were. */
final class Terminal
{
    /** @var list<int> */
    private readonly array $atTheStart;

    public function __construct()
    {
        $this->atTheStart = self::descriptors();
    }

    /** Whether it was closed since: a hangup comes from it then, and from nobody who asks for something. */
    public function isGone(): bool
    {
        return array_diff($this->atTheStart, self::descriptors()) !== [];
    }

    /** @return list<int> */
    private static function descriptors(): array
    {
        $terminals = [];
        foreach ([0, 2] as $descriptor) {
            $stream = @fopen("php://fd/{$descriptor}", 'r');
            if ($stream !== false && stream_isatty($stream)) {
                $terminals[] = $descriptor;
            }
        }

        return $terminals;
    }
}
