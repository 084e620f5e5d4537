<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Message;

/**
 * Reads one head line by line. Refuses messages that two readers might interpret differently.
 *
 * @see https://www.rfc-editor.org/rfc/rfc9112#section-11.2 Request Smuggling
 */
final class HeadReader
{
    /** RFC 9110, 5.6.2; for a regular expression between "@". */
    public const TOKEN = '[!#$%&\'*+\-.^_`|\x7e0-9A-Za-z]++';

    /** RFC 9110, 5.5. */
    public const VALUE = '[\t\x20-\x7e\x80-\xff]*+';

    /** RFC 9110, 5.6.4. */
    public const QUOTED = '"(?:[\t\x20\x21\x23-\x5b\x5d-\x7e\x80-\xff]|\\\\[\t\x20-\x7e\x80-\xff])*+"';

    /** RFC 9112, 2.3. Numbers with more digits are treated as another protocol. */
    private const REQUEST_LINE_PATTERN = '@^(' . self::TOKEN . ') ([\x21\x22\x24-\x7e]++) HTTP/(\d)\.(\d)$@D';

    private const FIELD_PATTERN = '@^(' . self::TOKEN . '):[ \t]*+(' . self::VALUE . ')$@D';

    /** RFC 3986, 3.2.2 and 3.2.3, with an IPv6 address as the first group. */
    private const AUTHORITY = '(?:(?:[A-Za-z0-9\-._\x7e!$&\'()*+,;=]|%[0-9A-Fa-f]{2})++'
        . '|\[([0-9A-Fa-f:.]++)\])(?::\d{0,5}+)?+';

    /** RFC 9112, 7: a transfer coding other than "chunked". */
    private const UNKNOWN_CODING = '(?!chunked(?:[ \t;,]|$))' . self::TOKEN
        . '(?:[ \t]*+;[ \t]*+' . self::TOKEN . '[ \t]*+=[ \t]*+(?:' . self::TOKEN . '|' . self::QUOTED . '))*+';

    /** Codings of which at least one is unknown, and "chunked" as the last one or not at all. */
    private const UNKNOWN_CODINGS_PATTERN = '@^'
        . self::UNKNOWN_CODING
        . '(?:[ \t]*+,[ \t]*+'
        . self::UNKNOWN_CODING
        . ')*+(?:[ \t]*+,[ \t]*+chunked)?+$@Di';

    private string $method = '';
    private string $target = '';
    private string $version = '';
    private string $fields = '';
    private int $size = 0;
    private int $count = 0;
    private ?string $host = null;
    private ?int $length = null;
    private bool $chunked = false;
    private bool $close = false;
    private bool $keep = false;
    private bool $continue = false;

    public function __construct(private readonly MessageLimits $limits) {}

    /** @throws BadMessageException when this many bytes of an incomplete line are too many */
    public function expect(int $bytes): void
    {
        if ($this->method === '') {
            // Only the nearer of the two limits needs a check.
            $this->limits->checkRequestLine(min($bytes, $this->limits->head - $this->size));
        }
        $this->limits->checkSection($this->size + $bytes, 0);
    }

    /** Returns the method; '' before the request line was accepted. */
    public function method(): string
    {
        return $this->method;
    }

    /** Returns whether only an empty line was received. Many clients once sent one behind a body: RFC 9112, 2.2. */
    public function isBlank(): bool
    {
        return $this->method === '' && $this->size <= 2;
    }

    /**
     * @param string $line with its end
     *
     * @return Head|null the head when this line ends it
     *
     * @throws BadMessageException
     */
    public function line(string $line): ?Head
    {
        $this->expect(\strlen($line));
        $this->size += \strlen($line);
        if (!str_ends_with($line, "\r\n")) {
            throw BadMessageException::malformed('A line ends without CR');
        }
        $line = substr($line, 0, -2);
        if ($this->method === '') {
            // RFC 9112, 2.2: an empty line before the request is ignored.
            if ($line !== '') {
                $this->requestLine($line);
            }

            return null;
        }
        if ($line === '') {
            return $this->head();
        }
        $this->limits->checkSection($this->size, ++$this->count);
        $this->field($line);

        return null;
    }

    /** @throws BadMessageException */
    private function requestLine(string $line): void
    {
        if (preg_match(self::REQUEST_LINE_PATTERN, $line, $match) !== 1) {
            throw BadMessageException::malformed('The request line is malformed');
        }
        [, $method, $target, $major, $minor] = $match;
        if ($major !== '1') {
            throw BadMessageException::version();
        }
        if (\strlen($target) > $this->limits->target) {
            throw BadMessageException::targetTooLong($this->limits->target);
        }
        if ($method === 'CONNECT') {
            throw BadMessageException::method();
        }
        if (!self::isTarget($method, $target)) {
            throw BadMessageException::malformed('The request target is malformed');
        }
        [$this->method, $this->target, $this->version] = [$method, $target, $minor === '0' ? '1.0' : '1.1'];
    }

