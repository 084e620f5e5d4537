<?php

declare(strict_types=1);

namespace Spindle\Tests\Postgres;

enum Digit: int
{
    case One = 1;
    case Two = 2;
}
