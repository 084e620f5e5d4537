<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Message;

/** Reads a head line by line. Refuses a head that a proxy may read differently (request smuggling): RFC 9112, 11.2. */
final class HeadReader
{
    /** Token: RFC 9110, 5.6.2. TOKEN, VALUE, QUOTED and AUTHORITY contain no "@", so "@" can delimit patterns. */
    public const TOKEN = '[!#$%&\'*+\-.^_`|\x7e0-9A-Za-z]++';

    /** Value of a field: RFC 9110, 5.5. */
    public const VALUE = '[\t\x20-\x7e\x80-\xff]*+';

    /** Quoted string: RFC 9110, 5.6.4. */
    public const QUOTED = '"(?:[\t\x20\x21\x23-\x5b\x5d-\x7e\x80-\xff]|\\\\[\t\x20-\x7e\x80-\xff])*+"';

    /** Request line: RFC 9112, 3. Both numbers of the version have one digit: RFC 9112, 2.3. */
    private const REQUEST_LINE_PATTERN = '@^(' . self::TOKEN . ') ([\x21\x22\x24-\x7e]++) HTTP/(\d)\.(\d)$@D';

    private const FIELD_PATTERN = '@^(' . self::TOKEN . '):[ \t]*+(' . self::VALUE . ')$@D';

    /** Host and port: RFC 3986, 3.2.2 and 3.2.3. The first group is the IPv6 address, if the host is one. */
    private const AUTHORITY = '(?:(?:[A-Za-z0-9\-._\x7e!$&\'()*+,;=]|%[0-9A-Fa-f]{2})++'
        . '|\[([0-9A-Fa-f:.]++)\])(?::\d{0,5}+)?+';

    /** Transfer coding other than "chunked": RFC 9112, 7. */
    private const UNKNOWN_CODING = '(?!chunked(?:[ \t;,]|$))' . self::TOKEN
        . '(?:[ \t]*+;[ \t]*+' . self::TOKEN . '[ \t]*+=[ \t]*+(?:' . self::TOKEN . '|' . self::QUOTED . '))*+';

    private const UNKNOWN_CODINGS_PATTERN = '@^'
        . self::UNKNOWN_CODING
        . '(?:[ \t]*+,[ \t]*+'
        . self::UNKNOWN_CODING
        . ')*+(?:[ \t]*+,[ \t]*+chunked)?+$@Di';

    public string $method = '';
    private string $target = '';
    private string $version = '';
    private string $fields = '';

    private int $size = 0;
    private int $fieldCount = 0;

    private ?string $host = null;

    private ?int $length = null;

    private bool $chunked = false;

    /** Whether the Connection field contains "close", and whether it contains "keep-alive". */
    private bool $close = false;
    private bool $keepAlive = false;

    private bool $expectsContinue = false;

    public function __construct(private readonly MessageLimits $limits) {}

    /**
     * @param int $bytes number of bytes of the current line that have arrived
     *
     * @throws BadMessageException when the request line or the head is too long
     */
    public function checkSize(int $bytes): void
    {
        if ($this->method === '') {
            // Checks only bytes within the head's limit. For more, checkSection() throws and names the head's limit.
            $this->limits->checkRequestLine(min($bytes, $this->limits->head - $this->size));
        }
        $this->limits->checkSection($this->size + $bytes, 0);
    }

    /** Returns whether no line or one empty line was received. Old clients send CRLF after a body: RFC 9112, 2.2. */
    public function isBlank(): bool
    {
        return $this->method === '' && $this->size <= 2;
    }

    /**
     * @param string $line line with its line end
     *
     * @return Head|null the complete head if $line is its last line, otherwise null
     *
     * @throws BadMessageException
     */
    public function addLine(string $line): ?Head
    {
        $this->checkSize(\strlen($line));
        $this->size += \strlen($line);
        if (!str_ends_with($line, "\r\n")) {
            throw BadMessageException::malformed('A line ends without CR');
        }
        $line = substr($line, 0, -2);
        if ($this->method === '') {
            // RFC 9112, 2.2: an empty line before the request is ignored.
            if ($line !== '') {
                $this->readRequestLine($line);
            }

            return null;
        }
        if ($line === '') {
            return $this->createHead();
        }
        $this->limits->checkSection($this->size, ++$this->fieldCount);
        $this->readField($line);

        return null;
    }

