<?php

declare(strict_types=1);

namespace Spindle\Tests\Postgres;

/** Direction of bytes that pass through a {@see FaultyProxy}. */
enum Direction: string
{
    case ToServer = 'to server';
    case ToClient = 'to client';
}
