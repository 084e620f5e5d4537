<?php

declare(strict_types=1);

namespace Spindle\Http\Middleware;

use Psr\Http\Message\ResponseInterface;
use Psr\Http\Message\ServerRequestInterface;
use Psr\Http\Server\MiddlewareInterface;
use Psr\Http\Server\RequestHandlerInterface;
use Spindle\Http\Internal\Message\Exchange;
use Spindle\Http\Internal\Middleware\ForwardedField;
use Spindle\Http\Internal\Middleware\Hop;
use Spindle\Http\Internal\Middleware\Networks;
use Spindle\Http\Internal\Middleware\XForwardedFields;

/**
 * Finds out whose request a proxy passes on: the client's address goes into the attribute "client-ip", and the scheme, the host
 * and the port that the client used into the request's URI and its Host field.
 *
 * Each proxy appends the address that it was asked from. So the list is read from its end, as long as those who tell are trusted:
 * the first address that is not trusted is the client's, and whatever the client wrote into the list itself lies further left,
 * where nobody looks, be it malformed or not. Where an address is hidden ("unknown", "_name") or malformed, the search
 * ends at the last one that was told. Scheme and host are taken from where the search ended.
 *
 * Header fields that are not believed are taken out of the request: all of them when it comes from elsewhere than a trusted
 * proxy, otherwise those of the other kind, which a proxy that does not know them passes on from the client as they are.
 * A proxy has to set or remove each field of its own kind. Fields such as X_Forwarded_For are taken out in any case: what
 * makes variables or Symfony's headers of a request takes them for those with hyphens, and proxies do not know them.
 *
 * A server that knows a proxy in this way does not apply `maxConnectionsPerAddress` to it.
 */
final readonly class TrustedProxies implements MiddlewareInterface
{
    private const X_FORWARDED = 'x-forwarded-';

    private Networks $trusted;

    /**
     * @param list<string> $proxies such as "10.0.0.1", "10.0.0.0/8", "2001:db8::/32"; "unix" for whoever connects to a Unix socket
     * @param ProxyHeaders $told    the fields that these proxies set
     *
     * @throws \ValueError when one is neither
     */
    public function __construct(array $proxies, private ProxyHeaders $told)
    {
        $this->trusted = new Networks($proxies);
    }

    public function process(ServerRequestInterface $request, RequestHandlerInterface $handler): ResponseInterface
    {
        $peer = $request->getServerParams()['REMOTE_ADDR'] ?? '';
        $client = Networks::canonical(\is_string($peer) ? $peer : '');
        $isProxy = $this->trusted->contain($client);
        if ($isProxy) {
            $exchange = $request->getAttribute(Exchange::class);
            if ($exchange instanceof Exchange) {
                $exchange->trustPeer();
            }
            [$client, $hop] = $this->search($client, $request);
            $request = self::seenByClient($request, $hop);
        }

        return $handler->handle($this->withoutOthers($request, $isProxy)->withAttribute('client-ip', $client));
    }

    /** @return array{string, Hop|null} the client's address as far as it is known, and who told the last of it */
    private function search(string $known, ServerRequestInterface $request): array
    {
        $last = null;
        foreach ($this->told === ProxyHeaders::Forwarded ? ForwardedField::hops($request) : XForwardedFields::hops($request) as $hop) {
            $last = $hop;
            $known = $hop->address === null ? $known : Networks::canonical($hop->address);
            if ($hop->address === null || !$this->trusted->contain($known)) {
                break;
            }
        }

        return [$known, $last];
    }

    private static function seenByClient(ServerRequestInterface $request, ?Hop $hop): ServerRequestInterface
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

    private function withoutOthers(ServerRequestInterface $request, bool $isProxy): ServerRequestInterface
    {
        foreach (ProxyHeaders::cases() as $kind) {
            foreach ($isProxy && $kind === $this->told ? [] : $kind->names() as $name) {
                $request = $request->hasHeader($name) ? $request->withoutHeader($name) : $request;
            }
        }

        return self::withoutUnderscores($request);
    }

    private static function withoutUnderscores(ServerRequestInterface $request): ServerRequestInterface
    {
        foreach (array_keys($request->getHeaders()) as $name) {
            $isDisguised = str_contains((string) $name, '_') && str_starts_with(strtr(strtolower((string) $name), '_', '-'), self::X_FORWARDED);
            $request = $isDisguised ? $request->withoutHeader((string) $name) : $request;
        }

        return $request;
    }
}
