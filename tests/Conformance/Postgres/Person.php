<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Postgres;

use Spindle\Tests\Postgres\Letter;

/** A class for rows. */
final readonly class Person
{
    public function __construct(
        public int $id,
        public ?string $firstName,
        public Letter $kind = Letter::A,
        public ?Letter $otherKind = null,
    ) {}
}
