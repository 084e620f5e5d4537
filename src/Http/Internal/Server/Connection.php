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
use Spindle\Internal\Async\Condition;
use Spindle\Internal\Async\FiberQueue;
use Spindle\Internal\Async\LoopTurn;

/**
 * One client's connection. Its requests are handled one at a time, in order.
 *
 * A handler runs in the event loop callback that read its request, and so in the fiber of these callbacks. If the
 * handler suspends, the event loop continues in another fiber. While the handler is suspended, the connection is still
 * watched for reading, so that the server notices when the client closes it.
 *
 * The class is long because it is one state machine. Bytes or an end from the client, a deadline, a response or a stop
 * can end any {@see Phase}, even while a handler or a write is suspended. Code without this state is in other classes.
 */
final class Connection
{
    /** Maximum bytes per read; BODY_READ_BYTES while a handler awaits its body. PHP allocates this many each time. */
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

    /** Maximum bytes that are received and discarded after the last response. */
    private const MAX_LINGER_BYTES = 1_048_576;

    /** Minimum nanoseconds of a pcntl_fork(). A handler that returns sooner has not forked the process. */
    private const MIN_FORK_NANOSECONDS = 20_000;

    private const CONTINUE = "HTTP/1.1 100 Continue\r\n\r\n";

    /** The time by hrtime() after which {@see expire()} is called. */
    public int $deadline = \PHP_INT_MAX;

    private Phase $phase = Phase::Head;

    private readonly Transport $transport;
    private readonly RequestParser $parser;
    private readonly ConnectionReference $reference;

    /** Whether a fiber runs {@see serve()}. The fiber may be suspended. */
    private bool $serving = false;

    private ?ServerExchange $exchange = null;

    /** The response body that is being sent. */
    private ?OutgoingBody $responseBody = null;

    private bool $responseStarted = false;

    private int $requestCount = 0;

    /** Bytes of responses that are collected and not sent; and whether {@see flush()} is queued in the event loop. */
    private string $outgoing = '';
    private bool $flushQueued = false;

    private bool $closeAfterResponse = false;

    /** Whether the client has ended its side, and the server has received all bytes before the end. */
    private bool $peerEnded = false;

    /** Whether the client has ended its side, even if bytes before the end are unread. Its requests are cancelled. */
    private bool $peerLeft = false;

    private bool $closed = false;

    /** Time of the last response, by hrtime(). */
    private int $answeredAt = 0;

    /** Suspends the fiber that waits for bytes of the request's body; null if none does. */
    private ?Condition $reader = null;

    /** Fibers that wait until the kernel has accepted all collected bytes; null before the first one. */
    private ?FiberQueue $writers = null;

    /** Whether the client waits for "100 Continue" before it sends the body. */
    private bool $continuePending = false;

    /** Checks the upload rate; created when the server first waits for a body. */
    private ?RateWindow $uploadRate = null;

    /** Bytes that the kernel had accepted when the current wait for the client began. */
    private int $sentBefore = 0;

    /** Start of the measurement of {@see isTooSlowSince()}, -1 without one; and the bytes transferred by then. */
    private int $measuredAt = -1;
    private int $measuredBytes = 0;

    /** Bytes that the transport had received when {@see linger()} was called. */
    private int $receivedBeforeLinger = 0;

    /** @param resource $stream non-blocking */
    public function __construct($stream, private readonly Service $service, public readonly Peer $peer)
    {
        $this->reference = new ConnectionReference($this, $peer, $service->options->forms);
        $this->parser = new RequestParser($service->messageLimits);
        $this->transport = new Transport($stream, $peer->secure, $this->readable(...), $this->written(...));
        $service->addConnection($this);
        $this->enterPhase($peer->secure ? Phase::Handshake : Phase::Head, hrtime(true));
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
        $this->checkBody($exchange);
        try {
            $bytes = $this->parser->readBody();
            while ($bytes === '' && !$this->parser->bodyEnded()) {
                $this->awaitBody($exchange);
                $bytes = $this->parser->readBody();
            }

            return $bytes;
        } catch (BadMessageException $malformed) {
            $this->closeAfterResponse = true;
            throw new HttpException($malformed->status, $malformed->getMessage(), previous: $malformed);
        }
    }

