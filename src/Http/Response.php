<?php

declare(strict_types=1);

namespace Spindle\Http;

use Nyholm\Psr7\Stream;
use Psr\Http\Message\ResponseInterface;
use Psr\Http\Message\ServerRequestInterface;
use Psr\Http\Message\StreamInterface;
use Spindle\Http\Internal\Answer\EventStream;
use Spindle\Http\Internal\Answer\FileAnswer;
use Spindle\Http\Internal\Answer\MediaType;
use Spindle\Http\Internal\Answer\OpenFile;
use Spindle\Http\Internal\Message\Fields;
use Spindle\Http\Internal\Message\HasFields;
use Spindle\Http\Internal\Message\IterableStream;
use Spindle\Http\Internal\Message\Json;
use Spindle\Http\Internal\Message\Status;
use Spindle\Http\Internal\Server\ResponseWriter;
use Spindle\Internal\NumberRange;

/**
 * A PSR-7 response. Its methods throw an exception for an invalid status, an invalid header name, and a control
 * character in a header or in the reason phrase. Spaces around a header's value are removed. A response whose body was
 * given as a string can be serialized.
 *
 * @phpstan-import-type FieldMap from Fields
 */
final class Response implements ResponseInterface
{
    use HasFields;

    private const DEFAULT_TYPE = 'application/octet-stream';
    private const TEXT = 'text/plain; charset=utf-8';
    private const HTML = 'text/html; charset=utf-8';
    private const JSON = 'application/json';

    /** Maximum number of templates. Without a limit, clients that choose media types could fill the memory. */
    private const MAX_TEMPLATES = 16;

    /** @var array<string, self> empty responses that {@see of()} clones, by media type */
    private static array $templates = [];

    // The constructor assigns only values other than the defaults. Promoted parameters would take twice as long.

    private int $status = 200;

    /** @var FieldMap */
    private array $fields = [];

    private string|StreamInterface $body = '';

    /** The stream that {@see getBody()} has created from a string, and has stored in $body; null if there is none. */
    private ?StreamInterface $streamOfString = null;

    private string $reason = '';

    /** @var string|false|null result of {@see makeReusableHead()}; false if it was not called for the current head */
    private string|false|null $reusableHead = false;

    /**
     * @param int $status 200 to 599
     * @param array<string, string|list<string>> $headers by name
     * @param string|StreamInterface $body the server rewinds a stream if possible, and reads the stream to its end
     * @param string $reason reason phrase; '' for the standard phrase of the status
     *
     * @throws \InvalidArgumentException when the status, a header or the reason is invalid
     */
    public function __construct(
        int $status = 200,
        #[\SensitiveParameter]
        array $headers = [],
        #[\SensitiveParameter]
        string|StreamInterface $body = '',
        string $reason = '',
    ) {
        if ($status !== 200 || $reason !== '') {
            self::checkStatus($status, $reason);
            [$this->status, $this->reason] = [$status, $reason];
        }
        $this->body = $body;
        if ($headers !== []) {
            $this->fields = Fields::of($headers);
        }
    }

    /**
     * @internal
     *
     * @param FieldMap $fields valid fields
     */
    public static function received(
        int $status,
        string $reason,
        string $version,
        array $fields,
        StreamInterface $body,
    ): self {
        $response = new self();
        [$response->status, $response->reason, $response->version] = [$status, $reason, $version];
        [$response->fields, $response->body] = [$fields, $body];

        return $response;
    }

