<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Client;

use Psr\Http\Message\StreamInterface;
use Spindle\Http\Client\RequestOptions;
use Spindle\Http\Internal\Message\Fields;
use Spindle\Http\Internal\Message\HeadReader;
use Spindle\Http\Internal\Message\StreamSize;
use Spindle\Internal\Network\ClientTls;

/** Sends a request on a connection, and receives the head of its response. */
final class ClientExchange
{
    private const FIELD_LINES = '@^(?:' . HeadReader::TOKEN . ': ' . HeadReader::VALUE . '\r\n)*+$@D';

    /** Seconds to wait for the server's permission to send the body: RFC 9110, 10.1.1. */
    private const CONTINUE_TIMEOUT = 1.0;

    /** Methods whose requests need no Content-Length if there is no body: RFC 9110, 8.6. */
    private const BODILESS_METHODS = ['GET' => true, 'HEAD' => true, 'DELETE' => true, 'OPTIONS' => true];

    private bool $hasInterimResponse = false;

    /** Bytes of all heads received so far. One limit applies to the interim responses and the final head together. */
    private int $headBytes = 0;

    /**
     * @param string $targetPrefix scheme and authority to put before the path if a proxy relays the request
     *     (RFC 9112, 3.2.2); otherwise ''
     * @param bool $mayExpect whether `Expect: 100-continue` may be sent before a large body
     */
    public function __construct(
        private readonly ClientConnection $connection,
        private readonly OutgoingRequest $request,
        private readonly RequestOptions $options,
        private readonly string $targetPrefix,
        private readonly string $proxyAuthorization,
        private readonly bool $mayExpect,
    ) {}

    /**
     * Sends the request, and receives the head of the final response. If the response arrives before the whole body was
     * sent, the upload continues while the response is read. A status of 400 or more stops the upload (RFC 9112, 9.5).
     *
     * @return array{ResponseHead, Upload|null} the head, and the upload of a stream. The upload may still be running.
     *     The upload is null if the body is a string, or if the server sent this response instead of 100 (Continue)
     *
     * @throws TimedOutException|MalformedResponseException|ConnectionEndedException|ClosedException
     * @throws UnreadableBodyException
     * @throws ExpectationRefusedException when the server has answered 417; no byte of the body was sent
     */
    public function run(): array
    {
        $body = $this->request->body;
        $body = $body instanceof ReportedText ? $body->readIfShort() : $body;
        $size = \is_string($body)
            ? \strlen($body)
            : UnreadableBodyException::guard(static fn(): ?int => self::size($body)) ?? $this->declaredSize();
        $expects = $this->mayExpect && ($size ?? \PHP_INT_MAX - 1) >= max(1, $this->options->expectContinueBytes);
        $head = $this->head($size, $expects);
        $this->connection->write(\is_string($body) && !$expects ? $head . $body : $head);
        if ($expects) {
            $response = $this->awaitContinue();
            if ($response !== null) {
                $this->connection->isReusable = false; // the server may still expect the body

                return [$response, null];
            }
            if (\is_string($body)) {
                $this->connection->write($body);
            }
        }
        $upload = \is_string($body) ? null : Upload::begin($this->connection, $body, $size);
        $response = $this->finalHead($this->options->firstByteTimeout, false);
        if ($response->status >= 400) {
            $upload?->abort();
        }

        return [$response, $upload];
    }

    /** Returns the number of bytes that can still be read from a stream; null if it is unknown or uncertain. */
    private static function size(StreamInterface $body): ?int
    {
        $size = StreamSize::of($body);
        if ($size !== 0) {
            return $size === null || $body->isSeekable() ? $size : StreamSize::left($body, $size);
        }
        if (!$body->isSeekable()) {
            return null; // a pipe or a socket
        }
        $first = $body->read(1); // files in /proc have the size 0, but may have content
        $body->rewind();

        return $first === '' ? 0 : null;
    }

    /**
     * Returns the caller's Content-Length for a stream of unknown size; null if it is absent, malformed or 0. With 0,
     * the client would not read the stream, and would lose any bytes in it.
     */
    private function declaredSize(): ?int
    {
        $values = $this->request->fields['content-length'][1] ?? [];

        return preg_match('/^0*+([1-9]\d{0,17})$/D', implode(',', $values), $match) === 1 ? (int) $match[1] : null;
    }

