<?php

declare(strict_types=1);

namespace Spindle\Tests\Postgres;

enum Letter: string
{
    case A = 'a';
    case B = 'b';
}
