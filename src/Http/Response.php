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
use Spindle\Http\Internal\Message\Status;
use Spindle\Http\Internal\Server\ResponseWriter;

/**
 * An answer, by PSR-7. Whatever could not be sent as it is, such as a line break in a header, throws where it is set.
 *
 * @phpstan-import-type FieldMap from Fields
 */
final class Response implements ResponseInterface
{
    use HasFields;

    private const ANY = 'application/octet-stream';
    private const TEXT = 'text/plain; charset=utf-8';
    private const HTML = 'text/html; charset=utf-8';
    private const JSON = 'application/json';

    /** Of so many types an answer is kept: they may be told by clients. */
    private const TYPES = 16;

    /** @var array<string, self> empty answers, by their type, to be copied */
    private static array $empty = [];

    // Properties with a default are set in half the time that promoted ones take.

    private int $status = 200;

    /** @var FieldMap */
    private array $fields = [];

    private string|StreamInterface $body = '';

    private string $reason = '';

    /** @var string|false|null what {@see plainHead()} says; false while it has not been asked */
    private string|false|null $plainHead = false;

    /**
     * @param int                                 $status  200 to 599
     * @param array<string, string|list<string>>  $headers by name
     * @param string|StreamInterface              $body    a stream is read to its end, from its beginning if it can be rewound
     * @param string                              $reason  instead of the one that the status has
     *
     * @throws \InvalidArgumentException when the status, a header or the reason could not be sent as it is
     */
    public function __construct(
        int $status = 200,
        array $headers = [],
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

    /** @param array<string, string|list<string>> $headers */
    public static function text(string $text, int $status = 200, array $headers = []): self
    {
        return self::of(self::TEXT, $text, $status, $headers);
    }

    /** @param array<string, string|list<string>> $headers */
    public static function html(string $html, int $status = 200, array $headers = []): self
    {
        return self::of(self::HTML, $html, $status, $headers);
    }

    /**
     * @param array<string, string|list<string>> $headers
     *
     * @throws \JsonException when the value has something that JSON has no form for
     */
    public static function json(mixed $value, int $status = 200, array $headers = []): self
    {
        return self::of(self::JSON, json_encode($value, \JSON_THROW_ON_ERROR | \JSON_UNESCAPED_SLASHES | \JSON_UNESCAPED_UNICODE), $status, $headers);
    }

    /** @param array<string, string|list<string>> $headers */
    public static function binary(string $bytes, string $type = self::ANY, int $status = 200, array $headers = []): self
    {
        return self::of($type, $bytes, $status, $headers);
    }

    /**
     * @param string                             $location where to: an absolute or a relative reference; what a URI can't have is percent-encoded
     * @param int                                $status   303 has the client GET it, 307 and 308 repeat the request there, 301 and 308 are remembered
     * @param array<string, string|list<string>> $headers
     */
    public static function redirect(string $location, int $status = 303, array $headers = []): self
    {
        // RFC 3986, appendix A, with "%" for what is encoded already.
        $location = (string) preg_replace_callback('/[^!#$%&\'()*+,\/:;=?@\[\]A-Za-z0-9\-._~]/', static fn(array $match): string => rawurlencode($match[0]), $location);

        return new self($status, ['Location' => $location] + $headers);
    }

    /**
     * Sent piece by piece as they come, never more than one ahead of the client: an iterator that suspends holds up nobody else.
     *
     * When the client leaves, a generator is ended by a {@see ClientLeftException} at its `yield`: its `finally` blocks run, and
     * may suspend. Any other iterator is dropped.
     *
     * @param iterable<string>                   $chunks
     * @param array<string, string|list<string>> $headers
     */
    public static function stream(iterable $chunks, string $type = self::ANY, int $status = 200, array $headers = []): self
    {
        return self::of($type, new IterableStream($chunks), $status, $headers);
    }

    /**
     * A file, or what of it the client does not have yet: to GET and HEAD the conditions of the request are heeded, to GET
     * a range of it, too. Whatever is sent has the length that the file had when it was opened. Other methods get the whole file.
     *
     * It is read while it is sent, which suspends nobody: a disk that lets itself be waited for lets all wait.
     *
     * @param string                             $path    never one that a client chose: {@see Middleware\StaticFiles} is for that
     * @param string|null                        $type    null for the one that the name's extension tells
     * @param array<string, string|list<string>> $headers that replace the file's own, such as an ETag, which conditions are then about
     *
     * @throws HttpException     404 when there is no such file, 403 when it can not be read
     * @throws \RuntimeException when no file can be opened at present
     */
    public static function file(string $path, ServerRequestInterface $request, ?string $type = null, array $headers = []): self
    {
        return FileAnswer::of(OpenFile::at($path), $type ?? MediaType::of($path), $request, $headers);
    }

    /**
     * Events for an EventSource in a browser, each sent as it comes. What waits for the next one suspends, and holds up nobody else.
     *
     * A comment is sent first, and again whenever no event has come for as long as a heartbeat: proxies keep the connection,
     * and a client that is gone is noticed. Then a generator is ended by a {@see ClientLeftException} at its `yield`, so
     * that its `finally` blocks run; one that is in the middle of waiting goes on until it comes to its next `yield`: give
     * the request's cancellation to what it waits with. What it throws after that nobody is told. The same happens when the
     * server stops or is reloaded: the browser connects again by itself.
     *
     * @param iterable<ServerSentEvent|string>   $events    a string is the data of an event
     * @param array<string, string|list<string>> $headers
     * @param float                              $heartbeat seconds; INF for none
     *
     * @throws \ValueError when the heartbeat is not more than 0 seconds
     */
    public static function events(iterable $events, array $headers = [], float $heartbeat = 15.0): self
    {
        if (!($heartbeat > 0.0)) {
            throw new \ValueError("A heartbeat comes after more than 0 seconds, not {$heartbeat}");
        }

        $response = self::of('text/event-stream', new EventStream($events, $heartbeat), 200, $headers);
        $response->fields += Fields::of(['Cache-Control' => 'no-store', 'X-Accel-Buffering' => 'no']);
        $response->plainHead = false;

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
        [$copy->status, $copy->reason, $copy->plainHead] = [$code, $reasonPhrase, false];

        return $copy;
    }

    public function getReasonPhrase(): string
    {
        return $this->reason !== '' ? $this->reason : Status::reason($this->status);
    }

    public function getBody(): StreamInterface
    {
        return $this->body instanceof StreamInterface ? $this->body : $this->body = Stream::create($this->body);
    }

    public function withBody(StreamInterface $body): self
    {
        $copy = clone $this;
        $copy->body = $body;

        return $copy;
    }

    /**
     * The body without a stream around it, where nobody asked for one.
     *
     * @internal
     */
    public function body(): string|StreamInterface
    {
        return $this->body;
    }

    /**
     * The status line and the header lines, where nothing in them is for the server to decide.
     *
     * @internal
     */
    public function plainHead(): ?string
    {
        return $this->plainHead !== false ? $this->plainHead : $this->plainHead = $this->makePlainHead();
    }

    private function makePlainHead(): ?string
    {
        if (isset(ResponseWriter::BARE[$this->status])) {
            return null;
        }
        $head = "HTTP/1.1 {$this->status} {$this->getReasonPhrase()}\r\n";
        foreach ($this->fields as $key => [$name, $values]) {
            if (isset(ResponseWriter::DECIDED[$key])) {
                return null;
            }
            foreach ($values as $value) {
                $head .= "{$name}: {$value}\r\n";
            }
        }

        return $head;
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
        [$copy->fields, $copy->plainHead] = [$fields, false];

        return $copy;
    }

    /** @param array<string, string|list<string>> $headers */
    private static function of(string $type, string|StreamInterface $body, int $status, array $headers): self
    {
        // To copy an answer takes two thirds of the time of making one, and its head is made already.
        $response = clone (self::$empty[$type] ?? self::empty($type));
        $response->body = $body;
        if ($status !== 200) {
            self::checkStatus($status, '');
            [$response->status, $response->plainHead] = [$status, false];
        }
        if ($headers !== []) {
            [$response->fields, $response->plainHead] = [Fields::of($headers) + $response->fields, false];
        }

        return $response;
    }

    private static function empty(string $type): self
    {
        $response = new self(200, ['Content-Type' => $type]);
        $response->plainHead();
        if (\count(self::$empty) < self::TYPES) {
            self::$empty[$type] = $response;
        }

        return $response;
    }

    /** @throws \InvalidArgumentException */
    private static function checkStatus(int $status, string $reason): void
    {
        if ($status < 200 || $status > 599) {
            throw new \InvalidArgumentException("A response has a status from 200 to 599, not {$status}");
        }
        if ($reason !== '' && preg_match('/^[\t\x20-\x7e\x80-\xff]*$/D', $reason) !== 1) {
            throw new \InvalidArgumentException('A reason phrase has no control characters');
        }
    }
}
