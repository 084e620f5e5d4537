<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Server;

use Psr\Http\Message\ResponseInterface;
use Psr\Http\Message\StreamInterface;
use Revolt\EventLoop;
use Spindle\Http\ClientDisconnectedException;
use Spindle\Http\Internal\Message\HandlerFailure;
use Spindle\Http\Internal\Message\RequestParser;
use Spindle\Http\Response;

/** Sends the responses of a connection: responses of handlers, and responses of the server, such as errors. */
final class Responder
{
    /** Maximum unread bytes of an incomplete body. If more are unread, or may be, the response ends the connection. */
    private const MAX_DISCARDED_BYTES = 65_536;

    /** Minimum nanoseconds of a pcntl_fork(). A handler that returns sooner has not forked the process. */
    private const MIN_FORK_NANOSECONDS = 20_000;

    private ?OutgoingBody $body = null;

    /** A closed response body whose iterator has not ended. {@see release()} waits until the iterator has ended. */
    private ?OutgoingBody $endingBody = null;

    public function __construct(
        private readonly Service $service,
        private readonly TimedTransport $timed,
        private readonly RequestParser $parser,
    ) {}

    /** Ends the connection without a response. Called when the request was cancelled or the connection is closed. */
    public function abandon(): void
    {
        $this->service->killIfForked();
        ++$this->service->counters->abandoned;
        $this->timed->closeAfterResponse = true;
    }

    /** Sends a streamed response of a handler. Collects other responses, because several can be sent together. */
    public function answer(ResponseInterface $response, ServerExchange $exchange): void
    {
        $head = $exchange->head;
        $service = $this->service;
        $timed = $this->timed;
        $timed->answeredAt = $now = (int) hrtime(true);
        if ($now - $exchange->startedAt > self::MIN_FORK_NANOSECONDS) {
            $service->killIfForked(); // a fork must not send a second response
            if ($now > $service->blockDetector->dueAt) {
                $service->blockDetector->handleReturn($now, $exchange);
            }
        }
        $keepAlive = $head->persistent
            && !$timed->closeAfterResponse
            && (!$service->closesAfterResponse || $this->parser->holdsHead())
            && $timed->requestCount < $service->options->maxRequests
            && ($head->length === 0 || $this->canDiscard($exchange));
        $bytes = $keepAlive && $response instanceof Response && $head->method !== 'HEAD' && $head->version === '1.1'
            ? $response->bytes($service->writer->date($now))
            : null;
        if ($bytes !== null) {
            $timed->outgoing .= $bytes;
        } elseif (!$this->answerByParts($response, $exchange, $keepAlive, $now)) {
            $timed->closeAfterResponse = true;
        }
        $service->counters->countAnswer(
            $response->getStatusCode(),
            $now - $exchange->startedAt,
            $exchange->route?->getName(),
        );
    }

    /** Returns whether the connection can be kept: the rest of the request body has arrived, or is short. */
    private function canDiscard(ServerExchange $exchange): bool
    {
        return $this->parser->holdsBody()
            || !$exchange->awaitsContinue()
                && ($this->parser->remaining() ?? \PHP_INT_MAX) <= self::MAX_DISCARDED_BYTES;
    }

    /**
     * Sends a response whose head depends on the request, or whose body is a stream.
     *
     * @return bool whether the connection can be kept
     */
    private function answerByParts(
        ResponseInterface $response,
        ServerExchange $exchange,
        bool $keepAlive,
        int $now,
    ): bool {
        $body = $response instanceof Response ? $response->body() : $response->getBody();
        if (!\is_string($body) && !$exchange->awaitsContinue()) {
            $body = ResponseWriter::shortBody($body) ?? $body;
            if (!$this->isCurrent($exchange)) {
                // Reading the body may suspend, and the client may close the connection during this wait.
                throw ClientDisconnectedException::closed();
            }
        }
        if (!\is_string($body)) {
            return $this->answerByStream($response, $body, $exchange, $keepAlive, $now);
        }
        $this->timed->outgoing .= $this->service->writer->complete($response, $body, $exchange->head, $keepAlive, $now);

        return $keepAlive;
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
        $headStart = $headEnd = -1;
        try {
            $pieces = $body->prepare($response, $exchange->head);
            if ($body->mustBeSent) {
                $this->body = $body;
                $this->service->stopping ? $body->stop() : null;
                if ($exchange->awaitsContinue()) {
                    // If the first piece needs the request body, "100 Continue" is sent here, before the head.
                    $pieces->current();
                }
            }
            // Methods of the stream may have suspended this fiber, so collected responses may have been sent.
            $this->isCurrent($exchange) || throw ClientDisconnectedException::closed();
            $headStart = $headEnd = \strlen($timed->outgoing);
            $keepAlive = $keepAlive && !$body->endsByClose();
            $writer = $this->service->writer;
            $timed->outgoing .= $writer->head($response, $body->length, $exchange->head, $keepAlive, $now);
            $headEnd = \strlen($timed->outgoing);
            $exchange->responseStarted = true;
            $body->send($pieces, $timed, $this->service);
            $this->reportExcess($body, $exchange);
        } catch (\Throwable $failure) {
            if (\strlen($timed->outgoing) === $headEnd) { // no part of the response was sent
                [$timed->outgoing, $exchange->responseStarted] = [substr($timed->outgoing, 0, $headStart), false];
                $timed->closed ? null : $timed->transport->markIncomplete(false);
            } elseif ($exchange->responseStarted) {
                $this->countAnswer($response->getStatusCode(), $exchange, $now);
            }
            throw $failure;
        } finally {
            $this->body = null;
            $this->closeUnneeded($body->end(...));
            $this->endingBody = $exchange->head->length !== 0 && $body->isEnding() ? $body : null;
        }

        return $keepAlive;
    }

