<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Postgres;

/** What a row with a date becomes. */
final readonly class Until
{
    public function __construct(public ?\DateTimeImmutable $until) {}
}
