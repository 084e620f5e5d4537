<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Postgres;

/** A class for rows with a date. */
final readonly class Until
{
    public function __construct(public ?\DateTimeImmutable $until) {}
}