    private function head(?int $size, bool $expects): string
    {
        $fields = $this->request->fields;
        $url = $this->request->url;
        $lines = isset($fields['host']) ? '' : "Host: {$url->authority}\r\n";
        // Only a relaying proxy gets the caller's Proxy-Authorization. Credentials in the proxy's URL replace it.
        if ($this->targetPrefix === '' || $this->proxyAuthorization !== '') {
            unset($fields['proxy-authorization']);
        }
        if (isset($fields['connection']) && \in_array('close', Fields::members($fields['connection'][1]), true)) {
            $this->connection->isReusable = false; // RFC 9112, 9.6: no request may follow
        }
        foreach ($fields as $key => [$name, $values]) {
            if ($key === 'content-length' || $key === 'transfer-encoding' || $key === 'expect') {
                continue;
            }
            foreach ($values as $value) {
                $lines .= "{$name}: {$value}\r\n";
            }
        }
        if ($size === null) {
            $lines .= "Transfer-Encoding: chunked\r\n";
        } elseif ($size > 0 || !isset(self::BODILESS_METHODS[$this->request->method])) {
            $lines .= "Content-Length: {$size}\r\n";
        }
        if ($expects) {
            $lines .= "Expect: 100-continue\r\n";
        }
        if ($this->proxyAuthorization !== '') {
            $lines .= "Proxy-Authorization: {$this->proxyAuthorization}\r\n";
        }
        if (preg_match(self::FIELD_LINES, $lines) !== 1) {
            throw new \InvalidArgumentException('A header has a control character in its name or value');
        }

        return "{$this->request->method} {$this->targetPrefix}{$url->target} HTTP/1.1\r\n{$lines}\r\n";
    }

    /**
     * Receives the head of the final response. Skips interim responses, such as 103 (Early Hints): RFC 9110, 15.2.
     *
     * @param bool $awaitsContinue true to return a response 100 (Continue) as well
     */
    private function finalHead(float $timeout, bool $awaitsContinue): ResponseHead
    {
        for ($isFirst = true;; $isFirst = false) {
            $response = $this->readHead($timeout, $isFirst);
            $this->hasInterimResponse = $this->hasInterimResponse || $response->status < 200;
            if ($response->status >= 200 || $awaitsContinue && $response->status === 100) {
                return $response;
            }
            if ($response->status === 101) {
                throw new MalformedResponseException('the server switches to another protocol');
            }
        }
    }

    /** @return ResponseHead|null the final response if the server has already sent one; null to send the body */
    private function awaitContinue(): ?ResponseHead
    {
        try {
            $response = $this->finalHead(min(self::CONTINUE_TIMEOUT, $this->options->firstByteTimeout), true);
        } catch (TimedOutException $late) {
            if (!$this->connection->isWithinLimit()) {
                throw $late;
            }

            return null;
        }

        return match (true) {
            $response->status === 100 => null,
            $response->status === 417 => throw new ExpectationRefusedException(),
            default => $response,
        };
    }

    /** @param bool $isFirst as for {@see ClientConnection::receive()} */
    private function readHead(float $timeout, bool $isFirst): ResponseHead
    {
        $connection = $this->connection;
        for ($searchFrom = 0;;) {
            $end = strpos($connection->received, "\r\n\r\n", $searchFrom);
            if ($this->headBytes + ($end === false ? \strlen($connection->received) : $end) > ResponseHead::MAX_BYTES) {
                $what = $this->hasInterimResponse
                    ? 'the interim responses and the head of the response are'
                    : 'the head of the response is';
                throw new MalformedResponseException("{$what} longer than " . ResponseHead::MAX_BYTES . ' bytes');
            }
            if ($end !== false) {
                $this->headBytes += $end + 4;
                $head = substr($connection->received, 0, $end + 2);
                $connection->received = substr($connection->received, $end + 4);

                return ResponseHead::parse($head, $this->request->method === 'HEAD');
            }
            if (preg_match('/(?<!\r)\n/', $connection->received, offset: $searchFrom) === 1) {
                throw new MalformedResponseException('a line in the head of the response ends with LF, not with CRLF');
            }
            $searchFrom = max(0, \strlen($connection->received) - 3);
            $isUnanswered = $connection->received === '';
            if (!$connection->receive(
                'the response',
                $isUnanswered ? $timeout : $this->options->readTimeout,
                $isUnanswered ? 'firstByteTimeout' : 'readTimeout',
                $isFirst && $isUnanswered,
            )) {
                $isRequestUnread = !$connection->hasServedRequest
                    && ClientTls::isRefusedBeforeRequest($connection->stream, (string) $connection->readFailure);
                $when = $isUnanswered ? 'without an answer' : 'within the head of the response';

                throw new ConnectionEndedException(
                    ConnectionEndedException::describe($connection, $when),
                    $isUnanswered && !$this->hasInterimResponse,
                    $isUnanswered && $isRequestUnread,
                );
            }
        }
    }
}
