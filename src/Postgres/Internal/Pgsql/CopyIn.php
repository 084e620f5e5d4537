<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Pgsql;

use Amp\Cancellation;
use PgSql\Connection;
use Spindle\Postgres\QueryException;
use Spindle\Postgres\UnsupportedException;

/**
 * COPY … FROM STDIN.
 *
 * Before PHP 8.4 there is nothing to give up a COPY with, and data end at a NUL byte; {@see Handle::failCopy()} makes up for the first.
 */
final readonly class CopyIn
{
    /** Bytes that are sent at a time: with the five before them, whole pieces as libpq writes them. */
    private const CHUNK = 0x8000 - 5;

    public function __construct(private Handle $handle) {}

    /**
     * @param \Generator<int, string> $rows
     *
     * @return int rows that were stored
     *
     * @throws QueryException
     * @throws \LogicException when the statement is another
     */
    public function run(string $sql, #[\SensitiveParameter] \Generator $rows, ?Cancellation $cancellation): int
    {
        self::ensureSendable($rows->valid() ? $rows->current() : '');
        $call = $this->handle->call($cancellation, static fn(Connection $connection): bool|int => pg_send_query($connection, $sql));
        if ($call->error !== null) {
            throw QueryException::of($call->error, $sql);
        }
        $isSent = false;
        try {
            if (!$call->takesData) {
                throw new \LogicException('copyFrom() takes a COPY … FROM STDIN');
            }
            $this->sendRows($call, $rows, $cancellation);
            $isSent = true;
        } finally {
            // Also where the fiber is destroyed, which is no exception.
            if (!$isSent) {
                $this->handle->abandon($call, null);
            }
        }
        while (!$call->done) {
            $this->handle->await($call, $cancellation);
        }

        return $call->error === null ? $call->affected() : throw QueryException::of($call->error->hidingData(), $sql);
    }

    /** @param \Generator<int, string> $rows */
    private function sendRows(#[\SensitiveParameter] Call $call, #[\SensitiveParameter] \Generator $rows, ?Cancellation $cancellation): void
    {
        $data = '';
        for (; $rows->valid(); $rows->next()) {
            $data .= $rows->current();
            $at = 0;
            for (; \strlen($data) - $at >= self::CHUNK; $at += self::CHUNK) {
                if (!$this->send($call, substr($data, $at, self::CHUNK), $cancellation)) {
                    return;
                }
            }
            $data = $at === 0 ? $data : substr($data, $at);
        }
        if ($data === '' || $this->send($call, $data, $cancellation)) {
            $this->handle->endCopy($call, $cancellation);
        }
    }

    /** @return bool whether the server takes more */
    private function send(#[\SensitiveParameter] Call $call, #[\SensitiveParameter] string $data, ?Cancellation $cancellation): bool
    {
        $cancellation?->throwIfRequested();
        self::ensureSendable($data);
        $this->handle->put($call, $data, $cancellation);
        if ($call->interrupted) {
            $this->handle->failCopy($call);
        }

        return !$call->interrupted;
    }

    private static function ensureSendable(#[\SensitiveParameter] string $data): void
    {
        if (!Libpq::canCopy() && str_contains($data, "\0")) {
            throw UnsupportedException::with('COPY with NUL bytes, which its binary format has,', 'before PHP 8.4 data end at the first one');
        }
    }
}
