<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Sapi;

use Psr\Http\Message\ResponseInterface;
use Psr\Http\Message\StreamInterface;
use Spindle\Http\Internal\Answer\EventStream;
use Spindle\Http\Internal\Message\HandlerFailure;
use Spindle\Http\Internal\Message\Head;
use Spindle\Http\Internal\Server\OutgoingBody;
use Spindle\Http\Internal\Server\ResponseWriter;
use Spindle\Http\Response;
use Spindle\Internal\Launcher\Process\Libc;
use Spindle\Internal\Warnings;

/** The body of a response under PHP-FPM or another SAPI. */
final class SapiBody
{
    /** Seconds that the iterator of an event stream has for its `finally` blocks after the stream was closed. */
    private const EVENTS_END_TIMEOUT = 10.0;

    public readonly ?int $length;

    public readonly bool $mustBeSent;

    private readonly StreamInterface $stream;

    private readonly OutgoingBody $body;

    /** @var \Generator<int, string> */
    private readonly \Generator $pieces;

    private function __construct(ResponseInterface $response, Head $head, private readonly SapiExchange $exchange)
    {
        $content = $response instanceof Response ? $response->body() : null;
        $this->stream = $response->getBody();
        $this->length = \is_string($content)
            ? \strlen($content)
            : ResponseWriter::length($response, $this->stream, $head);
        $this->mustBeSent = ResponseWriter::hasBody($response->getStatusCode(), $head);
        $this->body = new OutgoingBody($this->stream);
        $this->pieces = $this->body->pieces($this->length, false);
    }

    /**
     * Returns the body of a response, and reads its first bytes. If this read throws an exception, no byte was sent. So
     * the caller can still send another response.
     *
     * @throws \LogicException  when a body that can be read only once was read before
     * @throws \LengthException when the first bytes show that the body is shorter or longer than {@see $length}
     */
    public static function of(ResponseInterface $response, Head $head, SapiExchange $exchange): self
    {
        $body = new self($response, $head, $exchange);
        try {
            $body->mustBeSent ? $body->readFirst() : null;
        } catch (\Throwable $failure) {
            $body->close();
            throw $failure;
        }

        return $body;
    }

    private function readFirst(): void
    {
        OutgoingBody::checkUnread($this->stream);
        while ($this->pieces->current() === '') {
            $this->pieces->next();
        }
    }

    /** @throws \LengthException when the body is shorter or longer than {@see $length} */
    public function send(): void
    {
        try {
            if ($this->mustBeSent) {
                $this->exchange->isCutOff = $this->length === null;
                $this->sendPieces();
                $this->body->excess?->log($this->exchange->logFields(), $this->exchange->logger());
            }
            $this->exchange->isCutOff = false;
        } finally {
            $this->close();
        }
    }

    private function sendPieces(): void
    {
        for (; $this->pieces->valid(); $this->readNext()) {
            echo $this->pieces->current();
            while (ob_get_level() > 0 && Warnings::suppressed(ob_end_flush(...))); // fails if PHP can't close a buffer
            flush();
            if (connection_aborted() === 1) {
                $this->exchange->clientLeft();

                return;
            }
        }
    }

    /** Reads the next piece. Discards what code prints during this read, because such output is not in the body. */
    private function readNext(): void
    {
        $level = ob_get_level();
        ob_start(static fn(): string => '');
        try {
            $this->pieces->next();
        } finally {
            while (ob_get_level() > $level && Warnings::suppressed(ob_end_clean(...)));
        }
    }

    /**
     * Kills this process of PHP-FPM; does nothing in other SAPIs. Called, also by an output buffer, if the script ends
     * before a response of unknown length is complete, even after exit(). Otherwise, the client would take the response
     * for complete. PHP has logged any error, and PHP-FPM starts another process.
     */
    public static function kill(): string
    {
        return \PHP_SAPI === 'fpm-fcgi' && \function_exists('posix_kill')
            ? (string) posix_kill(posix_getpid(), Libc::SIGKILL)
            : '';
    }

    /** Closes the body. An exception of close() is only logged, because it must not replace the response. */
    private function close(): void
    {
        try {
            $this->stream->close();
            $this->stream instanceof EventStream ? $this->stream->awaitEnd(self::EVENTS_END_TIMEOUT) : null;
        } catch (\Throwable $failure) {
            HandlerFailure::logUnclosed($failure, $this->exchange->logger());
        }
    }
}
