<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Server;

use Psr\Http\Message\ResponseInterface;
use Revolt\EventLoop\FiberLocal;
use Spindle\Http\ClientDisconnectedException;
use Spindle\Http\Internal\App\HandlerResult;
use Spindle\Http\Internal\Message\BadMessageException;
use Spindle\Http\Internal\Message\Head;
use Spindle\Http\Internal\Message\Peer;
use Spindle\Http\Internal\Message\Request;
use Spindle\Http\Internal\Message\RequestParser;
use Spindle\Internal\Async\LoopTurn;

/**
 * One client's connection. Its requests are handled one at a time, in order.
 *
 * A handler runs in the event loop callback that has read the request, and so in the callback's fiber. If the handler
 * suspends, the event loop continues in another fiber. While the handler is suspended, the connection is still watched
 * for reading. So the server notices when the client closes the connection.
 *
 * While a handler or a write is suspended, several events can end the {@see Phase}: bytes arrive, the client ends its
 * side (FIN), a response is sent, the deadline passes, or the server stops. {@see TimedTransport} has the deadlines.
 * {@see Responder} sends the responses.
 */
final class Connection implements TransportEvents
{
    /** Maximum bytes per read while no handler waits for a body. PHP allocates this number of bytes for each read. */
    private const READ_BYTES = 3_000;

    /** If a handler runs without waiting for a body, the server reads until more bytes than this are buffered. */
    private const MAX_READ_AHEAD_BYTES = 65_536;

    /** Responses to pipelined requests are collected, and sent at the latest when they have more bytes than this. */
    private const RESPONSE_BUFFER_BYTES = 65_536;

    /** After pipelined requests have taken this number of nanoseconds, the event loop serves other connections. */
    private const TURN_NANOSECONDS = 1_000_000;

    public readonly TimedTransport $timed;
    private readonly Transport $transport;
    private readonly RequestParser $parser;
    private readonly Responder $responder;
    private readonly ConnectionReference $reference;

    /** Whether a fiber runs {@see serve()}. The fiber may be suspended. */
    private bool $serving = false;

    public ?ServerExchange $exchange = null;

    /** Whether the client has ended its side, even with unread bytes before the end. If so, requests are cancelled. */
    private bool $peerLeft = false;

    private ?BodyReader $bodyReader = null;

    /** @param resource $stream non-blocking */
    public function __construct($stream, public readonly Service $service, public readonly Peer $peer)
    {
        $this->reference = new ConnectionReference($this, $peer, $service->options->forms);
        $this->parser = new RequestParser($service->messageLimits);
        $this->transport = new Transport($stream, $peer->secure, $this);
        $this->timed = new TimedTransport($this->transport, $service, $this);
        $this->responder = new Responder($service, $this->timed, $this->parser);
        $service->addConnection($this);
        $this->timed->enterPhase($peer->secure ? Phase::Handshake : Phase::Head, hrtime(true));
    }

    public function bodyReader(): BodyReader
    {
        return $this->bodyReader ??= new BodyReader($this->parser, $this->timed, $this->service);
    }

    /**
     * Prepares the connection for the stop of the server. Ends a response that is an event stream. Keeps an idle
     * connection until $deadline (by hrtime()) or its own deadline, whichever is earlier: a request may be on its way.
     */
    public function stop(int $deadline): void
    {
        $this->responder->stop();
        if (
            !$this->serving
            && $this->parser->isIdle()
            && !\in_array($this->timed->phase, [Phase::Handshake, Phase::Linger], true)
        ) {
            $this->timed->enterPhaseUntil(Phase::Idle, min($this->timed->deadline, $deadline));
        }
    }

    /** Returns whether a request is being handled, or bytes of a response are unsent. */
    public function isUnfinished(): bool
    {
        return $this->exchange !== null || $this->transport->sending;
    }

    /** Returns the time by hrtime() from which the connection can be evicted; null during a request or a write. */
    public function evictableFrom(): ?int
    {
        return $this->serving ? null : $this->timed->evictableFrom();
    }

    public function evict(): void
    {
        ++$this->service->counters->evicted;
        $this->close($this->exchange === null ? null : ClientDisconnectedException::evicted());
    }

    /**
     * Checks whether the client has ended its side of a connection that is not being read.
     *
     * A client that has ended its side may still wait for responses to requests among the unread bytes. So the
     * connection is closed only if nothing can be sent any more. Otherwise only the current request is cancelled.
     *
     * @return bool whether the connection has to be checked again later
     */
    public function checkUnread(): bool
    {
        if ($this->timed->closed || $this->peerLeft || !$this->transport->paused) {
            return false;
        }
        if (!$this->transport->hasUnreadEnd()) {
            return true;
        }
        $this->peerLeft = true;
        $this->transport->isBroken ? $this->close() : $this->exchange?->cancel(ClientDisconnectedException::closed());

        return false;
    }

