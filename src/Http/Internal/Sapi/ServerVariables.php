<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Sapi;

use Spindle\Http\HttpException;
use Spindle\Http\Internal\Message\Head;
use Spindle\Http\Internal\Message\HeadReader;
use Spindle\Http\Internal\Message\Peer;

/** Reads the request from $_SERVER. The web server has already validated the request, except its Host field. */
final class ServerVariables
{
    /** Variables of header fields without the prefix HTTP_: RFC 3875, 4.1.2 and 4.1.3. */
    private const WITHOUT_PREFIX = ['CONTENT_TYPE', 'CONTENT_LENGTH'];

    /**
     * Variables that are ignored if they are empty. Some web servers set CONTENT_TYPE and CONTENT_LENGTH even if
     * the client has not sent these fields, and set HTTP_PROXY to "" for security: https://httpoxy.org
     */
    private const IGNORED_IF_EMPTY = [...self::WITHOUT_PREFIX, 'HTTP_PROXY'];

    /** @param array<mixed> $server in the format of $_SERVER */
    public function __construct(private readonly array $server) {}

    public function head(): Head
    {
        $length = $this->text('CONTENT_LENGTH');
        $head = new Head();
        $head->method = $this->text('REQUEST_METHOD', 'GET');
        $head->target = $this->text('REQUEST_URI', '/');
        $head->version = $this->text('SERVER_PROTOCOL') === 'HTTP/1.0' ? '1.0' : '1.1';
        $head->fields = $this->fields();
        $head->host = $this->text('HTTP_HOST');
        $head->length = ctype_digit($length) ? (int) $length : 0;

        return $head;
    }

    /**
     * Checks the Host field, because a "/" or "?" in it would change the path of the URI.
     *
     * @throws HttpException 400 when the field is malformed
     */
    public function checkHost(): void
    {
        if (!HeadReader::isHost($this->text('HTTP_HOST'))) {
            throw new HttpException(400, 'The Host field is malformed');
        }
    }

    public function connection(): Peer
    {
        return Peer::of(
            $this->address('REMOTE_ADDR', 'REMOTE_PORT'),
            $this->address('SERVER_ADDR', 'SERVER_PORT'),
            !\in_array(strtolower($this->text('HTTPS')), ['', 'off'], true),
        );
    }

    public function requestTime(): float
    {
        $time = $this->server['REQUEST_TIME_FLOAT'] ?? null;

        return \is_float($time) ? $time : microtime(true);
    }

    /** Returns the header lines, each with its CRLF. Leaves out malformed lines. */
    private function fields(): string
    {
        $fields = [];
        foreach ($this->server as $key => $value) {
            if (
                !\is_string($key)
                || !\is_string($value)
                || ($value === '' && \in_array($key, self::IGNORED_IF_EMPTY, true))
            ) {
                continue;
            }
            if (str_starts_with($key, 'HTTP_') || \in_array($key, self::WITHOUT_PREFIX, true)) {
                $name = ucwords(
                    strtolower(strtr(str_starts_with($key, 'HTTP_') ? substr($key, 5) : $key, '_', '-')),
                    '-',
                );
                $fields[$name] = $value;
            }
        }
        $lines = '';
        foreach ($fields as $name => $value) {
            $line = "{$name}: {$value}";
            $lines .= preg_match('@^' . HeadReader::TOKEN . ':' . HeadReader::VALUE . '$@D', $line) === 1
                ? "{$line}\r\n"
                : '';
        }

        return $lines;
    }

    /** Returns "host:port" for one side of the connection; '' for a Unix socket. */
    private function address(string $hostKey, string $portKey): string
    {
        $address = $this->text($hostKey);

        return $address === '' || str_starts_with($address, 'unix:')
            ? ''
            : (str_contains($address, ':') ? "[{$address}]" : $address) . ':' . $this->text($portKey, '0');
    }

    private function text(string $key, string $default = ''): string
    {
        $value = $this->server[$key] ?? null;

        return \is_scalar($value) ? (string) $value : $default;
    }
}
