<?php

declare(strict_types=1);

namespace Spindle\Postgres;

/** No connection was usable within acquireTimeout, or maxWaiting fibers already waited. The database is unchanged. */
final class PoolTimeoutException extends \RuntimeException implements PostgresException
{
    private function __construct(string $message, ?\Throwable $previous = null)
    {
        parent::__construct($message, 0, $previous);
    }

    /**
     * @internal
     *
     * @param non-empty-list<PostgresHost> $hosts
     * @param int $unconfirmed number of connections on which the server has not confirmed a cancellation, ping or reset
     */
    public static function after(
        float $seconds,
        array $hosts,
        int $connections,
        int $unconfirmed,
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
                'Could not connect to PostgreSQL at %s within %s s: %s server has not answered. '
                    . 'Is it running, and can this machine reach it?',
                implode(', ', $hosts),
                round($seconds, 3),
                \count($hosts) === 1 ? 'the' : 'at least one',
            ));
        }

        return new self(\sprintf(
            'No connection of the pool became free within %s s (in use: %d, being opened: %d, other calls that wait: '
                . '%d). %s%s',
            round($seconds, 3),
            $connections,
            $opening,
            $waiting,
            self::advice($connections, $unconfirmed),
            $previous === null ? '' : ". The last attempt to open another connection failed: {$previous->getMessage()}",
        ), $previous);
    }

    /**
     * @internal
     *
     * @param non-empty-list<PostgresHost> $hosts
     */
    public static function unanswered(float $seconds, array $hosts, int $connections): self
    {
        return new self(\sprintf(
            'No connection of the pool to %s was usable within %s s: %d open %s not answered. '
                . 'Is it running, and can this machine reach it?',
            implode(', ', $hosts),
            round($seconds, 3),
            $connections,
            $connections === 1 ? 'connection has' : 'connections have',
        ));
    }

    /** @internal `$waiting` is the number of calls that maxWaiting counts. */
    public static function full(int $waiting): self
    {
        return new self(match ($waiting) {
            0 => 'All connections of the pool are in use or being opened, and maxWaiting is 0',
            1 => '1 call already waits for a connection of the pool, and maxWaiting allows no more',
            default => "{$waiting} calls already wait for a connection of the pool, and maxWaiting allows no more",
        });
    }

    /** @internal Returns a copy that has the stack trace of the caller. */
    public function copy(): self
    {
        return new self($this->getMessage(), $this->getPrevious());
    }

    private static function advice(int $connections, int $unconfirmed): string
    {
        $cause = "On {$unconfirmed} of the connections in use, the server has not confirmed a cancellation, a ping or "
            . 'a reset, so its process may be suspended or overloaded';
        $remedy = 'Send the statements of transaction() through its Transaction and not through the pool, release '
            . 'connections and generators of stream() sooner, or raise maxConnections or acquireTimeout';

        return match ($unconfirmed) {
            0 => $remedy,
            $connections => $cause,
            default => "{$cause}. {$remedy}",
        };
    }
}
