<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Client;

use Amp\CancelledException;
use Spindle\Http\Client\RequestOptions;
use Spindle\Internal\Network\ClientStream;
use Spindle\Internal\Network\ClientTls;
use Spindle\Internal\Network\Deadline;
use Spindle\Internal\Network\DnsLookup;
use Spindle\Internal\Network\NetworkException;
use Spindle\Internal\Network\NetworkTimeoutException;

/** Opens connections to one origin, directly or through a proxy. For https, a proxy opens a tunnel: RFC 9110, 9.3.6. */
final class OriginConnector
{
    public function __construct(private readonly Url $url, private readonly ?Url $proxy) {}

    public function explain(\Throwable $failure): string
    {
        return $failure->getMessage() . ($this->proxy === null ? '' : " (through the proxy {$this->proxy->origin()})");
    }

    /**
     * Returns how messages name the other end of a connection: the server, or the proxy that relays the request. For a
     * tunnel, messages name the server, although the client can't know whether the proxy or the server has closed it.
     */
    public function peer(): string
    {
        return $this->proxy === null || $this->url->scheme === 'https'
            ? 'the server'
            : "the proxy {$this->proxy->origin()}";
    }

    /** @throws NetworkException|CancelledException */
    public function connect(RequestOptions $options, Deadline $deadline): ClientStream
    {
        $isSecure = $this->url->scheme === 'https';
        $tls = $isSecure ? ClientTls::of(
            $options->tls,
            $this->url->host,
            ' (set the trusted authorities with RequestOptions::$tls, a Spindle\TlsOptions)',
            'http/1.1',
        ) : null;
        $peer = $this->proxy ?? $this->url;
        $ips = DnsLookup::addresses($peer->host, $deadline);
        if ($options->blocksPrivateAddresses && $this->proxy === null) {
            $ips = array_values(array_filter($ips, AddressGuard::isPublic(...)));
            if ($ips === []) {
                throw NetworkException::because(
                    'the address of the host is not public (RequestOptions::$blocksPrivateAddresses forbids that)',
                );
            }
        }
        $stream = ClientStream::connectToFirst($ips, $peer->port, $tls, $deadline);
        if ($this->proxy !== null && $isSecure) {
            $this->openTunnel($stream, $this->proxy, $deadline);
        }
        if ($isSecure) {
            $stream->encrypt($deadline);
        }

        return $stream;
    }

    /** @throws NetworkException|CancelledException */
    private function openTunnel(ClientStream $stream, Url $proxy, Deadline $deadline): void
    {
        $authorization = $proxy->authorization();
        $stream->write(
            "CONNECT {$this->url->hostAndPort()} HTTP/1.1\r\nHost: {$this->url->hostAndPort()}\r\n"
                . ($authorization === null ? '' : "Proxy-Authorization: {$authorization}\r\n")
                . "\r\n",
            $deadline,
            'the proxy',
        );
        $left = ResponseHead::MAX_BYTES;
        do {
            $status = self::statusFromProxy($stream, $deadline, $left);
        } while ($status < 200 && $status !== 101); // after an interim response, another response follows
        if ($status < 200 || $status > 299) {
            throw NetworkException::because("the proxy refuses the connection with status {$status}");
        }
    }

    /**
     * @param int $left maximum bytes to read; reduced by the bytes that were read
     *
     * @throws NetworkException|CancelledException
     */
    private static function statusFromProxy(ClientStream $stream, Deadline $deadline, int &$left): int
    {
        $answer = '';
        do {
            // Reads one byte at a time. Bytes after the head belong to the TLS handshake, and must stay in the socket.
            try {
                $answer .= $stream->read($deadline, 'the answer of the proxy', 1);
            } catch (NetworkException $end) {
                throw $end instanceof NetworkTimeoutException
                    ? $end
                    : NetworkException::because('the proxy closed the connection before it had answered', $end);
            }
            if (--$left < 0) {
                throw NetworkException::because('the answer of the proxy is too long');
            }
            // A line that ends with LF alone also ends the loop. The line is malformed, so parse() refuses the answer.
            $endsWithLf = str_ends_with($answer, "\n") && !str_ends_with($answer, "\r\n");
        } while (!$endsWithLf && !str_ends_with($answer, "\r\n\r\n"));
        try {
            return ResponseHead::parse(substr($answer, 0, -2), true)->status;
        } catch (MalformedResponseException $malformed) {
            throw NetworkException::because('the answer of the proxy is malformed', $malformed);
        }
    }
}
