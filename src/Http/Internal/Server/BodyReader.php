<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Server;

use Spindle\Http\ClientDisconnectedException;
use Spindle\Http\HttpException;
use Spindle\Http\Internal\Message\BadMessageException;
use Spindle\Http\Internal\Message\RequestParser;
use Spindle\Internal\Async\Condition;

/** Receives the bodies of a connection's requests. Before a wait, sends "100 Continue" to a client that expects it. */
final class BodyReader
{
    public const READ_BYTES = 65_536;

    private const CONTINUE = "HTTP/1.1 100 Continue\r\n\r\n";

    private ?Condition $reader = null;

    public function __construct(
        private readonly RequestParser $parser,
        private readonly TimedTransport $timed,
        private readonly Service $service,
    ) {}

    /** Returns the body if its length is known and allowed, and all of it has arrived and is unread; otherwise null. */
    public function whole(ServerExchange $exchange): ?string
    {
        return !$exchange->ended
            && !$this->timed->closed
            && $exchange->head->length <= $this->service->options->maxBodyBytes
            ? $this->parser->readWholeBody($exchange->head->length)
            : null;
    }

    /**
     * Returns the next bytes of a body. Suspends until bytes or the end have arrived.
     *
     * @return string '' at the end of the body
     *
     * @throws HttpException when the body is malformed or arrives too slowly, or there is no memory for it
     * @throws ClientDisconnectedException when the connection is closed, or the client has ended its side
     */
    public function receive(ServerExchange $exchange): string
    {
        $length = $exchange->head->length;
        if (($length === null || $length > self::READ_BYTES) && !$this->service->memory->allows(self::READ_BYTES)) {
            throw $this->service->outOfMemory();
        }
        $this->check($exchange);
        try {
            $bytes = $this->parser->readBody();
            while ($bytes === '' && !$this->parser->bodyEnded()) {
                $this->await($exchange);
                $bytes = $this->parser->readBody();
            }

            return $bytes;
        } catch (BadMessageException $malformed) {
            $this->timed->closeAfterResponse = true;
            throw new HttpException($malformed->status, $malformed->getMessage(), previous: $malformed);
        }
    }

    /** Returns the field lines after the last chunk; '' when the connection no longer handles the request. */
    public function trailers(ServerExchange $exchange): string
    {
        return !$exchange->ended ? $this->parser->trailers() : '';
    }

    /** @throws \Throwable when the connection is closed, or the request of the body has ended */
    private function check(ServerExchange $exchange): void
    {
        if ($this->timed->closed || $exchange->ended) {
            throw $exchange->cancelReason ?? ($this->timed->closed
                ? ClientDisconnectedException::bodyIncomplete()
                : ServerExchange::bodyReleased());
        }
    }

    private function await(ServerExchange $exchange): void
    {
        $timed = $this->timed;
        [$phase, $remaining] = [$timed->phase, $timed->deadline - (int) hrtime(true)];
        if ($exchange->awaitsContinue() && !$exchange->responseStarted && !$timed->peerEnded) {
            $exchange->continueSent = true;
            $timed->outgoing .= self::CONTINUE;
            if ($timed->flushAndWait() && !$exchange->ended) {
                $timed->enterPhaseUntil($phase, (int) hrtime(true) + $remaining);
            }
            $this->check($exchange);
        }
        if ($this->reader !== null) {
            throw new \LogicException('Another fiber is reading the body');
        }
        if ($timed->peerEnded) {
            throw ClientDisconnectedException::bodyIncomplete();
        }
        $timed->transport->resume();
        $timed->enterBody();
        $reader = $this->reader = new Condition();
        $timed->bodyAwaited = true;
        try {
            $reader->wait();
        } finally {
            if ($this->reader === $reader) {
                $this->release(); // wait() has thrown, because PHP could not suspend the fiber
            }
            $timed->leaveBody($exchange, $phase, $remaining);
        }
        $this->check($exchange);
    }

    /** Wakes the waiting fiber, if any, after bytes have arrived or the request has ended. */
    public function wake(): void
    {
        $this->release()?->notify();
    }

    public function failTooSlow(): void
    {
        if ($this->reader !== null) {
            $this->timed->closeAfterResponse = true;
            $this->release()?->fail(new HttpException(408, 'The body arrived too slowly'));
        }
    }

    private function release(): ?Condition
    {
        $reader = $this->reader;
        $this->reader = null;
        $this->timed->bodyAwaited = false;

        return $reader;
    }
}