    /** @param array<string, string|list<string>> $headers */
    public static function text(string $text, int $status = 200, #[\SensitiveParameter] array $headers = []): self
    {
        return self::of(self::TEXT, $text, $status, $headers);
    }

    /** @param array<string, string|list<string>> $headers */
    public static function html(string $html, int $status = 200, #[\SensitiveParameter] array $headers = []): self
    {
        return self::of(self::HTML, $html, $status, $headers);
    }

    /**
     * @param array<string, string|list<string>> $headers
     *
     * @throws \JsonException when the value can't be encoded
     */
    public static function json(
        #[\SensitiveParameter]
        mixed $value,
        int $status = 200,
        #[\SensitiveParameter]
        array $headers = [],
    ): self {
        return self::of(self::JSON, Json::encode($value), $status, $headers);
    }

    /** @param array<string, string|list<string>> $headers */
    public static function binary(
        string $bytes,
        string $type = self::DEFAULT_TYPE,
        int $status = 200,
        #[\SensitiveParameter]
        array $headers = [],
    ): self {
        return self::of($type, $bytes, $status, $headers);
    }

    /**
     * @param string $location absolute or relative target; characters that a URI can't contain are percent-encoded
     * @param int $status with 303, the client sends GET to the target; with 307 and 308, it sends the same request; 301
     *     and 308 are permanent
     * @param array<string, string|list<string>> $headers
     *
     * @throws \InvalidArgumentException when the status is not from 300 to 399
     */
    public static function redirect(
        string $location,
        int $status = 303,
        #[\SensitiveParameter]
        array $headers = [],
    ): self {
        if ($status < 300 || $status > 399) {
            throw new \InvalidArgumentException(
                "The status of a redirect must be from 300 to 399, such as 303, not {$status}",
            );
        }
        // RFC 3986, appendix A. "%" is kept, because the location may contain encoded characters.
        $location = (string) preg_replace_callback(
            '/[^!#$%&\'()*+,\/:;=?@\[\]A-Za-z0-9\-._~]/',
            static fn(array $match): string => rawurlencode($match[0]),
            $location,
        );

        return new self($status, ['Location' => $location] + $headers);
    }

    /**
     * Creates a response that sends chunks as an iterator yields them. The first chunk is sent at once. After each
     * send, the server collects the chunks of the next 1 ms. They are sent together with the first later chunk, or
     * sooner: when they have 64 KiB, or when the iterator ends or suspends its fiber. Small chunks become one HTTP
     * chunk of up to 16 KiB. If the client receives slowly, the server requests the next chunk only after the earlier
     * ones were sent. While the iterator is suspended, other requests run.
     *
     * If the iterator throws before its first chunk and before it suspends, the server answers as for an exception of
     * the handler. If it throws later, the head was already sent, so the client gets an incomplete response.
     *
     * When the client disconnects, a generator gets a {@see ClientDisconnectedException} at its `yield`. A generator
     * that is waiting gets the exception at its next `yield`. To end the wait sooner, pass the request's cancellation
     * to the operation that waits. The generator's `finally` blocks run, and may suspend. An iterator that is not a
     * generator is not called again.
     *
     * @param iterable<string>                   $chunks
     * @param array<string, string|list<string>> $headers
     */
    public static function stream(
        iterable $chunks,
        string $type = self::DEFAULT_TYPE,
        int $status = 200,
        #[\SensitiveParameter]
        array $headers = [],
    ): self {
        return self::of($type, new IterableStream($chunks), $status, $headers);
    }

    /**
     * Creates a response with a file. Conditional headers of the request apply to GET and HEAD, and Range only to GET.
     * Other methods get the whole file. The response has the length that the file had when it was opened.
     *
     * The file is read while it is sent. Reading does not suspend the fiber, so a slow disk blocks the whole process.
     *
     * @param string $path must not be chosen by a client: use {@see Middleware\StaticFiles} for that
     * @param string|null $type media type; null to derive it from the extension of the name
     * @param array<string, string|list<string>> $headers replace headers derived from the file. If `$headers`
     *     has ETag or Last-Modified, the request's conditional headers are compared with these values
     *
     * @throws HttpException 404 when there is no regular file, 403 when it can't be read
     * @throws \RuntimeException when too many files are open
     */
    public static function file(
        string $path,
        ServerRequestInterface $request,
        ?string $type = null,
        #[\SensitiveParameter]
        array $headers = [],
    ): self {
        return FileAnswer::of(OpenFile::at($path), $type ?? MediaType::of($path), $request, $headers);
    }

    /**
     * Creates a response that sends events to an EventSource in a browser, as an iterator yields them. The iterator
     * runs in a fiber of its own. Waiting for the next event suspends only this response.
     *
     * A comment is sent first, and whenever no event has come for `$heartbeat` seconds. Comments keep proxies from
     * closing the connection, and let the server detect that a client has disconnected.
     *
     * When the client disconnects, a generator gets a {@see ClientDisconnectedException} at its `yield`, so that its
     * `finally` blocks run. A generator that is waiting continues up to its next `yield`. To end it sooner, pass the
     * request's cancellation to the operation that waits. Exceptions that the generator throws after the disconnect are
     * not reported. When the server stops or is reloaded, the generator ends the same way, and the browser reconnects.
     *
     * @param iterable<ServerSentEvent|string>   $events    a string is the data of an event
     * @param array<string, string|list<string>> $headers
     * @param float                              $heartbeat seconds; INF for no comments
     *
     * @throws \ValueError when the heartbeat is not positive
     */
    public static function serverSentEvents(
        iterable $events,
        #[\SensitiveParameter]
        array $headers = [],
        float $heartbeat = 15.0,
    ): self {
        if (!($heartbeat > 0.0)) {
            throw new \ValueError('The heartbeat must be more than 0 seconds, not ' . NumberRange::text($heartbeat));
        }

        $response = self::of('text/event-stream', new EventStream($events, $heartbeat), 200, $headers);
        $response->fields += Fields::of(['Cache-Control' => 'no-store', 'X-Accel-Buffering' => 'no']);
        $response->reusableHead = false;

        return $response;
    }

    public function getStatusCode(): int
    {
        return $this->status;
    }

    /** @throws \InvalidArgumentException */
    public function withStatus(int $code, string $reasonPhrase = ''): self
    {
        self::checkStatus($code, $reasonPhrase);
        $copy = clone $this;
        [$copy->status, $copy->reason, $copy->reusableHead] = [$code, $reasonPhrase, false];

        return $copy;
    }

    public function getReasonPhrase(): string
    {
        return $this->reason !== '' ? $this->reason : Status::reason($this->status);
    }

    public function getBody(): StreamInterface
    {
        return $this->body instanceof StreamInterface
            ? $this->body
            : $this->body = $this->streamOfString = Stream::create($this->body);
    }

    public function withBody(StreamInterface $body): self
    {
        $copy = clone $this;
        $copy->body = $body;

        return $copy;
    }

    /** @internal Returns the body. Unlike {@see getBody()}, does not turn a string into a stream. */
    public function body(): string|StreamInterface
    {
        return $this->body;
    }

    /**
     * @internal Returns the whole response; null if its body is a stream, or if its head depends on the request.
     *
     * @param string $date complete line of the Date header
     */
    public function bytes(string $date): ?string
    {
        $head = $this->reusableHead !== false ? $this->reusableHead : $this->reusableHead = $this->makeReusableHead();
        if ($head === null || !\is_string($this->body)) {
            return null;
        }
        $length = \strlen($this->body);

        return "{$head}{$date}Content-Length: {$length}\r\n\r\n{$this->body}";
    }

    /** Returns the head without Date and Content-Length; null if the head depends on the request. */
    private function makeReusableHead(): ?string
    {
        if (isset(ResponseWriter::BODILESS_STATUSES[$this->status])) {
            return null;
        }
        $head = "HTTP/1.1 {$this->status} {$this->getReasonPhrase()}\r\n";
        foreach ($this->fields as $key => [$name, $values]) {
            if (isset(ResponseWriter::SERVER_FIELDS[$key])) {
                return null;
            }
            foreach ($values as $value) {
                $head .= "{$name}: {$value}\r\n";
            }
        }

        return $head;
    }

    /**
     * @internal
     *
     * @return array{int, string, string, FieldMap, string|StreamInterface}
     *
     * @throws \LogicException when the response was created with a stream of this process, not with a string
     */
    public function __serialize(): array
    {
        $body = $this->body;
        if ($body instanceof StreamInterface && $body->getMetadata('stream_type') !== null) {
            if ($body !== $this->streamOfString) {
                throw new \LogicException(
                    self::class . ' can not be serialized, because its body is a stream of this process.'
                        . ' Create the response with a string, such as (string) $response->getBody()',
                );
            }
            $position = $body->tell();
            $text = (string) $body;
            $body->seek($position);
            $body = $text;
        }

        return [$this->status, $this->reason, $this->version, $this->fields, $body];
    }

    /**
     * @internal
     *
     * @param array{int, string, string, FieldMap, string|StreamInterface} $data
     */
    public function __unserialize(array $data): void
    {
        [$this->status, $this->reason, $this->version, $this->fields, $this->body] = $data;
    }

    /** @return FieldMap */
    private function fields(): array
    {
        return $this->fields;
    }

    /** @param FieldMap $fields */
    private function withFields(array $fields): static
    {
        $copy = clone $this;
        [$copy->fields, $copy->reusableHead] = [$fields, false];

        return $copy;
    }

    /** @param array<string, string|list<string>> $headers */
    private static function of(
        string $type,
        #[\SensitiveParameter]
        string|StreamInterface $body,
        int $status,
        #[\SensitiveParameter]
        array $headers,
    ): self {
        // Cloning a template takes two thirds of the time of a new response, and the clone already has a reusable head.
        $response = clone (self::$templates[$type] ?? self::template($type));
        $response->body = $body;
        if ($status !== 200) {
            self::checkStatus($status, '');
            [$response->status, $response->reusableHead] = [$status, false];
        }
        if ($headers !== []) {
            [$response->fields, $response->reusableHead] = [Fields::of($headers) + $response->fields, false];
        }

        return $response;
    }

    private static function template(string $type): self
    {
        $response = new self(200, ['Content-Type' => $type]);
        $response->reusableHead = $response->makeReusableHead();
        if (\count(self::$templates) < self::MAX_TEMPLATES) {
            self::$templates[$type] = $response;
        }

        return $response;
    }

    /** @throws \InvalidArgumentException */
    private static function checkStatus(int $status, string $reason): void
    {
        if ($status < 200 || $status > 599) {
            throw new \InvalidArgumentException("The status of a response must be from 200 to 599, not {$status}");
        }
        if ($reason !== '' && preg_match('/^[\t\x20-\x7e\x80-\xff]*$/D', $reason) !== 1) {
            throw new \InvalidArgumentException('A reason phrase must not contain control characters');
        }
    }
}
