<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Server;

use Psr\Http\Message\ResponseInterface;
use Psr\Http\Message\StreamInterface;
use Psr\Log\LoggerInterface;
use Revolt\EventLoop;
use Spindle\Http\ClientLeftException;
use Spindle\Http\HttpException;
use Spindle\Http\Internal\Form\FormReader;
use Spindle\Http\Internal\Message\BadMessageException;
use Spindle\Http\Internal\Message\Head;
use Spindle\Http\Internal\Message\Peer;
use Spindle\Http\Internal\Message\Request;
use Spindle\Http\Internal\Message\RequestParser;
use Spindle\Http\Response;
use Spindle\Internal\Async\LoopTurn;

/**
 * One client's connection. Its requests are handled one at a time, in order.
 *
 * A handler runs in the event loop callback that read its request, and so in the fiber of these callbacks. If the
 * handler suspends, the event loop continues in another fiber. While the handler is suspended, the connection is still
 * watched for reading, so that the server notices when the client closes it.
 *
 * The class is long because it is one state machine. Bytes or an end from the client, a deadline, a response or a stop
 * can end any {@see Phase}, even while a handler or a write is suspended. {@see TimedTransport} has the deadlines.
 */
final class Connection
{
    /** Maximum bytes per read, and while a handler awaits its body. PHP allocates this many each time. */
    private const READ_BYTES = 3_000;
    private const BODY_READ_BYTES = 65_536;

    /** Unconsumed bytes, such as pipelined requests, above which the connection is not read while a handler runs. */
    private const MAX_READ_AHEAD_BYTES = 65_536;

    /** Bytes of collected responses to pipelined requests above which the responses are sent. */
    private const RESPONSE_BUFFER_BYTES = 65_536;

    /** Nanoseconds of handling pipelined requests after which the event loop serves other connections. */
    private const TURN_NANOSECONDS = 1_000_000;

    /** Unread bytes up to which the rest of an incomplete body is discarded. Otherwise the connection is closed. */
    private const MAX_DISCARDED_BYTES = 65_536;

    /** Minimum nanoseconds of a pcntl_fork(). A handler that returns sooner has not forked the process. */
    private const MIN_FORK_NANOSECONDS = 20_000;

    public readonly TimedTransport $timed;
    private readonly Transport $transport;
    private readonly RequestParser $parser;
    private readonly ConnectionReference $reference;

    /** Whether a fiber runs {@see serve()}. The fiber may be suspended. */
    private bool $serving = false;

    private ?ServerExchange $exchange = null;

    /** The response body that is being sent. */
    private ?OutgoingBody $responseBody = null;

    private int $requestCount = 0;

    /** Whether the client has ended its side, even if bytes before the end are unread. Its requests are cancelled. */
    private bool $peerLeft = false;

    /** Time of the last response, by hrtime(). */
    private int $answeredAt = 0;

    /** Created when a handler first reads a body that has not arrived as a whole. */
    private ?BodyReader $bodyReader = null;

    /** @param resource $stream non-blocking */
    public function __construct($stream, private readonly Service $service, public readonly Peer $peer)
    {
        $this->reference = new ConnectionReference($this, $peer, $service->options->forms);
        $this->parser = new RequestParser($service->messageLimits);
        $this->timed = new TimedTransport($stream, $service, $this, $peer->secure, $this->readable(...));
        $this->transport = $this->timed->transport;
        $service->addConnection($this);
        $this->timed->enterPhase($peer->secure ? Phase::Handshake : Phase::Head, hrtime(true));
    }

    public function maxBody(): int
    {
        return $this->service->options->maxBody;
    }

    public function forms(): FormReader
    {
        return $this->service->forms;
    }

    public function logger(): ?LoggerInterface
    {
        return $this->service->logger->isSilent() ? null : $this->service->logger;
    }

    /**
     * Returns the next bytes of the current request's body. Suspends until some have arrived.
     *
     * @return string '' at the end of the body
     *
     * @throws HttpException when the body is malformed or too slow
     * @throws ClientLeftException when the client has ended its side, or the connection is closed
     */
    public function receiveBody(ServerExchange $exchange): string
    {
        return $this->bodyReader()->receive($exchange, $this->requestCount);
    }

    private function bodyReader(): BodyReader
    {
        return $this->bodyReader ??= new BodyReader($this->parser, $this->timed);
    }

