<?php

declare(strict_types=1);

namespace Spindle\Bench\Http;

/** What one measurement of one contestant came to. */
final readonly class Outcome
{
    /**
     * @param array<string, int|float> $raw      what else was seen, by name
     * @param list<string>             $problems what went wrong
     */
    public function __construct(
        public float $figure,
        public array $raw,
        public array $problems = [],
    ) {}
}
