<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Postgres;

use Spindle\Tests\Postgres\Digit;

/** A class for rows whose constructor throws an error itself. */
final readonly class Level
{
    public function __construct(public Digit $digit, public string $name)
    {
        if ($name === 'wrong') {
            throw new \TypeError('an error of its own');
        }
    }
}