    /** Returns the current request's body if its length is known and allowed, it has arrived, and none was read. */
    public function wholeBody(ServerExchange $exchange): ?string
    {
        return !$exchange->ended
            && !$this->timed->closed
            && $exchange->head->length <= $this->service->options->maxBody
            ? $this->parser->readWholeBody($exchange->head->length)
            : null;
    }

    /** @throws HttpException 503 when there is not enough memory to receive more of a body */
    public function checkMemory(): void
    {
        if (!$this->service->memory->allows(self::BODY_READ_BYTES)) {
            throw $this->service->outOfMemory();
        }
    }

    /** Returns the field lines after the last chunk; '' when the request is no longer the current one. */
    public function trailers(ServerExchange $exchange): string
    {
        return !$exchange->ended ? $this->parser->trailers() : '';
    }

    /**
     * Prepares for the end of the server. Ends an event stream. Keeps an idle connection until $deadline, by hrtime(),
     * or until its own earlier deadline, because a request may be on its way.
     */
    public function stop(int $deadline): void
    {
        $this->responseBody?->stop();
        if (
            !$this->serving
            && $this->parser->isIdle()
            && $this->timed->phase !== Phase::Handshake
            && $this->timed->phase !== Phase::Linger
        ) {
            $this->timed->phase = Phase::Idle;
            $this->timed->deadline = min($this->timed->deadline, $deadline);
            $this->service->scheduleDeadlineCheck($this->timed->deadline);
        }
    }

    public function exchange(): ?ServerExchange
    {
        return $this->exchange;
    }

    /** Returns whether a request is being handled, or bytes of a response are unsent. */
    public function isUnfinished(): bool
    {
        return $this->exchange !== null || $this->transport->sending;
    }

    /** Returns when the connection can be evicted, by hrtime(); null while it has a request or unsent bytes. */
    public function evictableFrom(): ?int
    {
        $minWait = match ($this->timed->phase) {
            Phase::Idle => ConnectionLimits::MIN_IDLE_NANOSECONDS,
            Phase::Handshake, Phase::Head, Phase::Linger => ConnectionLimits::MIN_UNFINISHED_NANOSECONDS,
            // the rest of a body that no handler reads
            Phase::Body => $this->exchange === null ? ConnectionLimits::MIN_UNFINISHED_NANOSECONDS : null,
            Phase::Handler, Phase::Write, Phase::Stream => null,
        };
        if ($minWait === null || $this->serving || $this->transport->sending) {
            return null;
        }

        return $this->timed->deadline - $this->service->phaseTimeouts[$this->timed->phase->value] + $minWait;
    }

    /**
     * Returns whether the client is too slow to keep its connection while the server is full: the server is waiting for
     * it, and it has sent or received too few bytes since an earlier call.
     */
    public function isTooSlowForOthers(int $now): bool
    {
        return $this->timed->phase === Phase::Body && $this->exchange !== null
            ? $this->timed->isSentTooSlowly($now)
            : $this->timed->isReceivedTooSlowly($now);
    }

    /** Closes the connection to make room for another one. */
    public function evict(): void
    {
        ++$this->service->counters->evicted;
        $this->close($this->exchange === null ? null : ClientLeftException::crowdedOut());
    }

    public function trustPeer(): void
    {
        $this->service->connectionLimits->trust($this->peer);
    }

    /**
     * Checks whether the client has ended its side while the connection is not read.
     *
     * Even then, the client may wait for responses to requests that are among the unread bytes. So the connection is
     * closed only if nothing can be sent any more. Otherwise only the current request is cancelled.
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
        $this->transport->isBroken() ? $this->close() : $this->exchange?->cancel(ClientLeftException::closed());

        return false;
    }

    /** Handles the deadline of the current phase. */
    public function expire(): void
    {
        match ($this->timed->phase) {
            Phase::Head => $this->parser->isIdle()
                ? $this->close()
                : $this->refuse(408, 'The head of the request did not arrive in time'),
            Phase::Handler => $this->handlerTimeout(),
            Phase::Body => $this->checkRate(),
            Phase::Write => $this->timed->checkProgress(),
            Phase::Linger => $this->transport->sending ? $this->timed->checkProgress() : $this->close(),
            Phase::Handshake, Phase::Idle => $this->close(),
            Phase::Stream => null,
        };
    }

