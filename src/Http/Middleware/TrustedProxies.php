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
 * Finds the client behind trusted proxies. The client's address becomes the attribute "client-ip". The scheme, host and
 * port that the client used go into the request's URI and its Host field.
 *
 * Each proxy appends the address of its own client to a list. The list is read from its end: the first address that is
 * not trusted is the client's. Entries that the client sent itself are further left and are never read, malformed or
 * not. At a hidden ("unknown", "_name") or malformed address, the search ends with the last known address. Scheme and
 * host are taken from the entry at which the search ended.
 *
 * Forwarding fields that are not trusted are removed from the request. If the sender is not a trusted proxy, these are
 * all of them. Otherwise, these are the fields of the other kind, which the proxy may have passed on unchanged.
 *
 * A proxy has to set or remove each field of its own kind. Fields such as X_Forwarded_For are always removed. CGI
 * variables and Symfony's headers do not distinguish them from those with hyphens, and proxies do not know them.
 *
 * A server with this middleware does not apply `maxConnectionsPerAddress` to these proxies.
 */
final readonly class TrustedProxies implements MiddlewareInterface
{
    private const X_FORWARDED_PREFIX = 'x-forwarded-';

    private Networks $trusted;

    /**
     * @param list<string> $proxies such as "10.0.0.1", "10.0.0.0/8", "2001:db8::/32"; "unix" for every client of a Unix
     *                              socket
     * @param ProxyHeaders $headers    the fields that these proxies set
     *
     * @throws \ValueError when one is neither an address nor a network
     */
    public function __construct(array $proxies, private ProxyHeaders $headers)
    {
        $this->trusted = new Networks($proxies);
    }

    public function process(ServerRequestInterface $request, RequestHandlerInterface $handler): ResponseInterface
    {
        $peer = $request->getServerParams()['REMOTE_ADDR'] ?? '';
        $client = Networks::canonical(\is_string($peer) ? $peer : '');
        $isProxy = $this->trusted->contain($client);
        if ($isProxy) {
            $exchange = $request->getAttribute(RequestExchange::class);
            if ($exchange instanceof RequestExchange) {
                $exchange->trustPeer();
            }
            [$client, $hop] = $this->search($client, $request);
            $request = self::withClientUri($request, $hop);
        }

        return $handler->handle($this->withoutUntrustedFields($request, $isProxy)->withAttribute('client-ip', $client));
    }

    /** @return array{string, Hop|null} the client's address as far as it is known, and the last trusted entry */
    private function search(string $known, ServerRequestInterface $request): array
    {
        $last = null;
        $hops = $this->headers === ProxyHeaders::Forwarded
            ? ForwardedField::hops($request)
            : XForwardedFields::hops($request);
        foreach ($hops as $hop) {
            $last = $hop;
            $known = $hop->address === null ? $known : Networks::canonical($hop->address);
            if ($hop->address === null || !$this->trusted->contain($known)) {
                break;
            }
        }

        return [$known, $last];
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

    private function withoutUntrustedFields(ServerRequestInterface $request, bool $isProxy): ServerRequestInterface
    {
        foreach (ProxyHeaders::cases() as $kind) {
            foreach ($isProxy && $kind === $this->headers ? [] : $kind->names() as $name) {
                $request = $request->hasHeader($name) ? $request->withoutHeader($name) : $request;
            }
        }

        return self::withoutUnderscores($request);
    }

    private static function withoutUnderscores(ServerRequestInterface $request): ServerRequestInterface
    {
        foreach (array_keys($request->getHeaders()) as $name) {
            $isDisguised = str_contains((string) $name, '_')
                && str_starts_with(strtr(strtolower((string) $name), '_', '-'), self::X_FORWARDED_PREFIX);
            $request = $isDisguised ? $request->withoutHeader((string) $name) : $request;
        }

        return $request;
    }
}
