<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Postgres;

use Spindle\Tests\Postgres\Digit;

/** Made of a row; with a constructor that has an error of its own. */
final readonly class Level
{
    public function __construct(public Digit $digit, public string $name)
    {
        if ($name === 'wrong') {
            throw new \TypeError('an error of its own');
        }
    }
}