    private function reportExcess(OutgoingBody $body, ServerExchange $exchange): void
    {
        if ($body->excess !== null) { // queued, because a logger may suspend
            EventLoop::queue($body->excess->log(...), $exchange->logFields(), $this->service->logger);
        }
    }

    /** Releases an answered request once the response body's iterator, which may use uploaded files, has ended. */
    public function release(ServerExchange $exchange): void
    {
        [$body, $this->endingBody] = [$this->endingBody, null];
        if ($body === null) {
            $exchange->release();

            return;
        }
        EventLoop::queue(static function () use ($body, $exchange): void {
            $body->awaitEnd();
            $exchange->release();
        });
    }

    /** Responds to an exception, or cuts off a response that has begun, so that it does not look complete. */
    public function answerFailure(\Throwable $failure, ServerExchange $exchange): void
    {
        if (!$this->isCurrent($exchange)) {
            return;
        }
        $response = $this->service->failureResponse($failure, $exchange); // a logger may suspend, so check again below
        $this->service->killIfForked();
        if (!$this->isCurrent($exchange)) {
            return;
        }
        if ($exchange->responseStarted) {
            $response === null ? null : $this->service->counters->countCutOff($exchange->route?->getName());
            $this->timed->abort();
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

    /** Sends 503 for a request whose handler has not returned in time. A later response of the handler is dropped. */
    public function answerLate(ServerExchange $exchange): void
    {
        $this->service->endBeforeHandler($exchange);
        $seconds = $this->service->options->handlerTimeout;
        $this->countAnswer(503, $exchange, (int) hrtime(true));
        $this->refuse(503, 'The request took too long', $exchange->head->method);
        $exchange->cancel(ClientDisconnectedException::handlerTimeout($seconds));
        // In another fiber, because a logger may suspend, and other deadlines may have passed too.
        (new \Fiber($this->service->logger->warning(...)))->start(
            "The handler of {method} {target} did not answer within {$seconds} s",
            $exchange->logFields(),
        );
    }

    public function refuseMessage(int $status, string $message): void
    {
        $this->service->counters->countRefusal($status);
        $this->refuse($status, $message, $this->parser->method());
    }

    /** Sends a response of the server itself after the collected responses, and ends this side of the connection. */
    public function refuse(int $status, string $message, string $method): void
    {
        $this->timed->outgoing .= $this->service->writer->refusal($status, $message, $method, hrtime(true));
        $this->timed->linger();
    }

    /** Sends a response of the server itself, as far as the kernel accepts it now. The caller ends the connection. */
    public function refuseNow(int $status, string $message, ServerExchange $exchange): void
    {
        $now = (int) hrtime(true);
        $this->countAnswer($status, $exchange, $now);
        $refusal = $this->service->writer->refusal($status, $message, $exchange->head->method, $now);
        $this->timed->transport->send($this->timed->outgoing . $refusal);
    }

    public function stop(): void
    {
        $this->body?->stop();
    }

    /** Closes the response body, which is no longer needed. Uses another fiber, because close() may suspend. */
    public function closeBody(): void
    {
        $this->body === null ? null : EventLoop::queue($this->closeUnneeded(...), $this->body->close(...));
    }

    private function countAnswer(int $status, ServerExchange $exchange, int $now): void
    {
        $this->service->counters->countAnswer($status, $now - $exchange->startedAt, $exchange->route?->getName());
    }

    /** Closes a response body. An exception of close() is only logged, because it must not replace the response. */
    private function closeUnneeded(\Closure $close): void
    {
        try {
            $close();
        } catch (\Throwable $failure) {
            HandlerFailure::logUnclosed($failure, $this->service->logger);
        }
        $this->service->killIfForked();
    }
}
