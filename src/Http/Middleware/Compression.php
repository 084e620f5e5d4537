<?php

declare(strict_types=1);

namespace Spindle\Http\Middleware;

use Nyholm\Psr7\Stream;
use Psr\Http\Message\ResponseInterface;
use Psr\Http\Message\ServerRequestInterface;
use Psr\Http\Server\MiddlewareInterface;
use Psr\Http\Server\RequestHandlerInterface;
use Spindle\Http\Internal\Message\StreamSize;
use Spindle\Http\Internal\Middleware\Body;
use Spindle\Http\Internal\Middleware\GzipStream;
use Spindle\Http\Internal\Middleware\Preferences;
use Spindle\Http\Internal\Middleware\Vary;

/**
 * Compresses responses with gzip, if the client accepts gzip, the media type is compressible (text, JSON and similar),
 * and the body has at least 1,024 bytes or an unknown length. Without ext-zlib, no response is changed.
 *
 * A long body is compressed while it is sent. If the length of the body is unknown, clients can decompress each piece
 * when the piece arrives. A strong ETag becomes weak. A response with "Cache-Control: no-transform" is not changed.
 *
 * Compression makes the attack BREACH possible (https://www.breachattack.com). If a page contains both a secret, such
 * as a CSRF token, and data from the request, the compressed length reveals the secret. The attacker must see the
 * traffic and make the victim repeat the request. Mask secrets differently in each response, or send "no-transform".
 */
final readonly class Compression implements MiddlewareInterface
{
    /** Minimum size of a body, in bytes. A smaller body fits into one packet without compression. */
    private const MIN_BODY_BYTES = 1024;

    private const MAX_SINGLE_PASS_BYTES = 65_536;

    private const LEVEL = 5;

    private const TYPE_PATTERN = '@^(?:text/(?!event-stream)[\w.+\-]++'
        . '|[\w.\-]++/[\w.+\-]*\+(?:json|xml)|font/(?:otf|ttf)|image/(?:bmp|x-icon|vnd\.microsoft\.icon)'
        . '|application/(?:json|xml|javascript|x-javascript|ecmascript|wasm|x-ndjson'
        . '|jsonl|graphql|openmetrics-text|rtf|vnd\.ms-fontobject))[ \t]*+(?:;|$)@Di';

    /** Responses with these fields are not compressed. They are encoded already, or have a checksum of their bytes. */
    private const EXCLUDING_FIELDS = ['Content-Encoding', 'Content-Digest', 'Repr-Digest', 'Digest', 'Content-MD5'];

    private const EXCLUDED_STATUSES = [204, 205];

    public function process(ServerRequestInterface $request, RequestHandlerInterface $handler): ResponseInterface
    {
        $response = $handler->handle($request);
        if (!\extension_loaded('zlib') || !self::dependsOnEncoding($response)) {
            return $response;
        }
        $response = Vary::by($response, 'Accept-Encoding');
        if (!(new Preferences($request->getHeaderLine('Accept-Encoding')))->accepts('gzip')) {
            return $response;
        }

        return match ($response->getStatusCode()) {
            206 => $response,
            304 => self::withWeakTag($response),
            default => self::compressed($response, $request->getMethod() === 'HEAD'),
        };
    }

    /** Returns whether the response depends on Accept-Encoding. 206 and 304 do if the full response (200) does. */
    private static function dependsOnEncoding(ResponseInterface $response): bool
    {
        $status = $response->getStatusCode();
        $type = $response->getHeaderLine('Content-Type');
        if (preg_match('/(?:^|[ ,\t])no-transform(?:[ ,\t]|$)/i', $response->getHeaderLine('Cache-Control')) === 1) {
            return false;
        }
        // 304 refers to the client's copy, and usually has no Content-Type. So a missing type counts as compressible.
        if ($status === 304) {
            return $type === '' || preg_match(self::TYPE_PATTERN, $type) === 1;
        }

        return !\in_array($status, self::EXCLUDED_STATUSES, true)
            && preg_match(self::TYPE_PATTERN, $type) === 1
            && array_filter(self::EXCLUDING_FIELDS, $response->hasHeader(...)) === []
            // 206 is not compressed, but needs the same Vary field as 200: RFC 9110, 15.3.7.
            && ($status === 206 || !$response->hasHeader('Content-Range') && self::isWorthCompressing($response));
    }

    private static function isWorthCompressing(ResponseInterface $response): bool
    {
        $body = Body::of($response);

        // A body that was read, and can't be read again, is not wrapped, so that the server can refuse the body.
        return (Body::size($response) ?? self::MIN_BODY_BYTES) >= self::MIN_BODY_BYTES
            && (\is_string($body) || $body->isSeekable() || !$body->eof());
    }

    /** Compresses a response. HEAD gets the same fields as GET, except Content-Length: RFC 9110, 9.3.2. */
    private static function compressed(ResponseInterface $response, bool $isHead): ResponseInterface
    {
        $body = Body::of($response);
        $size = \is_string($body) ? \strlen($body) : Body::size($response);
        // A stream that can't be rewound, such as a non-blocking pipe, may have no bytes at present.
        $isAvailable = \is_string($body) || $body->isSeekable() && StreamSize::of($body) > 0;
        $response = self::withWeakTag($response)
            ->withHeader('Content-Encoding', 'gzip')
            ->withoutHeader('Accept-Ranges');
        if ($isHead || !$isAvailable || $size > self::MAX_SINGLE_PASS_BYTES) {
            return $response->withoutHeader('Content-Length')->withBody(new GzipStream(
                \is_string($body) ? Stream::create($body) : $body,
                $size,
                self::LEVEL,
            ));
        }
        $bytes = \is_string($body)
            ? (string) gzencode($body, self::LEVEL)
            : (new GzipStream($body, $size, self::LEVEL))->getContents();

        return $response->withHeader('Content-Length', (string) \strlen($bytes))->withBody(Stream::create($bytes));
    }

    /** Makes the ETag weak, because the bytes differ from those of the uncompressed response: RFC 9110, 8.8.3.3. */
    private static function withWeakTag(ResponseInterface $response): ResponseInterface
    {
        $tag = $response->getHeaderLine('ETag');

        return str_starts_with($tag, '"') ? $response->withHeader('ETag', "W/{$tag}") : $response;
    }
}
