<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Server;

use Psr\Http\Message\ResponseInterface;
use Psr\Http\Message\StreamInterface;
use Spindle\Http\Internal\Message\Fields;
use Spindle\Http\Internal\Message\Head;
use Spindle\Http\Internal\Message\Status;
use Spindle\Http\Response;

/**
 * Builds the head of a response, and decides how its body ends. Wrong framing fields of a handler are corrected, so
 * that the client always finds the begin of the next response.
 *
 * @phpstan-import-type FieldMap from Fields
 */
final class ResponseWriter
{
    /** Fields of the connection, which only the server sets. */
    private const CONNECTION_FIELDS = [
        'keep-alive' => true,
        'proxy-connection' => true,
        'transfer-encoding' => true,
        'upgrade' => true,
        'trailer' => true,
        'te' => true,
    ];

    /** Fields that the server adds or leaves out. */
    public const SERVER_FIELDS = [
        'connection' => true,
        'content-length' => true,
        'date' => true,
    ] + self::CONNECTION_FIELDS;

    /** Statuses whose responses have no body. */
    public const BODILESS_STATUSES = [204 => true, 205 => true, 304 => true];

    /** Maximum bytes of a stream that is sent in one piece. */
    private const MAX_SHORT_BODY_BYTES = 65_536;

    private const NANOSECONDS_PER_SECOND = 1_000_000_000;

    private const MAX_CACHED_NAMES = 64;

    /** @var array<array-key, bool> whether the server decides about a field, by a valid name */
    private array $names = [];

    /** The last head made from another library's response, and its input. Many responses have the same. */
    private string $lastLine = '';

    /** @var array<array-key, mixed> */
    private array $lastHeaders = [];

    private ?string $lastHead = null;

    private string $date = '';

    /** Time by hrtime(). */
    private int $dateEnds = 0;

    /**
     * Returns the whole response, for a body that is a string.
     *
     * @param bool $keep whether the connection is kept; set to false if the handler closes it
     * @param int  $now  by hrtime()
     */
    public function complete(ResponseInterface $response, string $body, Head $request, bool &$keep, int $now): string
    {
        if ($keep && $request->method !== 'HEAD' && $request->version === '1.1') {
            $length = \strlen($body);
            $head = $response instanceof Response ? $response->plainHead() : $this->plainHead($response, $length);
            if ($head !== null) {
                $date = $now < $this->dateEnds ? $this->date : $this->date($now);

                return "{$head}{$date}Content-Length: {$length}\r\n\r\n{$body}";
            }
        }
        $status = $response->getStatusCode();
        $head = $this->headLines($response, $status, $keep, $request, $now, $given);

        return match (true) {
            !self::hasBody($status, $request) => $head
                . self::lengthWithoutBody($status, $given, \strlen($body))
                . "\r\n",
            default => "{$head}Content-Length: " . \strlen($body) . "\r\n\r\n{$body}",
        };
    }

