<?php

declare(strict_types=1);

namespace Spindle\Postgres;

/** No connection was available within the acquireTimeout, or too many fibers wait already. No statement was sent. */
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
                    'Could not connect to PostgreSQL within %s s. The last attempt failed: %s',
                    round($seconds, 3),
                    $previous->getMessage(),
                ),
                $previous,
            );
        }

        if ($connections === 0) {
            return new self(\sprintf(
                'Could not connect to PostgreSQL within %s s: the server has not answered. '
                    . 'Is it running, and can this machine reach it?',
                round($seconds, 3),
            ));
        }

        return new self(\sprintf(
            'No connection of the pool became free within %s s (in use: %d, being opened: %d, other calls that wait: '
                . '%d). Send the statements of transaction() through its Transaction and not through the pool, release '
                . 'connections sooner, or raise maxConnections or acquireTimeout%s',
            round($seconds, 3),
            $connections,
            $opening,
            $waiting,
            $previous === null ? '' : ". The last attempt to open another connection failed: {$previous->getMessage()}",
        ), $previous);
    }

    /** @internal */
    public static function unanswered(float $seconds, int $connections): self
    {
        return new self(\sprintf(
            'No connection of the pool was usable within %s s: the server has not answered on %d of them. '
                . 'Is it running, and can this machine reach it?',
            round($seconds, 3),
            $connections,
        ));
    }

    /** @internal */
    public static function full(int $waiting): self
    {
        return new self("{$waiting} calls already wait for a connection of the pool, and maxWaiting allows no more");
    }
}
