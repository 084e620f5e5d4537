<?php

declare(strict_types=1);

namespace Spindle\Http\Internal;

use Psr\Http\Message\ResponseInterface;
use Psr\Http\Message\ServerRequestInterface;
use Spindle\Http\Internal\Middleware\Body;
use Spindle\Http\Internal\Server\ResponseWriter;

/**
 * One request in an access log. The properties are not escaped; {@see combined()} escapes them.
 *
 * @see https://httpd.apache.org/docs/2.4/logs.html#combined
 */
final readonly class AccessLogEntry
{
    /** Bytes that could end a line or a quoted field, or control a terminal. */
    private const UNSAFE_BYTE_PATTERN = '/[^\x20\x21\x23-\x5b\x5d-\x7e]/';

    /** Unix time of the request. */
    private float $time;

    /**
     * @param string   $version   HTTP version, such as "1.1"
     * @param int|null $bytes     size of the response's body; null when unknown
     * @param float    $duration  seconds from the request to the response
     * @param string   $client    IP address; '' when unknown
     * @param string   $requestId '' when there is none
     */
    public function __construct(
        public string $method,
        public string $target,
        public string $version,
        public int $status,
        public ?int $bytes,
        public float $duration,
        public string $client = '',
        public string $requestId = '',
        public string $userAgent = '',
        public string $referer = '',
    ) {
        $this->time = microtime(true) - $duration;
    }

    /**
     * Creates the entry of a request. The middleware RequestId sets the request id; TrustedProxies sets the client's
     * address. Without TrustedProxies, the client's address is that of the connection.
     *
     * @param ResponseInterface|null $response null when only the status is known
     * @param float                  $duration seconds
     */
    public static function of(
        ServerRequestInterface $request,
        int $status,
        ?ResponseInterface $response,
        float $duration,
    ): self {
        $client = $request->getAttribute('client-ip') ?? $request->getServerParams()['REMOTE_ADDR'] ?? '';
        $id = $request->getAttribute('request-id');
        $hasBody = $request->getMethod() !== 'HEAD' && !isset(ResponseWriter::BODILESS_STATUSES[$status]);

        return new self(
            $request->getMethod(),
            $request->getRequestTarget(),
            $request->getProtocolVersion(),
            $status,
            $response === null ? null : ($hasBody ? Body::size($response) : 0),
            $duration,
            \is_string($client) ? $client : '',
            \is_string($id) ? $id : '',
            $request->getHeaderLine('User-Agent'),
            $request->getHeaderLine('Referer'),
        );
    }

    /** Returns the line in Apache's combined format, without a line end. */
    public function combined(): string
    {
        $client = $this->client === '' ? '-' : str_replace(' ', '\x20', self::escape($this->client));
        $time = date('d/M/Y:H:i:s O', (int) $this->time);
        $request = self::escape("{$this->method} {$this->target} HTTP/{$this->version}");
        $bytes = ($this->bytes ?? 0) === 0 ? '-' : $this->bytes;

        return "{$client} - - [{$time}] \"{$request}\" {$this->status} {$bytes} \""
            . self::field($this->referer)
            . '" "'
            . self::field($this->userAgent)
            . '"';
    }

    /**
     * Returns the context for a PSR-3 logger. "duration" is in seconds.
     *
     * @return array{method: string, target: string, status: int, bytes: int|null, duration: float, client_ip: string,
     *         request_id: string, user_agent: string, referer: string}
     */
    public function context(): array
    {
        return [
            'method' => $this->method,
            'target' => $this->target,
            'status' => $this->status,
            'bytes' => $this->bytes,
            'duration' => $this->duration,
            'client_ip' => $this->client,
            'request_id' => $this->requestId,
            'user_agent' => $this->userAgent,
            'referer' => $this->referer,
        ];
    }

    private static function field(string $value): string
    {
        return $value === '' ? '-' : self::escape($value);
    }

    private static function escape(string $text): string
    {
        return (string) preg_replace_callback(
            self::UNSAFE_BYTE_PATTERN,
            static fn(array $byte): string => '\x' . bin2hex($byte[0]),
            $text,
        );
    }
}