    /** @param int|null $length of the body, which is a stream; null when unknown */
    public function head(ResponseInterface $response, ?int $length, Head $request, bool &$keep, int $now): string
    {
        $status = $response->getStatusCode();
        $head = $this->headLines($response, $status, $keep, $request, $now, $given);

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

    /** Returns the contents of a short body that can be read again; null for any other. */
    public static function shortBody(StreamInterface $body): ?string
    {
        $size = $body->getSize();
        if ($size === null || $size > self::MAX_SHORT_BODY_BYTES || !$body->isSeekable()) {
            return null;
        }
        $body->rewind();
        $bytes = $size === 0 ? '' : $body->read($size);

        return \strlen($bytes) === $size ? $bytes : null;
    }

    /**
     * Returns the bytes of a streamed body, as the handler declared them or the stream knows them; null when unknown.
     */
    public static function length(ResponseInterface $response, StreamInterface $body): ?int
    {
        $size = $body->getSize();
        if ($body->isSeekable()) {
            $body->rewind();
        } elseif ($size === 0) {
            $size = null; // fstat() reports 0 for every pipe
        }

        return self::givenLength($response) ?? $size;
    }

    private static function givenLength(ResponseInterface $response): ?int
    {
        $given = $response->getHeaderLine('Content-Length');

        return preg_match('/^\d{1,18}$/D', $given) === 1 ? (int) $given : null;
    }

    /** Returns the head of another library's response. Null if the server has to change or refuse a field. */
    private function plainHead(ResponseInterface $response, int $length): ?string
    {
        $status = $response->getStatusCode();
        if ($status < 200 || $status > 599 || isset(self::BODILESS_STATUSES[$status])) {
            return null;
        }
        $line = "HTTP/1.1 {$status} {$response->getReasonPhrase()}\r\n";
        $headers = self::unchecked($response->getHeaders());
        if ($headers === $this->lastHeaders && $line === $this->lastLine) {
            return $this->lastHead;
        }
        [$head, $lines, $isRepeatable] = [$line, 1, true];
        foreach ($headers as $name => $values) {
            $isServerField = $this->names[$name] ?? $this->isServerField($name);
            if (
                $isServerField
                && strcasecmp((string) $name, 'Content-Length') === 0
                && $values === [(string) $length]
            ) {
                $isRepeatable = false;
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
                ++$lines;
            }
        }

        if (preg_match("/^(?:[\\t\\x20-\\x7e\\x80-\\xff]*+\\r\\n){{$lines}}$/D", $head) !== 1) {
            return null;
        }
        if ($isRepeatable) {
            [$this->lastLine, $this->lastHeaders, $this->lastHead] = [$line, $headers, $head];
        }

        return $head;
    }

    /**
     * @param array<array-key, mixed> $headers of a library that may check nothing
     *
     * @return array<array-key, mixed>
     */
    private static function unchecked(array $headers): array
    {
        return $headers;
    }

    /** @throws \InvalidArgumentException when it is not a valid name of a header field */
    private function isServerField(int|string $name): bool
    {
        $isServerField = isset(self::SERVER_FIELDS[strtolower(Fields::name($name))]);
        if (\count($this->names) < self::MAX_CACHED_NAMES) {
            $this->names[$name] = $isServerField;
        }

        return $isServerField;
    }

    /**
     * Returns a response of the server's own, the last one on its connection.
     *
     * @param string $method of the request, '' when it is unknown; HEAD gets no body
     * @param int    $now    by hrtime()
     */
    public function refusal(int $status, string $message, string $method, int $now): string
    {
        $date = $now < $this->dateEnds ? $this->date : $this->date($now);
        $length = \strlen($message) + 1;

        return self::statusLine($status, Status::reason($status))
            . "\r\n{$date}Content-Type: text/plain; charset=utf-8\r\nConnection: close\r\n"
            . "Content-Length: {$length}\r\n\r\n"
            . ($method === 'HEAD' ? '' : "{$message}\n");
    }

    /**
     * Returns all lines of the head but Content-Length and Transfer-Encoding.
     *
     * @param string|null $given set to the Content-Length that the handler declared
     *
     * @throws \UnexpectedValueException when the status is not a final one, because the client waits for another
     */
    private function headLines(
        ResponseInterface $response,
        int $status,
        bool &$keep,
        Head $request,
        int $now,
        ?string &$given,
    ): string {
        self::checkStatus($status);
        $reason = $response->getReasonPhrase();
        $head = self::statusLine($status, $reason) . "\r\n";
        $given = null;
        $lines = '';
        $options = [];
        $date = $now < $this->dateEnds ? $this->date : $this->date($now);
        foreach (Fields::of($response->getHeaders()) as $key => [$name, $values]) {
            if ($key === 'content-length') {
                $given = $values[0];
            } elseif ($key === 'date') {
                $date = "Date: {$values[0]}\r\n";
            } elseif ($key === 'connection') {
                $keep = $keep && preg_match('/(?:^|[, \t])close(?:[, \t]|$)/i', implode(',', $values)) !== 1;
            } elseif (self::isSent($key, $status)) {
                if ($key === 'upgrade') {
                    $options[] = 'upgrade';
                }
                foreach ($values as $value) {
                    $lines .= "{$name}: {$value}\r\n";
                }
            }
        }
        if (!$keep) {
            $options[] = 'close';
        } elseif ($request->version === '1.0') {
            $options[] = 'keep-alive';
        }

        return $head . $date . $lines . ($options === [] ? '' : 'Connection: ' . implode(', ', $options) . "\r\n");
    }

    /** @throws \UnexpectedValueException when the status is not a final one */
    public static function checkStatus(int $status): void
    {
        if ($status < 200 || $status > 599) {
            throw new \UnexpectedValueException("The status of a response must be from 200 to 599, not {$status}");
        }
    }

    /** Returns whether a field of the connection is sent. Only 426 names the required protocol. RFC 9110, 15.5.22. */
    public static function isSent(string $key, int $status): bool
    {
        return !isset(self::CONNECTION_FIELDS[$key]) || $key === 'upgrade' && $status === 426;
    }

    /**
     * Returns the line of Content-Length, if any, of a response without a body. RFC 9110, 8.6 and 15.3.6.
     *
     * Without a length from the handler, an empty body of a response to HEAD says nothing: many frameworks empty it.
     */
    public static function lengthWithoutBody(int $status, ?string $given, ?int $length): string
    {
        $length = match (true) {
            $status === 204 => null,
            $status === 205 => 0,
            $given !== null && preg_match('/^\d{1,18}$/D', $given) === 1 => (int) $given,
            $status === 304, $length === 0 => null,
            default => $length,
        };

        return $length === null ? '' : "Content-Length: {$length}\r\n";
    }

    /** Returns the status line, without the reason where it has a control character. RFC 9112, 4. */
    public static function statusLine(int $status, string $reason): string
    {
        return "HTTP/1.1 {$status} " . (preg_match('/^[\t\x20-\x7e\x80-\xff]*+$/D', $reason) === 1 ? $reason : '');
    }

    /** Returns the Date line, which is cached for up to a second. RFC 9110, 6.6.1. */
    private function date(int $now): string
    {
        $this->dateEnds = $now + self::NANOSECONDS_PER_SECOND;

        return $this->date = 'Date: ' . gmdate('D, d M Y H:i:s') . " GMT\r\n";
    }
}
