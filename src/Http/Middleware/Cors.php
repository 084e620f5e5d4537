<?php

declare(strict_types=1);

namespace Spindle\Http\Middleware;

use Psr\Http\Message\ResponseInterface;
use Psr\Http\Message\ServerRequestInterface;
use Psr\Http\Server\MiddlewareInterface;
use Psr\Http\Server\RequestHandlerInterface;
use Spindle\Http\Internal\Middleware\Vary;
use Spindle\Http\Response;

/**
 * Lets web pages of other origins read responses. Answers preflight requests with 204, and adds the header fields that
 * browsers require. If a handler has set these fields, they are replaced or removed.
 *
 * The middleware does not prevent requests from other origins. In a {@see \Spindle\Http\MiddlewareStack}, put this
 * middleware before {@see ErrorHandler}. Otherwise, responses to exceptions do not have these header fields.
 *
 * @see https://fetch.spec.whatwg.org/#http-cors-protocol
 */
final readonly class Cors implements MiddlewareInterface
{
    private const ORIGIN_PATTERN = '@^([a-z][a-z0-9+.\-]*+)://([a-z0-9._\-]++|\[[0-9a-f:.]++\])(?::(\d{1,5}))?$@D';
    private const TOKEN_PATTERN = '@^[!#$%&\'*+\-.^_`|~0-9A-Za-z]++$@D';
    private const DEFAULT_PORTS = ['http' => 80, 'https' => 443];

    private bool $allowsAnyOrigin;

    /** @var array<string, true> the keys are the allowed origins in the form of {@see normalized()} */
    private array $origins;

    /** @var array<string, string> fields of a preflight response, without Access-Control-Allow-Origin */
    private array $preflight;

    private string $exposedHeaders;

    /**
     * @param string|list<string> $origins        such as "https://app.example:8443"; "*" for all
     * @param list<string>        $methods        allowed methods; "*" for all
     * @param list<string>        $headers        request headers that pages may set, in addition to those that
     *                                            browsers always allow; "*" for all but Authorization
     * @param list<string>        $exposedHeaders response headers that pages may read, in addition to those that
     *                                            browsers always let pages read; "*" for all
     * @param bool                $credentials    whether pages may read responses to requests that have cookies or
     *                                            other credentials
     * @param int|null            $maxAge         seconds for which a browser may cache a preflight's response; null for
     *                                            the browser's default
     *
     * @throws \ValueError when an origin is malformed, a method or a header is not a token, "*" is used with
     *         credentials, or $maxAge is negative
     */
    public function __construct(
        string|array $origins,
        array $methods = ['GET', 'HEAD', 'POST'],
        array $headers = [],
        array $exposedHeaders = [],
        private bool $credentials = false,
        ?int $maxAge = null,
    ) {
        $origins = (array) $origins;
        self::checkTokens([...$methods, ...$headers, ...$exposedHeaders], $maxAge);
        if ($credentials && \in_array('*', [...$origins, ...$methods, ...$headers, ...$exposedHeaders], true)) {
            throw new \ValueError('With credentials, browsers do not accept "*".'
                . ' Name the origins, methods and headers');
        }
        $this->allowsAnyOrigin = \in_array('*', $origins, true);
        $this->origins = self::normalizedOrigins(array_diff($origins, ['*']));
        $this->exposedHeaders = implode(', ', $exposedHeaders);
        $this->preflight = array_filter([
            'Access-Control-Allow-Methods' => implode(', ', $methods),
            'Access-Control-Allow-Headers' => implode(', ', $headers),
            'Access-Control-Max-Age' => (string) $maxAge,
        ], static fn(string $value): bool => $value !== '');
    }

    public function process(ServerRequestInterface $request, RequestHandlerInterface $handler): ResponseInterface
    {
        $origin = $request->getHeaderLine('Origin');
        $allowedOrigin = $this->allowedOrigin($origin);
        if (
            $request->getMethod() === 'OPTIONS'
            && $origin !== ''
            && $request->hasHeader('Access-Control-Request-Method')
        ) {
            $response = Vary::by(
                new Response(204, $allowedOrigin === null ? [] : $this->preflight),
                'Access-Control-Request-Method',
                'Access-Control-Request-Headers',
            );
        } else {
            $response = self::setOrRemove(
                $handler->handle($request),
                'Access-Control-Expose-Headers',
                $allowedOrigin === null ? '' : $this->exposedHeaders,
            );
        }
        $response = self::setOrRemove($response, 'Access-Control-Allow-Origin', $allowedOrigin ?? '');
        $response = self::setOrRemove(
            $response,
            'Access-Control-Allow-Credentials',
            $allowedOrigin !== null && $this->credentials ? 'true' : '',
        );

        return $this->allowsAnyOrigin ? $response : Vary::by($response, 'Origin');
    }

    /** @param list<string> $tokens */
    private static function checkTokens(array $tokens, ?int $maxAge): void
    {
        foreach ($tokens as $token) {
            if (preg_match(self::TOKEN_PATTERN, $token) !== 1) {
                throw new \ValueError(
                    'A method or header of CORS must be an HTTP token, such as PUT or X-Total, not '
                        . json_encode($token, \JSON_INVALID_UTF8_SUBSTITUTE),
                );
            }
        }
        if ($maxAge !== null && $maxAge < 0) {
            throw new \ValueError("The maximum age of a preflight response must be 0 seconds or more, not {$maxAge}");
        }
    }

    /**
     * @param array<string> $origins
     *
     * @return array<string, true> by normalized origin
     */
    private static function normalizedOrigins(array $origins): array
    {
        $normalizedOrigins = [];
        foreach ($origins as $origin) {
            $key = self::normalized($origin)
                ?? throw new \ValueError(
                    'An origin must be a scheme, a host and optionally a port, such as https://app.example, not '
                        . json_encode($origin, \JSON_INVALID_UTF8_SUBSTITUTE),
                );
            $normalizedOrigins[$key] = true;
        }

        return $normalizedOrigins;
    }

    private function allowedOrigin(string $origin): ?string
    {
        if ($this->allowsAnyOrigin) {
            return '*';
        }
        $key = self::normalized($origin);

        return $key !== null && isset($this->origins[$key]) ? $origin : null;
    }

    /** Returns the origin in lower case with its port (0 if unknown); null for the origin "null" or a malformed one. */
    private static function normalized(string $origin): ?string
    {
        if (preg_match(self::ORIGIN_PATTERN, strtolower($origin), $part) !== 1) {
            return null;
        }
        $port = (int) ($part[3] ?? self::DEFAULT_PORTS[$part[1]] ?? 0);

        return "{$part[1]}://{$part[2]}:{$port}";
    }

    private static function setOrRemove(ResponseInterface $response, string $name, string $value): ResponseInterface
    {
        return match (true) {
            $value !== '' => $response->withHeader($name, $value),
            $response->hasHeader($name) => $response->withoutHeader($name),
            default => $response,
        };
    }
}
