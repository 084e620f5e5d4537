<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Server;

use Psr\Http\Message\ResponseInterface;
use Psr\Http\Message\StreamInterface;
use Spindle\Http\Internal\Message\Fields;
use Spindle\Http\Internal\Message\Head;
use Spindle\Http\Internal\Message\SingleReader;
use Spindle\Http\Internal\Message\Status;
use Spindle\Http\Internal\Message\StreamSize;
use Spindle\Http\Response;

/**
 * Builds the head of a response, and decides how the body is framed. Replaces a wrong Content-Length or
 * Transfer-Encoding of a handler, so that the client always finds the start of the next response.
 *
 * @phpstan-import-type FieldMap from Fields
 */
final class ResponseWriter
{
    /** Fields of a handler's response that are not sent, except Upgrade with status 426: {@see isSent()}. */
    private const CONNECTION_FIELDS = [
        'keep-alive' => true,
        'proxy-connection' => true,
        'transfer-encoding' => true,
        'upgrade' => true,
        'trailer' => true,
        'te' => true,
    ];

    public const SERVER_FIELDS = [
        'connection' => true,
        'content-length' => true,
        'date' => true,
    ] + self::CONNECTION_FIELDS;

    public const BODILESS_STATUSES = [204 => true, 205 => true, 304 => true];

    /** Maximum bytes of a stream that is read before the response begins, and then sent like a string. */
    private const MAX_SHORT_BODY_BYTES = 65_536;

    private const NANOSECONDS_PER_SECOND = 1_000_000_000;

    private const MAX_CACHED_NAMES = 64;

    /** @var array<array-key, bool> by valid field name: whether the name is one of SERVER_FIELDS */
    private array $names = [];

    /** Status line, fields and bytes of the last head whose handler set no Content-Length. Many heads are the same. */
    private string $lastStatusLine = '';

    /** @var array<array-key, mixed> */
    private array $lastHeaders = [];

    private ?string $lastHead = null;

    private string $date = '';

    private int $dateExpiresAt = 0;

    /**
     * Returns the bytes of the whole response, for a body that is a string.
     *
     * @param bool $keepAlive whether the connection is kept; set to false if the response has "Connection: close"
     * @param int  $now       by hrtime()
     */
    public function complete(
        ResponseInterface $response,
        string $body,
        Head $request,
        bool &$keepAlive,
        int $now,
    ): string {
        if (
            $keepAlive
            && !$response instanceof Response
            && $request->method !== 'HEAD'
            && $request->version === '1.1'
        ) {
            $length = \strlen($body);
            $head = $this->reusableHead($response, $length);
            if ($head !== null) {
                return "{$head}{$this->date($now)}Content-Length: {$length}\r\n\r\n{$body}";
            }
        }

        return $this->head($response, \strlen($body), $request, $keepAlive, $now)
            . (self::hasBody($response->getStatusCode(), $request) ? $body : '');
    }

    /**
     * Returns the head.
     *
     * @param int|null $length    bytes of the body; null when unknown
     * @param bool     $keepAlive see {@see complete()}
     */
    public function head(ResponseInterface $response, ?int $length, Head $request, bool &$keepAlive, int $now): string
    {
        $status = $response->getStatusCode();
        $head = $this->headLines($response, $status, $keepAlive, $request, $now, $given);

        return $head . match (true) {
            !self::hasBody($status, $request) => self::lengthWithoutBody($status, $given, $length),
            $length !== null => "Content-Length: {$length}\r\n",
            $request->version === '1.0' => '',
            default => "Transfer-Encoding: chunked\r\n",
        } . "\r\n";
    }

    /** Returns whether a response with this status to this request has a body. RFC 9110, 6.4.1 and 15.3.6. */
    public static function hasBody(int $status, Head $request): bool
    {
        return !isset(self::BODILESS_STATUSES[$status]) && $request->method !== 'HEAD';
    }

    /**
     * Returns the contents of a short body that can be read again; null for any other body.
     *
     * @throws \LengthException when the body is longer than the size that its stream reports
     */
    public static function shortBody(StreamInterface $body): ?string
    {
        $size = $body->getSize();
        $isShort = $size !== null && $size >= 0 && $size <= self::MAX_SHORT_BODY_BYTES;
        if (!$isShort || !$body->isSeekable() || !$body->isReadable() || SingleReader::isClaimed($body)) {
            return null;
        }
        $body->rewind();
        $bytes = $body->read($size + 1);
        if (\strlen($bytes) > $size) {
            if ($size === 0 || StreamSize::of($body) === null) {
                return null; // the reported size may be wrong: see length()
            }
            StreamSize::throwUnlessGrown($body, $size);
            $bytes = substr($bytes, 0, $size);
        }

        return \strlen($bytes) === $size ? $bytes : null;
    }

