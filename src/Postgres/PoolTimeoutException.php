<?php

declare(strict_types=1);

namespace Spindle\Postgres;

/** No connection of the pool became free in time, or too many fibers are already waiting. Nothing was sent. */
final class PoolTimeoutException extends \RuntimeException implements PostgresException
{
    private function __construct(string $message, ?\Throwable $previous = null)
    {
        parent::__construct($message, 0, $previous);
    }

    /** @internal */
    public static function after(
        float $seconds,
        int $connections,
        int $opening,
        int $waiting,
        ?\Throwable $previous,
    ): self {
        if ($connections === 0 && $previous !== null) {
            return new self(
                \sprintf(
                    'No connection to PostgreSQL could be opened within %s s. The last attempt failed: %s',
                    round($seconds, 3),
                    $previous->getMessage(),
                ),
                $previous,
            );
        }

        if ($connections === 0) {
            return new self(\sprintf(
                'No connection to PostgreSQL could be opened within %s s: no server has answered yet. Is it running, and can it be reached?',
                round($seconds, 3),
            ));
        }

        return new self(\sprintf(
            'No connection to PostgreSQL was free within %s s: all of %d are in use%s, %d more wait. Give connections back sooner, or raise maxConnections or acquireTimeout%s',
            round($seconds, 3),
            $connections,
            $opening > 0 ? ", {$opening} are still being opened" : '',
            $waiting,
            $previous === null ? '' : "; the last that was tried could not be opened: {$previous->getMessage()}",
        ), $previous);
    }

    /** @internal */
    public static function full(int $waiting): self
    {
        return new self("{$waiting} wait for a connection to PostgreSQL already, which is as many as may (maxWaiting)");
    }
}