    /** Returns whether the target is in origin-form, absolute-form or, for OPTIONS, asterisk-form: RFC 9112, 3.2. */
    private static function isTarget(string $method, string $target): bool
    {
        return $target[0] === '/'
            || $target === '*' && $method === 'OPTIONS'
            || self::hasAuthority('@^https?+://' . self::AUTHORITY . '(?:[/?]|$)@Di', $target);
    }

    /** @param string $pattern with {@see AUTHORITY} in it */
    private static function hasAuthority(string $pattern, string $text): bool
    {
        return preg_match($pattern, $text, $match) === 1
            && (!isset($match[1]) || filter_var($match[1], \FILTER_VALIDATE_IP, \FILTER_FLAG_IPV6) !== false);
    }

    /** @throws BadMessageException */
    private function field(string $line): void
    {
        if (preg_match(self::FIELD_PATTERN, $line, $match) !== 1) {
            throw BadMessageException::malformed('A header line is malformed');
        }
        $this->fields .= "{$line}\r\n";
        $value = rtrim($match[2], " \t");
        match (strtolower($match[1])) {
            'host' => $this->host($value),
            'content-length' => $this->length($value),
            'transfer-encoding' => $this->coding($value),
            'connection' => $this->connection($value),
            'expect' => $this->expectation($value),
            default => null,
        };
    }

    /** @throws BadMessageException */
    private function host(string $value): void
    {
        if ($this->host !== null) {
            throw BadMessageException::malformed('The request has two Host fields');
        }
        if ($value !== '' && !self::hasAuthority('@^' . self::AUTHORITY . '$@D', $value)) {
            throw BadMessageException::malformed('The Host field is malformed');
        }
        $this->host = $value;
    }

    /** @throws BadMessageException */
    private function length(string $value): void
    {
        if ($this->length !== null) {
            throw BadMessageException::malformed('The request has two Content-Length fields');
        }
        if (preg_match('/^\d{1,18}$/D', $value) !== 1) {
            throw BadMessageException::malformed('The Content-Length is not a valid number');
        }
        $this->length = (int) $value;
    }

    /**
     * Checks Transfer-Encoding: RFC 9112, 6.1, unknown codings; 6.3, "chunked" before the end.
     *
     * @throws BadMessageException
     */
    private function coding(string $value): void
    {
        if (!$this->chunked && strtolower($value) === 'chunked') {
            $this->chunked = true;

            return;
        }
        if (!$this->chunked && $this->version !== '1.0' && preg_match(self::UNKNOWN_CODINGS_PATTERN, $value) === 1) {
            throw BadMessageException::coding();
        }
        throw BadMessageException::malformed('The Transfer-Encoding must end with "chunked", and contain it once');
    }

    private function connection(string $value): void
    {
        foreach (explode(',', strtolower($value)) as $option) {
            $option = trim($option, " \t");
            $this->close = $this->close || $option === 'close';
            $this->keep = $this->keep || $option === 'keep-alive';
        }
    }

    /** @throws BadMessageException */
    private function expectation(string $value): void
    {
        if (strtolower($value) !== '100-continue') {
            throw BadMessageException::expectation();
        }
        $this->continue = true;
    }

    /** @throws BadMessageException */
    private function head(): Head
    {
        $old = $this->version === '1.0';
        if ($this->host === null && !$old) {
            throw BadMessageException::malformed('The request has no Host field');
        }
        if ($this->chunked && $this->length !== null) {
            throw BadMessageException::malformed('The request has both a Content-Length and a Transfer-Encoding');
        }
        if ($this->chunked && $old) {
            throw BadMessageException::malformed('HTTP/1.0 does not support Transfer-Encoding');
        }

        $head = new Head();
        [$head->method, $head->target, $head->version] = [$this->method, $this->target, $this->version];
        [$head->fields, $head->host] = [$this->fields, $this->host ?? ''];
        if (preg_match('@^https?+://([^/?]++)@i', $this->target, $match) === 1) {
            // RFC 9112, 3.2.2: the target's host replaces the Host field.
            $head->host = $match[1];
            $head->fields = "Host: {$match[1]}\r\n" . preg_replace('/^host:[^\n]*+\n/im', '', $this->fields);
        }
        $head->length = $this->chunked ? null : $this->length ?? 0;
        $head->persistent = !$this->close && (!$old || $this->keep);
        $head->expectsContinue = $this->continue && !$old;

        return $head;
    }
}
