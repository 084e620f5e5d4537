<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal;

use Spindle\Postgres\AuthenticationException;
use Spindle\Postgres\ConnectionClosedException;
use Spindle\Postgres\ConnectionFailedException;
use Spindle\Postgres\ConnectionLostException;
use Spindle\Postgres\PoolTimeoutException;

/** Copies failures that were created outside of the calling fiber. Each copy has the calling fiber's stack trace. */
final class CallerTrace
{
    /** Returns a copy, because several fibers may get the same failure. A failure without copy() is returned as is. */
    public static function of(\Throwable $failure): \Throwable
    {
        $canBeCopied = $failure instanceof AuthenticationException
            || $failure instanceof ConnectionClosedException
            || $failure instanceof ConnectionFailedException
            || $failure instanceof ConnectionLostException
            || $failure instanceof PoolTimeoutException;

        return $canBeCopied ? $failure->copy() : $failure;
    }
}