    public function expire(): void
    {
        match ($this->timed->phase) {
            Phase::Head => $this->parser->isIdle()
                ? $this->close()
                : $this->responder->refuseMessage(408, 'The head of the request did not arrive in time'),
            Phase::Handler => $this->handlerTimeout(),
            Phase::Body => $this->timed->continueBody() ? null : $this->bodyReader?->failTooSlow(),
            Phase::Discard => $this->timed->continueBody()
                ? null
                : $this->close(ClientDisconnectedException::tooSlow()),
            Phase::Write => $this->timed->checkProgress(),
            Phase::Linger => $this->transport->sending ? $this->timed->checkProgress() : $this->timed->continueLinger(),
            Phase::Handshake, Phase::Idle => $this->close(),
            Phase::Stream => null,
        };
    }

    /**
     * Closes the connection immediately. A running handler continues until it notices that its request is cancelled.
     *
     * @param ClientDisconnectedException|null $why cancellation reason; null if the client has closed the connection
     */
    public function close(?ClientDisconnectedException $why = null): void
    {
        if ($this->timed->closed) {
            return;
        }
        $this->timed->close();
        $this->service->removeConnection($this);
        $this->exchange?->cancel($why ?? ClientDisconnectedException::closed());
        $this->responder->closeBody();
        $this->bodyReader?->wake();
        $this->timed->wakeWriters();
    }

    /**
     * Closes the connection, because the server's stop timeout is over. If the response to the current request has not
     * begun, first answers with 503 (RFC 9110, 15.6.4).
     */
    public function closeWith503(): void
    {
        $exchange = $this->exchange;
        if ($exchange !== null && !$exchange->responseStarted) {
            $this->exchange = null;
            $this->service->endBeforeHandler($exchange); // a later response of the handler is dropped
            $this->responder->refuseNow(503, 'The server is stopping', $exchange);
            $exchange->cancel(ClientDisconnectedException::stopped());
            $this->timed->discardReceived();
        }
        $this->close(ClientDisconnectedException::stopped());
    }

    /** Ends this side of the connection. First sends collected bytes, and 500 if the current response has not begun. */
    public function answerWith500(): void
    {
        if ($this->exchange !== null && !$this->exchange->responseStarted) {
            $this->responder->refuseNow(500, 'Internal Server Error', $this->exchange);
        } elseif (!$this->timed->closed) {
            $this->transport->send($this->timed->outgoing . ($this->timed->body?->takeJoined() ?? ''));
        }
        if (!$this->timed->closed) {
            $this->transport->end();
        }
    }

    /** @return resource|null null when the connection is not encrypted */
    public function secureStream()
    {
        return $this->peer->secure ? $this->transport->stream() : null;
    }

    public function readable(): void
    {
        $timed = $this->timed;
        if ($timed->phase === Phase::Handshake) {
            $this->handshake();

            return;
        }
        $bytes = $this->transport->receive($timed->bodyAwaited ? BodyReader::READ_BYTES : self::READ_BYTES);
        if ($bytes === '') {
            $this->handleEnd();
        } elseif ($timed->phase === Phase::Linger) {
            $timed->discardReceived();
        } elseif ($bytes !== null) {
            $this->parser->push($bytes);
            try {
                $this->serving ? $this->handleBytes() : $this->serve();
            } catch (\Throwable $failure) { // for example from a destructor of the application, after its response
                [$this->serving, $timed->closeAfterResponse] = [false, true];
                $this->exchange === null ? $this->endServing() : $this->close();
                throw $failure;
            }
        }
    }

    public function written(): void
    {
        $this->timed->continueOutput();
    }

    private function handshake(): void
    {
        $done = $this->transport->handshake($this->service->warnOnce(...));
        if ($done === false) {
            ++$this->service->counters->handshakesFailed;
            $this->close();
        } elseif ($done === true) {
            $now = hrtime(true);
            $this->timed->enterPhase(Phase::Head, $now);
            $this->service->stopping ? $this->stop($now + $this->service->idleNanoseconds) : null;
        }
    }

    /** Handles bytes that arrive while a request is handled: more of its body, or pipelined requests. */
    private function handleBytes(): void
    {
        if ($this->timed->bodyAwaited) {
            $this->bodyReader?->wake();
        } elseif ($this->parser->buffered() > self::MAX_READ_AHEAD_BYTES) {
            $this->transport->pause();
            $this->service->unreadConnections->add($this);
        }
    }

    /** Handles the end of the client's side. The client may still receive responses. If not, a later write fails. */
    private function handleEnd(): void
    {
        $this->timed->peerEnded = $this->peerLeft = true;
        if (!$this->serving && !$this->transport->sending || $this->transport->isBroken) {
            $this->close();

            return;
        }
        $this->transport->pause();
        $this->exchange?->cancel(ClientDisconnectedException::closed());
        $this->bodyReader?->wake();
    }