    private function checkRate(): void
    {
        if ($this->timed->continueBody()) {
            return;
        }
        $this->timed->bodyAwaited
            ? $this->bodyReader?->failTooSlow()
            : $this->close(ClientLeftException::tooSlow());
    }

    /**
     * Closes the connection at once. A handler continues until it checks its cancellation.
     *
     * @param ClientLeftException|null $why reason for the cancellation; null if the client has closed the connection
     */
    public function close(?ClientLeftException $why = null): void
    {
        if ($this->timed->closed) {
            return;
        }
        $this->timed->close();
        $this->service->removeConnection($this);
        $this->exchange?->cancel($why ?? ClientLeftException::closed());
        $this->closeResponseBody();
        $this->bodyReader?->wake();
        $this->timed->wakeWriters();
    }

    /**
     * Closes the connection because the time for stopping the server is over. Answers a request with 503 (RFC 9110,
     * 15.6.4) if its response was not started.
     */
    public function closeWith503(): void
    {
        $exchange = $this->exchange;
        if ($exchange !== null && !$exchange->responseStarted) {
            $this->exchange = null;
            $exchange->ended = true; // a later response of the handler is dropped
            $now = (int) hrtime(true);
            $this->countAnswer(503, $exchange, $now);
            $this->transport->send(
                $this->timed->outgoing
                    . $this->service->writer->refusal(503, 'The server is stopping', $exchange->head->method, $now),
            );
            $exchange->cancel(ClientLeftException::stopped());
            $this->timed->discardReceived();
        }
        $this->close(ClientLeftException::stopped());
    }

