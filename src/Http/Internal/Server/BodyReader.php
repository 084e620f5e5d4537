<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Server;

use Spindle\Http\ClientLeftException;
use Spindle\Http\HttpException;
use Spindle\Http\Internal\Message\BadMessageException;
use Spindle\Http\Internal\Message\RequestParser;
use Spindle\Internal\Async\Condition;

/** Receives the bodies of a connection's requests for handlers. Sends "100 Continue" before the first wait. */
final class BodyReader
{
    private const CONTINUE = "HTTP/1.1 100 Continue\r\n\r\n";

    /** Suspends the fiber that waits for bytes; null if none does. */
    private ?Condition $reader = null;

    public function __construct(private readonly RequestParser $parser, private readonly TimedTransport $timed) {}

    /**
     * Returns the next bytes of a body. Suspends until some have arrived.
     *
     * @param int $request number of the request
     *
     * @return string '' at the end of the body
     *
     * @throws HttpException when the body is malformed or too slow
     * @throws ClientLeftException when the client has ended its side, or the connection is closed
     */
    public function receive(ServerExchange $exchange, int $request): string
    {
        $this->check($exchange);
        try {
            $bytes = $this->parser->readBody();
            while ($bytes === '' && !$this->parser->bodyEnded()) {
                $this->await($exchange, $request);
                $bytes = $this->parser->readBody();
            }

            return $bytes;
        } catch (BadMessageException $malformed) {
            $this->timed->closeAfterResponse = true;
            throw new HttpException($malformed->status, $malformed->getMessage(), previous: $malformed);
        }
    }

    /** @throws ClientLeftException unless the body belongs to the current request of an open connection */
    private function check(ServerExchange $exchange): void
    {
        if ($this->timed->closed || $exchange->ended) {
            throw $this->timed->closed || $exchange->wasCancelled()
                ? ClientLeftException::bodyIncomplete()
                : new \LogicException('The body is not available any more, because the request was answered');
        }
    }

    /** Waits for body bytes, then restores the interrupted phase with its remaining deadline. */
    private function await(ServerExchange $exchange, int $request): void
    {
        if ($this->reader !== null) {
            throw new \LogicException('Another fiber is reading the body');
        }
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
        if ($timed->peerEnded) {
            throw ClientLeftException::bodyIncomplete();
        }
        $timed->transport->resume();
        $timed->enterBody($request);
        $this->reader = new Condition();
        $timed->bodyAwaited = true;
        try {
            $this->reader->wait();
        } finally {
            $now = $timed->endBodyWait();
            if ($timed->phase === Phase::Body && !$exchange->ended) {
                $exchange->responseStarted
                    ? $timed->enterPhase(Phase::Stream, 0)
                    : $timed->enterPhaseUntil($phase, $now + $remaining);
            }
        }
        $this->check($exchange);
    }

    /** Wakes the waiting fiber, if any, after bytes have arrived or the request has ended. */
    public function wake(): void
    {
        $this->release()?->notify();
    }

    /** Makes the waiting fiber, if any, fail because the client was too slow. */
    public function failTooSlow(): void
    {
        $this->timed->closeAfterResponse = true;
        $this->release()?->fail(new HttpException(408, 'The body arrived too slowly'));
    }

    private function release(): ?Condition
    {
        $reader = $this->reader;
        $this->reader = null;
        $this->timed->bodyAwaited = false;

        return $reader;
    }
}