    private function readRequestLine(string $line): void
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

    /** @param string $pattern has no group before {@see AUTHORITY}, so that the first group is the IPv6 address */
    private static function hasAuthority(string $pattern, string $text): bool
    {
        return preg_match($pattern, $text, $match) === 1
            && (!isset($match[1]) || filter_var($match[1], \FILTER_VALIDATE_IP, \FILTER_FLAG_IPV6) !== false);
    }

    private function readField(string $line): void
    {
        if (preg_match(self::FIELD_PATTERN, $line, $match) !== 1) {
            throw BadMessageException::malformed('A header line is malformed');
        }
        $this->fields .= "{$line}\r\n";
        $value = rtrim($match[2], " \t");
        match (strtolower($match[1])) {
            'host' => $this->readHost($value),
            'content-length' => $this->readContentLength($value),
            'transfer-encoding' => $this->readTransferEncoding($value),
            'connection' => $this->readConnection($value),
            'expect' => $this->readExpect($value),
            default => null,
        };
    }

    private function readHost(string $value): void
    {
        if ($this->host !== null) {
            throw BadMessageException::malformed('The request has two Host fields');
        }
        if (!self::isHost($value)) {
            throw BadMessageException::malformed('The Host field is malformed');
        }
        $this->host = $value;
    }

    /** Returns whether $value is a valid value of the Host field: RFC 9110, 7.2. The value may be empty. */
    public static function isHost(string $value): bool
    {
        return $value === '' || self::hasAuthority('@^' . self::AUTHORITY . '$@D', $value);
    }

    private function readContentLength(string $value): void
    {
        if ($this->length !== null) {
            throw BadMessageException::malformed('The request has two Content-Length fields');
        }
        if (preg_match('/^\d{1,18}$/D', $value) !== 1) {
            throw BadMessageException::malformed('The Content-Length is not a valid number');
        }
        $this->length = (int) $value;
    }

    /** @throws BadMessageException 501 for unknown codings, 400 for invalid values: RFC 9112, 6.1 and 6.3 */
    private function readTransferEncoding(string $value): void
    {
        if ($this->version === '1.0') {
            throw BadMessageException::malformed('HTTP/1.0 does not support Transfer-Encoding');
        }
        if (!$this->chunked && strtolower($value) === 'chunked') {
            $this->chunked = true;

            return;
        }
        if (!$this->chunked && preg_match(self::UNKNOWN_CODINGS_PATTERN, $value) === 1) {
            throw BadMessageException::coding();
        }
        throw BadMessageException::malformed('The Transfer-Encoding must end with "chunked", and name "chunked" once');
    }

    private function readConnection(string $value): void
    {
        foreach (explode(',', strtolower($value)) as $option) {
            $option = trim($option, " \t");
            $this->close = $this->close || $option === 'close';
            $this->keepAlive = $this->keepAlive || $option === 'keep-alive';
        }
    }

    private function readExpect(string $value): void
    {
        if (strtolower($value) !== '100-continue') {
            throw BadMessageException::expectation();
        }
        $this->expectsContinue = true;
    }

    private function createHead(): Head
    {
        $isHttp10 = $this->version === '1.0';
        if ($this->host === null && !$isHttp10) {
            throw BadMessageException::malformed('The request has no Host field');
        }
        if ($this->chunked && $this->length !== null) {
            throw BadMessageException::malformed('The request has both a Content-Length and a Transfer-Encoding');
        }

        $head = new Head();
        [$head->method, $head->target, $head->version] = [$this->method, $this->target, $this->version];
        [$head->fields, $head->host] = [$this->fields, $this->host ?? ''];
        if (preg_match('@^https?+://([^/?]++)@i', $this->target, $match) === 1) {
            // RFC 9112, 3.2.2: the host of the target replaces the Host field.
            $head->host = $match[1];
            $head->fields = "Host: {$match[1]}\r\n" . preg_replace('/^host:[^\n]*+\n/im', '', $this->fields);
        }
        $head->length = $this->chunked ? null : $this->length ?? 0;
        $head->persistent = !$this->close && (!$isHttp10 || $this->keepAlive);
        $head->expectsContinue = $this->expectsContinue && !$isHttp10;

        return $head;
    }
}