    /**
     * Returns the length of a streamed body in bytes: the stream's size, or the handler's Content-Length. Null when
     * neither is known. Rewinds a seekable stream.
     */
    public static function length(ResponseInterface $response, StreamInterface $body, Head $request): ?int
    {
        $size = StreamSize::of($body);
        $isSeekable = $body->isSeekable();
        if ($isSeekable) {
            $body->rewind();
        }
        if ($size === 0 && (!$isSeekable || $body->isReadable() && $body->read(1) !== '')) {
            $size = null; // fstat() reports 0 for every pipe, and for files of /proc
            if ($isSeekable) {
                $body->rewind();
            }
        }

        // For HEAD, the handler may have emptied the body. Then the handler's Content-Length replaces the size 0.
        return $size > 0 || $size === 0 && $request->method !== 'HEAD' ? $size : self::givenLength($response) ?? $size;
    }

    private static function givenLength(ResponseInterface $response): ?int
    {
        $given = $response->getHeaderLine('Content-Length');

        return preg_match('/^\d{1,18}$/D', $given) === 1 ? (int) $given : null;
    }

    /**
     * Returns the head of a response of another PSR-7 library, without Date and Content-Length. Returns null if only
     * {@see headLines()} can build this head.
     */
    private function reusableHead(ResponseInterface $response, int $length): ?string
    {
        $status = $response->getStatusCode();
        if ($status < 200 || $status > 599 || isset(self::BODILESS_STATUSES[$status])) {
            return null;
        }
        $line = "HTTP/1.1 {$status} {$response->getReasonPhrase()}\r\n";
        $headers = self::unchecked($response->getHeaders());
        if ($headers === $this->lastHeaders && $line === $this->lastStatusLine) {
            return $this->lastHead;
        }
        [$head, $lineCount, $isCacheable] = [$line, 1, true];
        foreach ($headers as $name => $values) {
            $isServerField = $this->names[$name] ?? $this->isServerField($name);
            if (
                $isServerField
                && strcasecmp((string) $name, 'Content-Length') === 0
                && $values === [(string) $length]
            ) {
                $isCacheable = false;
                continue;
            }
            if ($isServerField || !\is_array($values)) {
                return null;
            }
            foreach ($values as $value) {
                if (!\is_string($value)) {
                    return null;
                }
                $head .= "{$name}: {$value}\r\n";
                ++$lineCount;
            }
        }

        $hasValidLines = preg_match('/^(?:[\t\x20-\x7e\x80-\xff]*+\r\n)*+$/D', $head) === 1;
        if (!$hasValidLines || substr_count($head, "\n") !== $lineCount) {
            return null;
        }
        if ($isCacheable) {
            [$this->lastStatusLine, $this->lastHeaders, $this->lastHead] = [$line, $headers, $head];
        }

        return $head;
    }

