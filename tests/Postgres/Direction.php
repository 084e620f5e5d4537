<?php

declare(strict_types=1);

namespace Spindle\Tests\Postgres;

/** Where bytes go that pass a {@see FaultyProxy}. */
enum Direction: string
{
    case ToServer = 'to server';
    case ToClient = 'to client';
}
