<?php

declare(strict_types=1);

namespace Spindle\Bench\Support;

/** The figures of limit.c. */
final readonly class LimitResult
{
    /**
     * @param float $rate    commands per second
     * @param float $median  seconds from a start to its exit
     * @param int   $bytes   bytes from standard output
     * @param int   $failed  commands with an exit code other than 0
     */
    private function __construct(
        public float $rate,
        public float $median,
        public int $bytes,
        public int $failed,
    ) {}

    public static function parse(string $line): self
    {
        [$rate, $median, $bytes, $failed] = explode(' ', trim($line));

        return new self((float) $rate, (int) $median / 1e6, (int) $bytes, (int) $failed);
    }
}