    /** Handles all received requests one after the other, and sends their responses together. */
    private function serve(): void
    {
        $timed = $this->timed;
        $this->serving = true;
        $turnStart = \PHP_INT_MAX;
        $idle = false;
        try {
            do {
                $head = $this->parser->readHead();
                if ($head !== null) {
                    if ($timed->outgoing !== '') {
                        $timed->flushSoon();
                    }
                    $this->handle($this->begin($head));
                }
                $idle = $this->parser->isIdle();
                $more = $head !== null && !$timed->closeAfterResponse && !$idle;
                if (
                    $timed->outgoing !== ''
                    && (!$more || $this->transport->sending || \strlen($timed->outgoing) > self::RESPONSE_BUFFER_BYTES)
                    && $timed->flushAndWait()
                ) {
                    $more = !$timed->closeAfterResponse; // more requests may have arrived during the wait
                }
                if ($more) {
                    FiberLocal::clear(); // the next request must not get values of this one
                    $turnStart = min($turnStart, $timed->answeredAt);
                    if ($timed->answeredAt - $turnStart > self::TURN_NANOSECONDS) {
                        [$turnStart, $more] = [\PHP_INT_MAX, $this->letOthersServe()];
                    }
                }
            } while ($more);
        } catch (BadMessageException $malformed) {
            $this->responder->refuseMessage($malformed->status, $malformed->getMessage());
        }
        $this->serving = false;
        if ($idle && !$timed->closeAfterResponse && !$timed->peerEnded) {
            $this->transport->paused ? $this->transport->resume() : null;
            $now = $timed->phase === Phase::Handler ? $timed->answeredAt : (int) hrtime(true);
            $timed->deadline = $now + $this->service->idleNanoseconds;
            $timed->phase = Phase::Idle;
            if ($timed->deadline < $this->service->nextDeadlineCheck) {
                $this->service->scheduleDeadlineCheck($timed->deadline);
            }
        } else {
            $this->endServing();
        }
    }

    /** Ends this side of the connection if no response can follow. Otherwise starts to wait for more of a request. */
    private function endServing(): void
    {
        $timed = $this->timed;
        if ($timed->closed || $timed->phase === Phase::Linger) {
            return;
        }
        if ($timed->closeAfterResponse || $timed->peerEnded) {
            $timed->linger();
        } else {
            $this->transport->resume();
            if ($this->parser->bodyEnded()) {
                $timed->phase === Phase::Head ? null : $timed->enterPhase(Phase::Head, hrtime(true));
            } elseif ($timed->phase !== Phase::Discard) {
                $timed->discardBody();
            }
        }
    }

    /** Sends collected responses, and suspends until the next turn. Returns whether requests can still be handled. */
    private function letOthersServe(): bool
    {
        if ($this->timed->outgoing === '' || !$this->timed->flushAndWait()) {
            LoopTurn::await();
        }

        return !$this->timed->closeAfterResponse;
    }

    /** {@see RequestName} searches call stacks for calls of this method. */
    private function handle(ServerExchange $exchange): void
    {
        $service = $this->service;
        $head = $exchange->head;
        $isUnwanted = false;
        try {
            $response = $service->inFlight++ < $service->options->maxInFlight
                ? ($service->handler)(new Request($head, $exchange))
                : $service->overloaded();
        } catch (\Throwable $failure) {
            $response = $service->failureResponse($failure, $exchange);
            $isUnwanted = $response === null;
        } finally {
            --$service->inFlight;
            $exchange->ended ? $service->removeLate($exchange) : null;
            if ($service->closeOutputBuffers !== null && ob_get_level() !== 1) {
                ($service->closeOutputBuffers)();
            }
        }
        if ($exchange->ended) { // the server has answered, because the handler took too long or the server stops
            $service->handleLateReturn($exchange);

            return;
        }
        try {
            if ($isUnwanted || $this->timed->closed) {
                $this->responder->abandon();
            } elseif ($response instanceof ResponseInterface) {
                $this->responder->answer($response, $exchange);
            } else {
                throw HandlerResult::notAResponse($response, $service->handler);
            }
        } catch (\Throwable $failure) {
            $this->responder->answerFailure($failure, $exchange);
        }
        $this->exchange = null;
        $exchange->ended ? $service->removeLate($exchange) : $exchange->ended = true;
        $exchange->cancellation?->cancel(); // background code of the application may still use the request
        if ($head->length !== 0) {
            $this->bodyReader?->wake();
            $this->responder->release($exchange);
        }
    }

    private function begin(Head $head): ServerExchange
    {
        $service = $this->service;
        $timed = $this->timed;
        $now = hrtime(true);
        $detector = $service->blockDetector;
        if ($now > $detector->dueAt) {
            $detector->handleRequest($now);
        }
        $detector->dueAt = $now + $detector->limit;
        $exchange = $this->exchange = new ServerExchange($this->reference, $head, $now);
        ++$timed->requestCount;
        $timed->phase = Phase::Handler;
        $timed->deadline = $now + $service->handlerNanoseconds;
        if ($timed->deadline < $service->nextDeadlineCheck) {
            $service->scheduleDeadlineCheck($timed->deadline);
        }
        if ($this->peerLeft) {
            $exchange->cancel(ClientDisconnectedException::closed());
        }
        $exchange->fiber = \Fiber::getCurrent();

        return $exchange;
    }

    private function handlerTimeout(): void
    {
        [$late, $this->exchange] = [$this->exchange, null];
        $late === null ? null : $this->responder->answerLate($late);
    }
}
