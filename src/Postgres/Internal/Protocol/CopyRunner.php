<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Protocol;

use Amp\Cancellation;
use Spindle\Internal\Async\LoopTurn;
use Spindle\Postgres\Internal\CallerTrace;
use Spindle\Postgres\QueryException;

/** Runs one COPY in either direction, as a simple query. A COPY uses the connection exclusively. */
final class CopyRunner
{
    /** Bytes of rows that are collected before they are sent in one message. */
    private const CHUNK_BYTES = 0x1_0000;

    /** Limit of the bytes that are not written yet. Above this limit, no further rows are read from the caller. */
    private const MAX_UNWRITTEN_BYTES = 0x4_0000;

    /** Limit of the received bytes that the caller has not read. Above it, reading from the server is paused. */
    private const MAX_UNREAD_BYTES = 0x10_0000;

    private ?Exchange $exchange = null;

    public function __construct(private readonly Pipeline $pipeline) {}

    /**
     * Runs a COPY … FROM STDIN, and returns the number of rows stored.
     *
     * @param \Closure(): \Generator<int, string> $rows reads the first row, and returns a generator of all rows. Called
     *     with the connection locked and before the COPY is sent, because the closure may request the column types
     */
    public function copyFrom(string $sql, #[\SensitiveParameter] \Closure $rows, ?Cancellation $cancellation): int
    {
        $this->pipeline->copyMutex->acquire($cancellation);
        try {
            $data = $rows();
            $exchange = $this->startCopy(BackendMessages::COPY_IN_RESPONSE, $sql, null, $cancellation);
            $isSent = false;
            try {
                $this->send($data, $exchange, $cancellation);
                $isSent = true;
            } finally {
                // When the fiber is destroyed, this block runs although no exception was thrown.
                if (!$isSent && !$exchange->done && $this->pipeline->isOpen()) {
                    $exchange->isCopyDataEnded = true;
                    $this->pipeline->write(FrontendMessages::copyFail('the client aborted the COPY'));
                }
            }

            return $this->awaitEnd($sql, $exchange, $cancellation)->affectedRows();
        } finally {
            $this->releaseConnection();
        }
    }

    /** @return \Generator<int, string> rows of a COPY … TO STDOUT */
    public function copyTo(string $sql, ?Cancellation $cancellation): \Generator
    {
        $this->pipeline->copyMutex->acquire($cancellation);
        $rows = [];
        $index = $bytes = 0;
        $exchange = null;
        try {
            $pipeline = $this->pipeline;
            // Static, to avoid a reference cycle: this object refers to the exchange, which refers to this function.
            $onCopyData = static function (string $row) use ($pipeline, &$rows, &$bytes): void {
                $rows[] = $row;
                $bytes += \strlen($row);
                if ($bytes > self::MAX_UNREAD_BYTES) {
                    $pipeline->pause(true);
                }
            };
            $exchange = $this->startCopy(BackendMessages::COPY_OUT_RESPONSE, $sql, $onCopyData, $cancellation);
            while ($rows !== [] || !$exchange->done) {
                if ($rows === []) {
                    $this->pipeline->await($exchange, $cancellation);
                }
                if ($rows === [] && $exchange->tooLarge !== null) {
                    throw $exchange->tooLarge;
                }
                $taken = $rows;
                $rows = [];
                $bytes = 0;
                $this->pipeline->pause(false);
                $cancellation?->throwIfRequested();
                foreach ($taken as $row) {
                    yield $index++ => $row;
                }
            }
            $this->awaitEnd($sql, $exchange, $cancellation);
            if ($exchange->tooLarge !== null) {
                throw $exchange->tooLarge;
            }
            if ($exchange->discarded) {
                throw new \LogicException('The transaction of this COPY has ended');
            }
        } finally {
            if ($exchange !== null && $this->pipeline->isOpen()) {
                $this->pipeline->abandon($exchange, null);
                $this->pipeline->pause(false);
            }
            $this->releaseConnection();
        }
    }

    /** Releases the lock of the connection, unless {@see Pipeline::stop()} has done so. */
    private function releaseConnection(): void
    {
        if ($this->pipeline->copying === $this->exchange) {
            $this->pipeline->copying = null;
            $this->pipeline->copyMutex->release();
        }
    }

    /**
     * @param string $expectedResponse type of the message with which the server begins the COPY
     * @param (\Closure(string): void)|null $onCopyData
     *
     * @throws \LogicException when the statement is not a COPY in this direction
     */
    private function startCopy(
        string $expectedResponse,
        string $sql,
        ?\Closure $onCopyData,
        ?Cancellation $cancellation,
    ): Exchange {
        // Wait for all answers, because a late cancel request could stop the COPY, whose data can't be sent again.
        $this->pipeline->settle(true, $cancellation);
        $exchange = $this->exchange = $this->pipeline->copying = new Exchange(extended: false);
        $exchange->onCopyData = $onCopyData;
        $this->pipeline->send($exchange, FrontendMessages::query($sql));
        $this->pipeline->await($exchange, $cancellation);
        if ($exchange->copyResponse !== $expectedResponse) {
            if ($exchange->copyResponse === BackendMessages::COPY_IN_RESPONSE) {
                $this->pipeline->write(FrontendMessages::copyFail('this is no COPY … TO STDOUT'));
            }
            $this->awaitEnd($sql, $exchange, $cancellation);
            throw new \LogicException(
                $expectedResponse === BackendMessages::COPY_IN_RESPONSE
                    ? 'copyFrom() needs a COPY … FROM STDIN'
                    : 'copyTo() needs a COPY … TO STDOUT',
            );
        }

        return $exchange;
    }

    /** @param iterable<string> $rows rows to send. CopyDone follows, unless the server has reported an error */
    private function send(
        #[\SensitiveParameter]
        iterable $rows,
        #[\SensitiveParameter]
        Exchange $exchange,
        ?Cancellation $cancellation,
    ): void {
        $chunk = '';
        foreach ($rows as $row) {
            $cancellation?->throwIfRequested();
            $chunk .= $row;
            if (\strlen($chunk) < self::CHUNK_BYTES) {
                continue;
            }
            $this->pipeline->write(FrontendMessages::copyData($chunk));
            $chunk = '';
            while (
                !$exchange->done
                && $exchange->serverError === null
                && $this->pipeline->unwrittenBytes() > self::MAX_UNWRITTEN_BYTES
            ) {
                $this->pipeline->await($exchange, $cancellation);
                // await() may return at once. Only in the next turn, the event loop reads errors and runs other fibers.
                LoopTurn::await();
            }
            if ($exchange->done || $exchange->serverError !== null) {
                return;
            }
        }
        $cancellation?->throwIfRequested();
        $exchange->isCopyDataEnded = true;
        $this->pipeline->write(($chunk === '' ? '' : FrontendMessages::copyData($chunk)) . FrontendMessages::COPY_DONE);
    }

    /** @throws QueryException when the server reports an error; the data that this error quotes is left out */
    private function awaitEnd(
        string $sql,
        #[\SensitiveParameter]
        Exchange $exchange,
        ?Cancellation $cancellation,
    ): Exchange {
        while (!$exchange->done) {
            $this->pipeline->await($exchange, $cancellation);
        }
        if ($exchange->waitFailure !== null) {
            throw CallerTrace::of($exchange->waitFailure);
        }

        return $exchange->serverError === null
            ? $exchange
            : throw QueryException::of($exchange->serverError->hidingData(), $sql);
    }
}
