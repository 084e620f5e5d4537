<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Pgsql;

use Amp\Cancellation;
use PgSql\Connection;
use Spindle\Postgres\QueryException;
use Spindle\Postgres\UnsupportedException;

/**
 * Runs a COPY … FROM STDIN. Before PHP 8.4, ext-pgsql can't abort a COPY, so {@see PgsqlHandle::failCopy()} cancels the
 * COPY. The extension also cuts off data at a NUL byte, so such data are refused.
 */
final readonly class CopyIn
{
    /** Bytes of data in each message. With its header of five bytes, a message fills the blocks that libpq writes. */
    private const CHUNK_BYTES = 0x8000 - 5;

    public function __construct(private PgsqlHandle $handle) {}

    /**
     * @param \Generator<int, string> $rows
     *
     * @throws QueryException
     * @throws \LogicException when the statement is not a COPY … FROM STDIN
     */
    public function run(string $sql, #[\SensitiveParameter] \Generator $rows, ?Cancellation $cancellation): int
    {
        self::ensureSendable($rows->valid() ? $rows->current() : '');
        $call = $this->handle->call(
            $cancellation,
            static fn(Connection $connection): bool|int => pg_send_query($connection, $sql),
        );
        if ($call->serverError !== null) {
            throw QueryException::of($call->serverError, $sql);
        }
        $isSent = false;
        try {
            if (!$call->acceptsData) {
                throw new \LogicException('copyFrom() needs a COPY … FROM STDIN');
            }
            $this->sendRows($call, $rows, $cancellation);
            $isSent = true;
        } finally {
            // The block also runs when the fiber is destroyed, without an exception.
            if (!$isSent) {
                $this->handle->abandon($call, null);
            }
        }
        while (!$call->done) {
            $this->handle->await($call, $cancellation);
        }

        return $call->serverError === null
            ? $call->affectedRows()
            : throw QueryException::of($call->serverError->hidingData(), $sql);
    }

    /** @param \Generator<int, string> $rows sent, and followed by the end of the data, unless the COPY fails */
    private function sendRows(
        #[\SensitiveParameter]
        Call $call,
        #[\SensitiveParameter]
        \Generator $rows,
        ?Cancellation $cancellation,
    ): void {
        $data = '';
        for (; $rows->valid(); $rows->next()) {
            $data .= $rows->current();
            $at = 0;
            for (; \strlen($data) - $at >= self::CHUNK_BYTES; $at += self::CHUNK_BYTES) {
                if (!$this->send($call, substr($data, $at, self::CHUNK_BYTES), $cancellation)) {
                    return;
                }
            }
            $data = $at === 0 ? $data : substr($data, $at);
        }
        if ($data === '' || $this->send($call, $data, $cancellation)) {
            $this->handle->endCopy($call, $cancellation);
        }
    }

    /** @return bool whether the server accepts more data */
    private function send(
        #[\SensitiveParameter]
        Call $call,
        #[\SensitiveParameter]
        string $data,
        ?Cancellation $cancellation,
    ): bool {
        $cancellation?->throwIfRequested();
        self::ensureSendable($data);
        $this->handle->sendCopyData($call, $data, $cancellation);
        if ($call->isInterrupted) {
            $this->handle->failCopy($call);
        }

        return !$call->isInterrupted;
    }

    /** @throws UnsupportedException when PHP would cut off the data */
    private static function ensureSendable(#[\SensitiveParameter] string $data): void
    {
        if (!Libpq::hasCopyFunctions() && str_contains($data, "\0")) {
            throw UnsupportedException::with(
                'COPY of data with NUL bytes, such as its binary format,',
                'before PHP 8.4, ext-pgsql cuts off data at a NUL byte',
            );
        }
    }
}