    /** Answers a request with 500 if its response was not started, and ends this side of the connection. */
    public function answerWith500(): void
    {
        if ($this->exchange !== null && !$this->exchange->responseStarted) {
            $method = $this->exchange->head->method;
            $this->transport->send(
                $this->timed->outgoing
                    . $this->service->writer->refusal(500, 'Internal Server Error', $method, hrtime(true)),
            );
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

    /** Closes the response body, which is no longer needed, in another fiber, because the body may suspend. */
    private function closeResponseBody(): void
    {
        $this->responseBody === null ? null : EventLoop::queue($this->closeBody(...), $this->responseBody);
    }

    /** Closes a response body. Logs an exception from its generator, because no response can report the exception. */
    private function closeBody(OutgoingBody $body): void
    {
        try {
            $body->close();
        } catch (\Throwable $failure) {
            $this->service->logger->warning(
                "A response body could not be closed: {$failure->getMessage()}",
                ['exception' => $failure],
            );
        }
    }

    private function readable(): void
    {
        $timed = $this->timed;
        if ($timed->phase === Phase::Handshake) {
            $this->handshake();

            return;
        }
        $bytes = $this->transport->receive($timed->bodyAwaited ? self::BODY_READ_BYTES : self::READ_BYTES);
        if ($bytes === null) {
            return;
        }
        if ($bytes === '') {
            $this->handleEnd();
        } elseif ($timed->phase !== Phase::Linger) {
            $this->parser->push($bytes);
            $this->serving ? $this->handleBytes() : $this->serve();
        } else {
            $timed->limitLingering();
        }
    }

    private function handshake(): void
    {
        $done = $this->transport->handshake();
        if ($done === false) {
            ++$this->service->counters->handshakesFailed;
            $fault = $this->transport->certificateFault();
            if ($fault !== null) {
                $this->service->warnOnce("TLS connections fail because of the certificate: {$fault}");
            }
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

    /** Handles the end of the client's side. The client may still read. If it does not, sending fails later. */
    private function handleEnd(): void
    {
        $this->timed->peerEnded = $this->peerLeft = true;
        if (!$this->serving && !$this->transport->sending || $this->transport->isBroken()) {
            $this->close();

            return;
        }
        $this->transport->pause();
        $this->exchange?->cancel(ClientLeftException::closed());
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
                    $this->handle($head);
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
                    $turnStart = min($turnStart, $this->answeredAt);
                    if ($this->answeredAt - $turnStart > self::TURN_NANOSECONDS) {
                        [$turnStart, $more] = [\PHP_INT_MAX, $this->letOthersServe()];
                    }
                }
            } while ($more);
        } catch (BadMessageException $malformed) {
            $this->refuse($malformed->status, $malformed->getMessage());
        }
        $this->serving = false;
        if ($idle && !$timed->closeAfterResponse && !$timed->peerEnded) {
            if ($this->transport->paused) {
                $this->transport->resume();
            }
            $now = $timed->phase === Phase::Handler ? $this->answeredAt : (int) hrtime(true);
            $timed->deadline = $now + $this->service->idleNanoseconds;
            $timed->phase = Phase::Idle;
            if ($timed->deadline < $this->service->nextDeadlineCheck) {
                $this->service->scheduleDeadlineCheck($timed->deadline);
            }
        } else {
            $this->endServing();
        }
    }

    /** Ends this side of the connection after its last response. Otherwise waits for the rest of a message. */
    private function endServing(): void
    {
        $timed = $this->timed;
        if ($timed->closed || $timed->phase === Phase::Linger) {
            return;
        }
        if ($timed->closeAfterResponse || $timed->peerEnded) {
            $timed->linger();

            return;
        }
        $this->transport->resume();
        if ($this->parser->bodyEnded()) {
            $timed->phase === Phase::Head ? null : $timed->enterPhase(Phase::Head, hrtime(true));
        } elseif ($timed->phase !== Phase::Body) {
            $timed->enterBody($this->requestCount);
        }
    }

    /**
     * Sends collected responses, and suspends until the next turn of the event loop.
     *
     * @return bool whether requests can still be handled
     */
    private function letOthersServe(): bool
    {
        if ($this->timed->outgoing === '' || !$this->timed->flushAndWait()) {
            LoopTurn::await();
        }

        return !$this->timed->closeAfterResponse;
    }

    private function handle(Head $head): void
    {
        $service = $this->service;
        $timed = $this->timed;
        $now = hrtime(true);
        $exchange = $this->exchange = new ServerExchange($this->reference, $head, $now);
        ++$this->requestCount;
        $timed->phase = Phase::Handler;
        $timed->deadline = $now + $service->handlerNanoseconds;
        if ($timed->deadline < $service->nextDeadlineCheck) {
            $service->scheduleDeadlineCheck($timed->deadline);
        }
        if ($this->peerLeft) {
            $exchange->cancel(ClientLeftException::closed());
        }
        $exchange->fiber = \Fiber::getCurrent();
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
            if ($service->tidyOutput !== null && ob_get_level() !== 1) {
                ($service->tidyOutput)();
            }
        }
        if ($exchange->ended) { // the handler took too long, and the request was answered
            $exchange->releaseReferences();

            return;
        }
        try {
            $isUnwanted || $timed->closed ? $this->abandon() : $this->answer(
                $response ?? throw new \TypeError('The handler returned null instead of a response'),
                $exchange,
            );
        } catch (\Throwable $failure) {
            $this->answerFailure($failure, $exchange);
        }
        $this->exchange = null;
        $exchange->ended = true;
        $this->bodyReader?->wake();
        if ($head->length !== 0) {
            $exchange->releaseReferences();
        }
    }

    /** Ends the connection without a response, because the client does not expect one any more. */
    private function abandon(): void
    {
        ++$this->service->counters->abandoned;
        $this->timed->closeAfterResponse = true;
    }

    private function answer(ResponseInterface $response, ServerExchange $exchange): void
    {
        $this->answeredAt = $now = (int) hrtime(true);
        $head = $exchange->head;
        $service = $this->service;
        $timed = $this->timed;
        if ($now - $exchange->startedAt > self::MIN_FORK_NANOSECONDS) {
            $service->killIfForked(); // a fork must not send a second response
        }
        $keepAlive = $head->persistent
            && !$timed->closeAfterResponse
            && (!$service->closesAfterResponse || $this->parser->holdsHead())
            && $this->requestCount < $service->options->maxRequests
            && ($head->length === 0 || $this->canDiscard($exchange));
        $body = $response instanceof Response ? $response->body() : $response->getBody();
        if (!\is_string($body) && !$exchange->awaitsContinue()) {
            $body = ResponseWriter::shortBody($body) ?? $body;
            if (!$this->isCurrent($exchange)) {
                throw ClientLeftException::closed(); // the stream may have suspended while it was read
            }
        }
        if (\is_string($body)) {
            $timed->outgoing .= $service->writer->complete($response, $body, $head, $keepAlive, $now);
        } else {
            $keepAlive = $this->answerByStream($response, $body, $exchange, $keepAlive, $now);
        }
        if (!$keepAlive) {
            $timed->closeAfterResponse = true;
        }
        $service->counters->countAnswer(
            $response->getStatusCode(),
            $now - $exchange->startedAt,
            $exchange->route?->getName(),
        );
    }