    /** Returns the current request's body if its length is known and allowed, it has arrived, and none was read. */
    public function wholeBody(ServerExchange $exchange): ?string
    {
        return $exchange === $this->exchange
            && !$this->closed
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
        return $exchange === $this->exchange ? $this->parser->trailers() : '';
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
            && $this->phase !== Phase::Handshake
            && $this->phase !== Phase::Linger
        ) {
            $this->phase = Phase::Idle;
            $this->deadline = min($this->deadline, $deadline);
            $this->service->scheduleDeadlineCheck($this->deadline);
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
        $minWait = match ($this->phase) {
            Phase::Idle => ConnectionLimits::MIN_IDLE_NANOSECONDS,
            Phase::Handshake, Phase::Head, Phase::Linger => ConnectionLimits::MIN_UNFINISHED_NANOSECONDS,
            // the rest of a body that no handler reads
            Phase::Body => $this->exchange === null ? ConnectionLimits::MIN_UNFINISHED_NANOSECONDS : null,
            Phase::Handler, Phase::Write, Phase::Stream => null,
        };
        if ($minWait === null || $this->serving || $this->transport->sending) {
            return null;
        }

        return $this->deadline - $this->service->phaseTimeouts[$this->phase->value] + $minWait;
    }

    /**
     * Returns whether the client is too slow to keep its connection while the server is full: the server is waiting for
     * it, and it has sent or received too few bytes since an earlier call.
     */
    public function isTooSlowForOthers(int $now): bool
    {
        if ($this->phase === Phase::Body && $this->exchange !== null && $this->uploadRate !== null) {
            return $this->isTooSlowSince(
                0,
                $this->uploadRate->waited($now),
                $this->transport->receivedBytes + $this->transport->sentBytes,
            );
        }
        if ($this->phase !== Phase::Write && $this->phase !== Phase::Linger || !$this->transport->sending) {
            return false;
        }
        $waitStart = $this->deadline - $this->service->phaseTimeouts[Phase::Write->value];
        $this->transport->trySend(); // the event loop does not report all progress: see checkProgress()

        return !$this->closed
            && $this->transport->sending
            && $this->isTooSlowSince($waitStart, $now, $this->transport->sentBytes);
    }