    /**
     * Returns $headers, but hides PSR-7's types from static analysis: other libraries may return other types.
     *
     * @param array<array-key, mixed> $headers
     *
     * @return array<array-key, mixed>
     */
    private static function unchecked(#[\SensitiveParameter] array $headers): array
    {
        return $headers;
    }

    /** @throws \InvalidArgumentException when $name is not a valid name of a header field */
    private function isServerField(int|string $name): bool
    {
        $isServerField = isset(self::SERVER_FIELDS[strtolower(Fields::name($name))]);
        if (\count($this->names) < self::MAX_CACHED_NAMES) {
            $this->names[$name] = $isServerField;
        }

        return $isServerField;
    }

    /**
     * Returns a response that the server creates without a handler. The connection ends after this response.
     *
     * @param string $method method of the request, '' when it is unknown; HEAD gets no body
     * @param int    $now    by hrtime()
     */
    public function refusal(int $status, string $message, string $method, int $now): string
    {
        $date = $this->date($now);
        $length = \strlen($message) + 1;

        return self::statusLine($status, Status::reason($status))
            . "\r\n{$date}Content-Type: text/plain; charset=utf-8\r\nConnection: close\r\n"
            . "Content-Length: {$length}\r\n\r\n"
            . ($method === 'HEAD' ? '' : "{$message}\n");
    }

    /**
     * Returns all lines of the head except Content-Length and Transfer-Encoding.
     *
     * @param string|null $given set to the Content-Length of the handler, or to null
     *
     * @throws \UnexpectedValueException when the status is not from 200 to 599: after 1xx, the client would wait for
     *         another response
     */
    private function headLines(
        ResponseInterface $response,
        int $status,
        bool &$keepAlive,
        Head $request,
        int $now,
        ?string &$given,
    ): string {
        self::checkStatus($status);
        $reason = $response->getReasonPhrase();
        $head = self::statusLine($status, $reason) . "\r\n";
        $given = null;
        $lines = '';
        $connectionOptions = [];
        $date = $this->date($now);
        foreach (Fields::of($response->getHeaders()) as $key => [$name, $values]) {
            if ($key === 'content-length') {
                $given = $values[0];
            } elseif ($key === 'date') {
                $date = "Date: {$values[0]}\r\n";
            } elseif ($key === 'connection') {
                $keepAlive = $keepAlive && preg_match('/(?:^|[, \t])close(?:[, \t]|$)/i', implode(',', $values)) !== 1;
            } elseif (self::isSent($key, $status)) {
                if ($key === 'upgrade') {
                    $connectionOptions[] = 'upgrade';
                }
                foreach ($values as $value) {
                    $lines .= "{$name}: {$value}\r\n";
                }
            }
        }
        if (!$keepAlive) {
            $connectionOptions[] = 'close';
        } elseif ($request->version === '1.0') {
            $connectionOptions[] = 'keep-alive';
        }
        $connection = $connectionOptions === [] ? '' : 'Connection: ' . implode(', ', $connectionOptions) . "\r\n";

        return $head . $date . $lines . $connection;
    }

    /** @throws \UnexpectedValueException when the status is not from 200 to 599 */
    public static function checkStatus(int $status): void
    {
        if ($status < 200 || $status > 599) {
            throw new \UnexpectedValueException("The status of a response must be from 200 to 599, not {$status}");
        }
    }

    /**
     * Returns whether a handler's field is sent. Of {@see CONNECTION_FIELDS}, only Upgrade with status 426 is sent,
     * because Upgrade then names the protocol that the client has to use. RFC 9110, 15.5.22.
     *
     * @param string $key name in lower case
     */
    public static function isSent(string $key, int $status): bool
    {
        return !isset(self::CONNECTION_FIELDS[$key]) || $key === 'upgrade' && $status === 426;
    }

    /**
     * Returns the Content-Length line of a response without a body; '' for none. RFC 9110, 8.6 and 15.3.6.
     *
     * A response to HEAD has no such line if its body is empty and the handler declared no length. Many frameworks
     * remove the body of a response to HEAD, so the length of an empty body says nothing.
     *
     * @param string|null $given  Content-Length from the handler
     * @param int|null    $length bytes of the body that is not sent; null when unknown
     */
    public static function lengthWithoutBody(int $status, ?string $given, ?int $length): string
    {
        $length = match (true) {
            $status === 204 => null,
            $status === 205 => 0,
            $status !== 304 && $length > 0 => $length,
            $given !== null && preg_match('/^\d{1,18}$/D', $given) === 1 => (int) $given,
            default => null,
        };

        return $length === null ? '' : "Content-Length: {$length}\r\n";
    }

    /** Returns the status line without its CRLF. A reason with a control character is left out. RFC 9112, 4. */
    public static function statusLine(int $status, string $reason): string
    {
        return "HTTP/1.1 {$status} " . (preg_match('/^[\t\x20-\x7e\x80-\xff]*+$/D', $reason) === 1 ? $reason : '');
    }

    /** Returns the Date line, which is formatted at most once a second. RFC 9110, 6.6.1. */
    public function date(int $now): string
    {
        if ($now >= $this->dateExpiresAt) {
            $this->dateExpiresAt = $now + self::NANOSECONDS_PER_SECOND;
            $this->date = 'Date: ' . gmdate('D, d M Y H:i:s') . " GMT\r\n";
        }

        return $this->date;
    }
}