    /** Returns whether the connection can be kept, because the unread rest of the body is short or has arrived. */
    private function canDiscard(ServerExchange $exchange): bool
    {
        return $this->parser->holdsBody()
            || !$exchange->awaitsContinue()
                && ($this->parser->remaining() ?? \PHP_INT_MAX) <= self::MAX_DISCARDED_BYTES;
    }

    /** @return bool whether the connection can be kept */
    private function answerByStream(
        ResponseInterface $response,
        StreamInterface $stream,
        ServerExchange $exchange,
        bool $keepAlive,
        int $now,
    ): bool {
        $timed = $this->timed;
        $body = new OutgoingBody($stream);
        $headStart = $headEnd = \strlen($timed->outgoing);
        try {
            $pieces = $body->prepare($response, $exchange->head);
            if ($body->isSent) {
                $this->responseBody = $body;
                $this->service->stopping ? $body->stop() : null;
                if ($exchange->awaitsContinue()) {
                    // the response may depend on a body that the client sends only after "100 Continue"
                    $pieces->current();
                    $this->isCurrent($exchange) || throw ClientLeftException::closed();
                    $headStart = $headEnd = \strlen($timed->outgoing);
                }
            }
            $keepAlive = $keepAlive && !$body->endsByClose();
            $timed->outgoing .= $this->service->writer->head(
                $response,
                $body->length,
                $exchange->head,
                $keepAlive,
                $now,
            );
            $headEnd = \strlen($timed->outgoing);
            $exchange->responseStarted = true;
            $body->send($pieces, $timed);

            return $keepAlive;
        } catch (\Throwable $failure) {
            if (\strlen($timed->outgoing) === $headEnd) { // no part of the response was sent
                [$timed->outgoing, $exchange->responseStarted] = [substr($timed->outgoing, 0, $headStart), false];
                $timed->closed ? null : $this->transport->markIncomplete(false);
            } else {
                $this->countAnswer($response->getStatusCode(), $exchange, $now);
            }
            throw $failure;
        } finally {
            $this->responseBody = null;
            $timed->closed ? $this->closeBody($body) : $body->close();
        }
    }

    /** Answers an exception. A started response is cut off instead, so that it does not look complete to the client. */
    private function answerFailure(\Throwable $failure, ServerExchange $exchange): void
    {
        if (!$this->isCurrent($exchange)) {
            return;
        }
        $response = $this->service->failureResponse($failure, $exchange); // a logger may suspend
        if (!$this->isCurrent($exchange)) {
            return;
        }
        if ($exchange->responseStarted) {
            $this->close();
        } elseif ($response === null) {
            $this->abandon();
        } else {
            $this->answer($response, $exchange);
        }
    }

    /** Returns whether a response can still be sent. Has to be called again after each call that may suspend. */
    private function isCurrent(ServerExchange $exchange): bool
    {
        return !$exchange->ended && !$this->timed->closed;
    }

    private function countAnswer(int $status, ServerExchange $exchange, int $now): void
    {
        $this->service->counters->countAnswer($status, $now - $exchange->startedAt, $exchange->route?->getName());
    }

    private function refuse(int $status, string $message): void
    {
        $this->service->counters->countRefusal($status);
        $this->respondAndLinger($status, $message, $this->parser->method());
    }

    private function respondAndLinger(int $status, string $message, string $method): void
    {
        $this->timed->outgoing .= $this->service->writer->refusal($status, $message, $method, hrtime(true));
        $this->timed->linger();
    }

    private function handlerTimeout(): void
    {
        $exchange = $this->exchange;
        if ($exchange === null) {
            return;
        }
        $this->exchange = null;
        $exchange->ended = true;
        $seconds = $this->service->options->handlerTimeout;
        $this->service->logger->warning(
            "The handler of {method} {target} did not answer within {$seconds} s",
            ['method' => $exchange->head->method, 'target' => $exchange->head->target],
        );
        $this->countAnswer(503, $exchange, (int) hrtime(true));
        $this->respondAndLinger(503, 'The request took too long', $exchange->head->method);
        $exchange->cancel(ClientLeftException::handlerTimeout($seconds));
    }
}