    /**
     * Compares the bytes since the last measurement with the minimum rate of a full server. Begins the next measurement
     * if there was none, or if the client was fast enough.
     *
     * @param int $waitStart when the server began to wait; earlier measurements are ignored
     * @param int $time      now, in the same unit: by hrtime(), or nanoseconds of waiting for the body so far
     * @param int $bytes     transferred so far
     */
    private function isTooSlowSince(int $waitStart, int $time, int $bytes): bool
    {
        $waited = $time - $this->measuredAt;
        $isMeasured = $this->measuredAt >= $waitStart && $waited >= 0;
        $minRate = ConnectionLimits::CROWDED_RATE_FACTOR * $this->service->options->minRate;
        if ($isMeasured && $waited < ConnectionLimits::MIN_SLOW_NANOSECONDS) {
            return false;
        }
        if (
            $isMeasured
            && $bytes - $this->measuredBytes < $minRate * $waited / 1e9
        ) {
            return true;
        }
        [$this->measuredAt, $this->measuredBytes] = [$time, $bytes];

        return false;
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
        if ($this->closed || $this->peerLeft || !$this->transport->paused) {
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
        match ($this->phase) {
            Phase::Head => $this->parser->isIdle()
                ? $this->close()
                : $this->refuse(408, 'The head of the request did not arrive in time'),
            Phase::Handler => $this->handlerTimeout(),
            Phase::Body => $this->checkRate(),
            Phase::Write => $this->checkProgress(),
            Phase::Linger => $this->transport->sending ? $this->checkProgress() : $this->close(),
            Phase::Handshake, Phase::Idle => $this->close(),
            Phase::Stream => null,
        };
    }

    /**
     * Closes the connection at once. A handler continues until it checks its cancellation.
     *
     * @param ClientLeftException|null $why reason for the cancellation; null if the client has closed the connection
     */
    public function close(?ClientLeftException $why = null): void
    {
        if ($this->closed) {
            return;
        }
        $this->closed = $this->closeAfterResponse = true;
        $this->deadline = \PHP_INT_MAX;
        $this->outgoing = '';
        $this->transport->close();
        $this->service->removeConnection($this);
        $this->exchange?->cancel($why ?? ClientLeftException::closed());
        $this->closeResponseBody();
        $this->wakeReader();
        $this->wakeWriters();
    }

    /**
     * Closes the connection because the time for stopping the server is over. Answers a request with 503 (RFC 9110,
     * 15.6.4) if its response was not started.
     */
    public function closeWith503(): void
    {
        $exchange = $this->exchange;
        if ($exchange !== null && !$this->responseStarted) {
            $this->exchange = null; // a later response of the handler is dropped
            $now = (int) hrtime(true);
            $this->service->counters->countAnswer(503, $now - $exchange->startedAt, $exchange->route?->getName());
            $this->transport->send(
                $this->outgoing
                    . $this->service->writer->refusal(503, 'The server is stopping', $exchange->head->method, $now),
            );
            $exchange->cancel(ClientLeftException::stopped());
            $this->discardReceived();
        }
        $this->close(ClientLeftException::stopped());
    }

    /** Drops received bytes. Closing with unread bytes would make the kernel discard the response. */
    private function discardReceived(): void
    {
        $maxBytes = $this->transport->receivedBytes + self::MAX_LINGER_BYTES;
        do {
            $bytes = $this->transport->receive(self::BODY_READ_BYTES) ?? '';
        } while ($bytes !== '' && $this->transport->receivedBytes < $maxBytes);
    }

    /** Answers a request with 500 if its response was not started, and ends this side of the connection. */
    public function answerWith500(): void
    {
        if ($this->exchange !== null && !$this->responseStarted) {
            $method = $this->exchange->head->method;
            $this->transport->send(
                $this->outgoing . $this->service->writer->refusal(500, 'Internal Server Error', $method, hrtime(true)),
            );
        }
        if (!$this->closed) {
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
        if ($this->phase === Phase::Handshake) {
            $this->handshake();

            return;
        }
        $bytes = $this->transport->receive($this->reader === null ? self::READ_BYTES : self::BODY_READ_BYTES);
        if ($bytes === null) {
            return;
        }
        if ($bytes === '') {
            $this->handleEnd();
        } elseif ($this->phase !== Phase::Linger) {
            $this->parser->push($bytes);
            $this->serving ? $this->handleBytes() : $this->serve();
        } elseif ($this->transport->receivedBytes - $this->receivedBeforeLinger > self::MAX_LINGER_BYTES) {
            $this->close();
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
            $this->enterPhase(Phase::Head, $now);
            $this->service->stopping ? $this->stop($now + $this->service->idleNanoseconds) : null;
        }
    }

    /** Handles bytes that arrive while a request is handled: more of its body, or pipelined requests. */
    private function handleBytes(): void
    {
        if ($this->reader !== null) {
            $this->wakeReader();
        } elseif ($this->parser->buffered() > self::MAX_READ_AHEAD_BYTES) {
            $this->transport->pause();
            $this->service->unreadConnections->add($this);
        }
    }

    /** Handles the end of the client's side. The client may still read. If it does not, sending fails later. */
    private function handleEnd(): void
    {
        $this->peerEnded = $this->peerLeft = true;
        if (!$this->serving && !$this->transport->sending || $this->transport->isBroken()) {
            $this->close();

            return;
        }
        $this->transport->pause();
        $this->exchange?->cancel(ClientLeftException::closed());
        $this->wakeReader();
    }

    /** Handles all received requests one after the other, and sends their responses together. */
    private function serve(): void
    {
        $this->serving = true;
        [$turnStart, $idle] = [0, false];
        try {
            do {
                $head = $this->parser->readHead();
                if ($head !== null) {
                    if ($this->outgoing !== '') {
                        $this->flushSoon();
                    }
                    $this->handle($head);
                }
                $idle = $this->parser->isIdle();
                $more = $head !== null && !$this->closeAfterResponse && !$idle;
                if (
                    $this->outgoing !== ''
                    && (!$more || $this->transport->sending || \strlen($this->outgoing) > self::RESPONSE_BUFFER_BYTES)
                    && $this->flushAndWait()
                ) {
                    $more = !$this->closeAfterResponse; // more requests may have arrived during the wait
                }
                if ($more) {
                    $turnStart = $turnStart === 0 ? $this->answeredAt : $turnStart;
                    if ($this->answeredAt - $turnStart > self::TURN_NANOSECONDS) {
                        $this->letOthersServe();
                        [$turnStart, $more] = [0, !$this->closeAfterResponse];
                    }
                }
            } while ($more);
        } catch (BadMessageException $malformed) {
            $this->refuse($malformed->status, $malformed->getMessage());
        }
        $this->serving = false;
        if ($idle && !$this->closeAfterResponse && !$this->peerEnded) {
            if ($this->transport->paused) {
                $this->transport->resume();
            }
            $now = $this->phase === Phase::Handler ? $this->answeredAt : (int) hrtime(true);
            $this->deadline = $now + $this->service->idleNanoseconds;
            $this->phase = Phase::Idle;
            if ($this->deadline < $this->service->nextDeadlineCheck) {
                $this->service->scheduleDeadlineCheck($this->deadline);
            }
        } elseif (!$this->closed && $this->phase !== Phase::Linger) {
            $this->closeAfterResponse || $this->peerEnded ? $this->linger() : $this->awaitRest();
        }
    }

    /** Sends collected responses, and suspends until the next turn of the event loop. */
    private function letOthersServe(): void
    {
        if ($this->outgoing === '' || !$this->flushAndWait()) {
            LoopTurn::await();
        }
    }

    /** Makes the event loop send collected responses as soon as the current fiber suspends. */
    private function flushSoon(): void
    {
        if (!$this->flushQueued) {
            $this->flushQueued = true;
            EventLoop::queue($this->flush(...));
        }
    }

    private function flush(): void
    {
        $this->flushQueued = false;
        if ($this->outgoing !== '' && !$this->closed) {
            $this->transport->send($this->outgoing);
            $this->outgoing = '';
        }
    }

    /** Waits for the rest of an incomplete message. */
    private function awaitRest(): void
    {
        $this->transport->resume();
        if ($this->parser->bodyEnded()) {
            $this->phase === Phase::Head ? null : $this->enterPhase(Phase::Head, hrtime(true));
        } elseif ($this->phase !== Phase::Body) {
            $this->enterBody();
        }
    }

    private function handle(Head $head): void
    {
        $service = $this->service;
        $now = hrtime(true);
        $exchange = $this->exchange = new ServerExchange($this->reference, $head, $now);
        ++$this->requestCount;
        $this->continuePending = $head->expectsContinue;
        $this->phase = Phase::Handler;
        $this->deadline = $now + $service->handlerNanoseconds;
        if ($this->deadline < $service->nextDeadlineCheck) {
            $service->scheduleDeadlineCheck($this->deadline);
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
        if ($exchange !== $this->exchange) { // the handler took too long, and the request was answered
            $exchange->releaseReferences();

            return;
        }
        try {
            if ($isUnwanted || $this->closed) {
                ++$service->counters->abandoned;
                $this->closeAfterResponse = true;
            } else {
                $this->answer(
                    $response ?? throw new \TypeError('The handler returned null instead of a response'),
                    $exchange,
                );
            }
        } catch (\Throwable $failure) {
            $this->answerFailure($failure, $exchange);
        }
        $this->exchange = null;
        $this->responseStarted = false;
        if ($this->reader !== null) {
            $this->wakeReader();
        }
        if ($head->length !== 0) {
            $exchange->releaseReferences();
        }
    }

    private function answer(ResponseInterface $response, ServerExchange $exchange): void
    {
        $this->answeredAt = $now = hrtime(true);
        $head = $exchange->head;
        $service = $this->service;
        if ($now - $exchange->startedAt > self::MIN_FORK_NANOSECONDS) {
            $service->killIfForked(); // a fork must not send a second response
        }
        $keepAlive = $head->persistent
            && !$this->closeAfterResponse
            && (!$service->closesAfterResponse || $this->parser->holdsHead())
            && $this->requestCount < $service->options->maxRequests
            && ($head->length === 0 || $this->canDiscard());
        $body = $response instanceof Response ? $response->body() : $response->getBody();
        if (!\is_string($body) && !$this->continuePending) {
            $body = ResponseWriter::shortBody($body) ?? $body;
            if (!$this->isCurrent($exchange)) {
                throw ClientLeftException::closed(); // the stream may have suspended while it was read
            }
        }
        if (\is_string($body)) {
            $this->outgoing .= $service->writer->complete($response, $body, $head, $keepAlive, $now);
        } else {
            $this->answerByStream($response, $body, $exchange, $keepAlive, $now);
        }
        $this->closeAfterResponse = $this->closeAfterResponse || !$keepAlive;
        $service->counters->countAnswer(
            $response->getStatusCode(),
            $now - $exchange->startedAt,
            $exchange->route?->getName(),
        );
    }

    /** Returns whether the connection can be kept, because the unread rest of the body is short or has arrived. */
    private function canDiscard(): bool
    {
        return $this->parser->holdsBody()
            || !$this->continuePending && ($this->parser->remaining() ?? \PHP_INT_MAX) <= self::MAX_DISCARDED_BYTES;
    }

    private function answerByStream(
        ResponseInterface $response,
        StreamInterface $stream,
        ServerExchange $exchange,
        bool &$keepAlive,
        int $now,
    ): void {
        $head = $exchange->head;
        $body = new OutgoingBody($stream);
        $headStart = $headEnd = \strlen($this->outgoing);
        try {
            $length = ResponseWriter::length($response, $stream);
            $chunked = $length === null && $head->version !== '1.0';
            $hasBody = ResponseWriter::hasBody($response->getStatusCode(), $head);
            $pieces = $body->pieces($length, $chunked);
            if ($hasBody) {
                $body->checkUnread();
                $this->responseBody = $body;
                $this->service->stopping ? $body->stop() : null;
                if ($this->continuePending) {
                    // the response may depend on a body that the client sends only after "100 Continue"
                    $pieces->current();
                    $this->isCurrent($exchange) || throw ClientLeftException::closed();
                    $headStart = $headEnd = \strlen($this->outgoing);
                }
            }
            $keepAlive = $keepAlive && ($length !== null || $chunked || !$hasBody);
            $this->outgoing .= $this->service->writer->head($response, $length, $head, $keepAlive, $now);
            $headEnd = \strlen($this->outgoing);
            $this->responseStarted = true;
            if ($hasBody) {
                $endsByClose = $length === null && !$chunked; // the end of the connection is the end of the body
                $endsByClose ? $this->transport->markIncomplete(true) : null;
                $this->sendBody($pieces);
                $endsByClose && !$this->closed ? $this->transport->markIncomplete(false) : null;
            }
        } catch (\Throwable $failure) {
            if (\strlen($this->outgoing) === $headEnd) { // no part of the response was sent
                [$this->outgoing, $this->responseStarted] = [substr($this->outgoing, 0, $headStart), false];
                $this->closed ? null : $this->transport->markIncomplete(false);
            } else {
                $this->service->counters->countAnswer(
                    $response->getStatusCode(),
                    $now - $exchange->startedAt,
                    $exchange->route?->getName(),
                );
            }
            throw $failure;
        } finally {
            $this->responseBody = null;
            $this->closed ? $this->closeBody($body) : $body->close();
        }
    }

    /** @param \Generator<int, string> $pieces each is requested only after the previous one was sent */
    private function sendBody(\Generator $pieces): void
    {
        $this->flushSoon();
        $this->enterStream();
        foreach ($pieces as $piece) {
            if ($piece !== '' && !$this->closed) {
                $this->outgoing .= $piece;
                $this->flushAndWait();
                $this->enterStream();
            }
            if ($this->closed) {
                return;
            }
        }
    }

    /**
     * Starts the wait for the response's next piece. While another fiber waits for the request's body, the phase is
     * {@see Phase::Body}, so that its deadline applies.
     */
    private function enterStream(): void
    {
        if ($this->reader === null) {
            $this->enterPhase(Phase::Stream, 0);
        } elseif ($this->phase !== Phase::Body) {
            $this->enterBody();
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
        if ($this->responseStarted) {
            $this->close();
        } elseif ($response === null) {
            ++$this->service->counters->abandoned;
            $this->closeAfterResponse = true;
        } else {
            $this->answer($response, $exchange);
        }
    }

    /** Returns whether a response can still be sent. Has to be called again after each call that may suspend. */
    private function isCurrent(ServerExchange $exchange): bool
    {
        return $exchange === $this->exchange && !$this->closed;
    }

    /** @throws ClientLeftException unless the body belongs to the current request of an open connection */
    private function checkBody(ServerExchange $exchange): void
    {
        if ($this->closed || $exchange !== $this->exchange) {
            throw $this->closed || $exchange->wasCancelled()
                ? ClientLeftException::bodyIncomplete()
                : new \LogicException('The body is not available any more, because the request was answered');
        }
    }

    /** Waits for body bytes, then restores the interrupted phase with its remaining deadline. */
    private function awaitBody(ServerExchange $exchange): void
    {
        if ($this->reader !== null) {
            throw new \LogicException('Another fiber is reading the body');
        }
        [$phase, $remaining] = [$this->phase, $this->deadline - (int) hrtime(true)];
        if ($this->continuePending && !$this->responseStarted && !$this->peerEnded) {
            $this->continuePending = false;
            $this->outgoing .= self::CONTINUE;
            if ($this->flushAndWait() && $exchange === $this->exchange) {
                $this->enterPhaseUntil($phase, (int) hrtime(true) + $remaining);
            }
            $this->checkBody($exchange);
        }
        if ($this->peerEnded) {
            throw ClientLeftException::bodyIncomplete();
        }
        $this->transport->resume();
        $this->enterBody();
        $this->reader = new Condition();
        try {
            $this->reader->wait();
        } finally {
            $now = $this->uploadRate?->endWait() ?? (int) hrtime(true);
            if ($this->phase === Phase::Body && $exchange === $this->exchange) {
                $this->responseStarted
                    ? $this->enterPhase(Phase::Stream, 0)
                    : $this->enterPhaseUntil($phase, $now + $remaining);
            }
        }
        $this->checkBody($exchange);
    }

    /** @return bool whether the fiber was suspended because the kernel did not accept all bytes at once */
    private function flushAndWait(): bool
    {
        $out = $this->outgoing;
        $this->outgoing = '';
        if ($this->closed || $this->transport->send($out)) {
            return false;
        }
        if ($this->transport->isBroken()) {
            $this->close();

            return false;
        }
        $this->enterWrite(Phase::Write);
        ($this->writers ??= new FiberQueue())->wait();

        return true;
    }

    /** Continues after the remaining bytes were sent, or when they can't be sent any more. */
    private function written(): void
    {
        if ($this->transport->isBroken()) {
            $this->close();
        } elseif ($this->phase === Phase::Linger) {
            $this->endOutput();
        } else {
            $this->wakeWriters();
        }
    }

    private function refuse(int $status, string $message): void
    {
        $this->service->counters->countRefusal($status);
        $this->respondAndLinger($status, $message, $this->parser->method());
    }

    private function respondAndLinger(int $status, string $message, string $method): void
    {
        $this->outgoing .= $this->service->writer->refusal($status, $message, $method, hrtime(true));
        $this->linger();
    }

    private function handlerTimeout(): void
    {
        $exchange = $this->exchange;
        $this->exchange = null;
        if ($exchange === null) {
            return;
        }
        $seconds = $this->service->options->handlerTimeout;
        $this->service->logger->warning(
            "The handler of {method} {target} did not answer within {$seconds} s",
            ['method' => $exchange->head->method, 'target' => $exchange->head->target],
        );
        $this->service->counters->countAnswer(
            503,
            (int) hrtime(true) - $exchange->startedAt,
            $exchange->route?->getName(),
        );
        $this->respondAndLinger(503, 'The request took too long', $exchange->head->method);
        $exchange->cancel(ClientLeftException::handlerTimeout($seconds));
    }

    /**
     * Ends this side of the connection once all bytes are sent, and waits until the client ends its side. Closing with
     * unread bytes would make the kernel discard the response: RFC 9112, 9.6.
     */
    private function linger(): void
    {
        $this->closeAfterResponse = true;
        $this->phase = Phase::Linger;
        $sent = $this->outgoing === '' ? !$this->transport->sending : $this->transport->send($this->outgoing);
        $this->outgoing = '';
        $this->receivedBeforeLinger = $this->transport->receivedBytes;
        if ($this->transport->isBroken()) {
            $this->close();
        } elseif ($sent) {
            $this->endOutput();
        } else {
            $this->enterWrite(Phase::Linger);
        }
    }

    /** Ends this side of the connection, whose bytes are all sent. */
    private function endOutput(): void
    {
        if ($this->peerEnded) {
            $this->close();
        } else {
            $this->enterPhase(Phase::Linger, hrtime(true));
            $this->transport->end();
            $this->transport->resume();
        }
    }

    private function enterPhase(Phase $phase, int $now): void
    {
        $this->enterPhaseUntil($phase, $now + $this->service->phaseTimeouts[$phase->value]);
    }

    private function enterPhaseUntil(Phase $phase, int $deadline): void
    {
        if ($this->closed) {
            return;
        }
        $this->phase = $phase;
        $this->deadline = $deadline;
        if ($deadline < $this->service->nextDeadlineCheck) {
            $this->service->scheduleDeadlineCheck($deadline);
        }
    }

    /** Starts or continues the wait for more of the body. Its deadline is the end of the rate's time window. */
    private function enterBody(): void
    {
        $this->uploadRate ??= new RateWindow(
            $this->transport,
            (int) ceil($this->service->options->minRate * $this->service->options->rateWindow),
        );
        $this->enterPhaseUntil(
            Phase::Body,
            $this->uploadRate->startWait($this->requestCount) + $this->service->phaseTimeouts[Phase::Body->value],
        );
    }

    private function checkRate(): void
    {
        \assert($this->uploadRate !== null);
        if ($this->uploadRate->isFastEnough()) {
            $this->uploadRate->endWait();
            $this->uploadRate->restart();
            $this->enterBody();
        } elseif ($this->reader !== null) {
            $this->closeAfterResponse = true;
            $reader = $this->reader;
            $this->reader = null;
            $reader->fail(new HttpException(408, 'The body arrived too slowly'));
        } else {
            $this->close(ClientLeftException::tooSlow());
        }
    }

    /** Starts the wait until the client receives bytes that could not be sent at once. */
    private function enterWrite(Phase $phase): void
    {
        $this->sentBefore = $this->transport->sentBytes;
        $this->enterPhaseUntil($phase, (int) hrtime(true) + $this->service->phaseTimeouts[Phase::Write->value]);
    }

    private function checkProgress(): void
    {
        $phase = $this->phase;
        // The event loop reports a full buffer as writable only when a third of it is free, which may be megabytes.
        $this->transport->trySend();
        if ($this->closed || !$this->transport->sending) {
            return;
        }
        $this->transport->sentBytes > $this->sentBefore
            ? $this->enterWrite($phase)
            : $this->close(ClientLeftException::tooSlow());
    }

    private function wakeReader(): void
    {
        $reader = $this->reader;
        $this->reader = null;
        $reader?->notify();
    }

    private function wakeWriters(): void
    {
        $this->writers?->wakeAll();
    }
}
