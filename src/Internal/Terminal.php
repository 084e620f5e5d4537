<?php

declare(strict_types=1);

namespace Spindle\Internal;

/** The terminal of standard input and standard error at the start, if there was one. */
final class Terminal
{
    /** @var list<int> */
    private readonly array $initial;

    public function __construct()
    {
        $this->initial = self::descriptors();
    }

    /** Whether that terminal was closed. A SIGHUP then comes from the terminal and requests nothing. */
    public function isGone(): bool
    {
        return array_diff($this->initial, self::descriptors()) !== [];
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
