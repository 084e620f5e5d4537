<?php

declare(strict_types=1);

namespace Spindle\Http\Middleware;

use Psr\Http\Message\ResponseInterface;
use Psr\Http\Message\ServerRequestInterface;
use Psr\Http\Server\MiddlewareInterface;
use Psr\Http\Server\RequestHandlerInterface;
use Spindle\Http\Internal\Message\RequestExchange;
use Spindle\Http\Internal\Middleware\ForwardedField;
use Spindle\Http\Internal\Middleware\Hop;
use Spindle\Http\Internal\Middleware\Networks;
use Spindle\Http\Internal\Middleware\XForwardedFields;

/**
 * Finds the client behind trusted proxies. The client's address becomes the attribute "client-ip", and "client_ip" in
 * the server's log entries about the request. The scheme, host and port that the client used go into the request's URI
 * and its Host header.
 *
 * Each proxy appends the address of its own client to a list. The middleware searches this list from its end: the first
 * address that is not trusted is the client's. Entries before this address are never used: the client can send them.
 * The search also ends at a hidden address ("unknown", "_name"), at a malformed entry, and at the start of the list. In
 * these cases, the last examined trusted address becomes the client's address. Scheme, host and port come from the last
 * examined entry that is not malformed, even if its address is hidden.
 *
 * Forwarding headers are of two kinds: Forwarded, and all headers X-Forwarded-…, such as X-Forwarded-Prefix. If the
 * sender is not a trusted proxy, both kinds are removed. If the sender is a trusted proxy, the kind that `$headers`
 * names is kept. The other kind is removed, because the proxy may forward such headers unchanged from a client.
 *
 * A proxy must set or remove each header of the kept kind, because the middleware trusts these headers. Headers such as
 * X_Forwarded_For are always removed: proxies forward them unchanged, and CGI and Symfony treat "_" like "-".
 *
 * After the first request of a trusted proxy, Spindle's server does not apply the option `maxConnectionsPerAddress` of
 * HttpServerOptions to that proxy.
 */
final readonly class TrustedProxies implements MiddlewareInterface
{
    private const X_FORWARDED_PREFIX = 'x-forwarded-';

    private Networks $trusted;

    /**
     * @param list<string> $proxies such as "10.0.0.1", "10.0.0.0/8", "2001:db8::/32"; "unix" for every client of a Unix
     *                              socket
     * @param ProxyHeaders $headers the kind of headers that these proxies set
     *
     * @throws \ValueError when a proxy is neither an address, a network nor "unix"
     */
    public function __construct(array $proxies, private ProxyHeaders $headers)
    {
        $this->trusted = new Networks($proxies);
    }

    public function process(ServerRequestInterface $request, RequestHandlerInterface $handler): ResponseInterface
    {
        $peer = $request->getServerParams()['REMOTE_ADDR'] ?? '';
        $client = Networks::canonical(\is_string($peer) ? $peer : '');
        $isProxy = $this->trusted->contains($client);
        if ($isProxy) {
            $exchange = $request->getAttribute(RequestExchange::class);
            if ($exchange instanceof RequestExchange) {
                $exchange->trustPeer();
            }
            [$client, $hop] = $this->findClient($client, $request);
            $exchange instanceof RequestExchange ? $exchange->addLogFields(['client_ip' => $client]) : null;
            $request = self::withClientUri($request, $hop);
        }

        $request = $this->withoutUntrustedHeaders($request, $isProxy);

        return $handler->handle($request->withAttribute('client-ip', $client));
    }

    /** @return array{string, Hop|null} address of the client, and the last examined entry (null for no entry) */
    private function findClient(string $client, ServerRequestInterface $request): array
    {
        $last = null;
        $hops = $this->headers === ProxyHeaders::Forwarded
            ? ForwardedField::hops($request)
            : XForwardedFields::hops($request);
        foreach ($hops as $hop) {
            $last = $hop;
            $client = $hop->address === null ? $client : Networks::canonical($hop->address);
            if ($hop->address === null || !$this->trusted->contains($client)) {
                break;
            }
        }

        return [$client, $last];
    }

    private static function withClientUri(ServerRequestInterface $request, ?Hop $hop): ServerRequestInterface
    {
        if ($hop === null || $hop->scheme === null && $hop->host === null && $hop->port === null) {
            return $request;
        }
        $uri = $request->getUri();
        $uri = $hop->scheme === null ? $uri : $uri->withScheme($hop->scheme);
        $uri = $hop->host === null ? $uri : $uri->withHost($hop->host);

        $uri = $hop->host === null && $hop->port === null ? $uri : $uri->withPort($hop->port);

        return $request->withUri($uri)->withRequestTarget($request->getRequestTarget());
    }

    private function withoutUntrustedHeaders(ServerRequestInterface $request, bool $isProxy): ServerRequestInterface
    {
        $trusted = $isProxy ? $this->headers : null;
        foreach (array_keys($request->getHeaders()) as $name) {
            $name = (string) $name;
            $lowercase = strtolower($name);
            $isUntrusted = match (true) {
                $lowercase === 'forwarded' => $trusted !== ProxyHeaders::Forwarded,
                str_starts_with(strtr($lowercase, '_', '-'), self::X_FORWARDED_PREFIX)
                    => $trusted !== ProxyHeaders::XForwarded || str_contains($name, '_'),
                default => false,
            };
            $request = $isUntrusted ? $request->withoutHeader($name) : $request;
        }

        return $request;
    }
}
