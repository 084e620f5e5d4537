<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Native;

use Amp\Cancellation;
use Spindle\Postgres\QueryException;

/** Runs a COPY in either direction by a simple query. A COPY uses the connection exclusively. */
final class Copies
{
    /** Bytes that are collected for one message, and bytes that may wait to be written. */
    private const CHUNK_BYTES = 0x1_0000;
    private const MAX_UNWRITTEN_BYTES = 0x4_0000;

    /** Received bytes that may wait for the reader. */
    private const MAX_UNREAD_BYTES = 0x10_0000;

    private ?Exchange $exchange = null;

    public function __construct(private readonly Pipeline $pipeline) {}

    /** @param \Closure(): \Generator<int, string> $rows called when the connection is free, to read the first row */
    public function in(string $sql, #[\SensitiveParameter] \Closure $rows, ?Cancellation $cancellation): int
    {
        $this->pipeline->copyMutex->acquire($cancellation);
        try {
            $data = $rows();
            $exchange = $this->start('G', $sql, null, $cancellation);
            $isSent = false;
            try {
                $this->send($data, $exchange, $cancellation);
                $isSent = true;
            } finally {
                // Also reached when the fiber is destroyed, without an exception.
                if (!$isSent && !$exchange->done && $this->pipeline->isOpen()) {
                    $exchange->isCopied = true;
                    $this->pipeline->write(FrontendMessages::copyFail('the client gave up'));
                }
            }

            return $this->end($sql, $exchange, $cancellation)->affected();
        } finally {
            $this->giveBack();
        }
    }

    /** @return \Generator<int, string> */
    public function out(string $sql, ?Cancellation $cancellation): \Generator
    {
        $this->pipeline->copyMutex->acquire($cancellation);
        $rows = [];
        $index = $bytes = 0;
        $exchange = null;
        try {
            $exchange = $this->start('H', $sql, function (string $row) use (&$rows, &$bytes): void {
                $rows[] = $row;
                $bytes += \strlen($row);
                if ($bytes > self::MAX_UNREAD_BYTES) {
                    $this->pipeline->pause(true);
                }
            }, $cancellation);
            while ($rows !== [] || !$exchange->done) {
                if ($rows === []) {
                    $this->pipeline->await($exchange, $cancellation);
                }
                if ($rows === [] && $exchange->refusal !== null) {
                    throw $exchange->refusal;
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
            $this->end($sql, $exchange, $cancellation);
            if ($exchange->refusal !== null) {
                throw $exchange->refusal;
            }
            if ($exchange->discarded) {
                throw new \LogicException('The transaction of this COPY has ended');
            }
        } finally {
            if ($exchange !== null && $this->pipeline->isOpen()) {
                $this->pipeline->abandon($exchange, null);
                $this->pipeline->pause(false);
            }
            $this->giveBack();
        }
    }

    /** Gives the connection back, unless {@see Pipeline::stop()} took it away. */
    private function giveBack(): void
    {
        if ($this->pipeline->copying === $this->exchange) {
            $this->pipeline->copying = null;
            $this->pipeline->copyMutex->release();
        }
    }

    /** @param (\Closure(string): void)|null $data */
    private function start(string $direction, string $sql, ?\Closure $data, ?Cancellation $cancellation): Exchange
    {
        // The data can't be sent again, so no exchange that may still be cancelled must be ahead of them.
        $this->pipeline->settle(true, $cancellation);
        $exchange = $this->exchange = $this->pipeline->copying = new Exchange(extended: false);
        $exchange->data = $data;
        $this->pipeline->send($exchange, FrontendMessages::query($sql));
        $this->pipeline->await($exchange, $cancellation);
        if ($exchange->copy !== $direction) {
            if ($exchange->copy === 'G') {
                $this->pipeline->write(FrontendMessages::copyFail('this is no COPY … TO STDOUT'));
            }
            $this->end($sql, $exchange, $cancellation);
            throw new \LogicException(
                $direction === 'G' ? 'copyFrom() needs a COPY … FROM STDIN' : 'copyTo() needs a COPY … TO STDOUT',
            );
        }

        return $exchange;
    }

    /** @param iterable<string> $rows */
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
                && $exchange->error === null
                && $this->pipeline->unwritten() > self::MAX_UNWRITTEN_BYTES
            ) {
                $this->pipeline->await($exchange, $cancellation);
            }
            if ($exchange->done || $exchange->error !== null) {
                return;
            }
        }
        $cancellation?->throwIfRequested();
        $exchange->isCopied = true;
        $this->pipeline->write(($chunk === '' ? '' : FrontendMessages::copyData($chunk)) . FrontendMessages::COPY_DONE);
    }

    private function end(string $sql, #[\SensitiveParameter] Exchange $exchange, ?Cancellation $cancellation): Exchange
    {
        while (!$exchange->done) {
            $this->pipeline->await($exchange, $cancellation);
        }
        if ($exchange->failure !== null) {
            throw $exchange->failure;
        }

        return $exchange->error === null ? $exchange : throw QueryException::of($exchange->error->hidingData(), $sql);
    }
}
