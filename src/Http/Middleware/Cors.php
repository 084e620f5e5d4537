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
 * Lets pages of other origins read the responses: answers preflights with 204 and adds the headers that browsers ask for.
 * Those headers are its own: what a handler has set of them is replaced or removed.
 *
 * It keeps nobody from sending a request. Behind {@see Errors} it would miss the answers to what a handler throws: put it before.
 *
 * @see https://fetch.spec.whatwg.org/#http-cors-protocol
 */
final readonly class Cors implements MiddlewareInterface
{
    private const ORIGIN = '@^([a-z][a-z0-9+.\-]*+)://([a-z0-9._\-]++|\[[0-9a-f:.]++\])(?::(\d{1,5}))?$@D';
    private const TOKEN = '@^[!#$%&\'*+\-.^_`|~0-9A-Za-z]++$@D';
    private const PORTS = ['http' => 80, 'https' => 443];

    private bool $any;

    /** @var array<string, true> by origin, as normalized() has it */
    private array $origins;

    /** @var array<string, string> of the answer to a preflight, beside the origin */
    private array $preflight;

    private string $exposedHeaders;

    /**
     * @param string|list<string> $origins        such as "https://app.example:8443"; "*" for all
     * @param list<string>        $methods        that may be used; "*" for all
     * @param list<string>        $headers        of the request that may be set, beyond the harmless ones; "*" for all but Authorization
     * @param list<string>        $exposedHeaders of the response that may be read, beyond the harmless ones; "*" for all
     * @param bool                $credentials    whether cookies and the like are sent along and the answers to them may be read
     * @param int|null            $maxAge         seconds for which a browser may remember the answer to a preflight; null for its own default
     *
     * @throws \ValueError when an origin is none, a method or a header is no token, "*" meets credentials, or the seconds are less than 0
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
        self::check([...$methods, ...$headers, ...$exposedHeaders], $maxAge);
        if ($credentials && \in_array('*', [...$origins, ...$methods, ...$headers, ...$exposedHeaders], true)) {
            throw new \ValueError('With credentials browsers take no "*": name the origins, methods and headers');
        }
        $this->any = \in_array('*', $origins, true);
        $this->origins = self::table(array_diff($origins, ['*']));
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
        $allowed = $this->allowed($origin);
        if ($request->getMethod() === 'OPTIONS' && $origin !== '' && $request->hasHeader('Access-Control-Request-Method')) {
            $response = Vary::by(new Response(204, $allowed === null ? [] : $this->preflight), 'Access-Control-Request-Method', 'Access-Control-Request-Headers');
        } else {
            $response = self::set($handler->handle($request), 'Access-Control-Expose-Headers', $allowed === null ? '' : $this->exposedHeaders);
        }
        $response = self::set($response, 'Access-Control-Allow-Origin', $allowed ?? '');
        $response = self::set($response, 'Access-Control-Allow-Credentials', $allowed !== null && $this->credentials ? 'true' : '');

        return $this->any ? $response : Vary::by($response, 'Origin');
    }

    /**
     * @param list<string> $tokens
     *
     * @throws \ValueError
     */
    private static function check(array $tokens, ?int $maxAge): void
    {
        foreach ($tokens as $token) {
            if (preg_match(self::TOKEN, $token) !== 1) {
                throw new \ValueError('A method or header of CORS is a name without blanks, not ' . json_encode($token, \JSON_INVALID_UTF8_SUBSTITUTE));
            }
        }
        if ($maxAge !== null && $maxAge < 0) {
            throw new \ValueError("The answer to a preflight can be remembered for 0 seconds or more, not {$maxAge}");
        }
    }

    /**
     * @param array<string> $origins
     *
     * @return array<string, true>
     *
     * @throws \ValueError
     */
    private static function table(array $origins): array
    {
        $table = [];
        foreach ($origins as $origin) {
            $key = self::normalized($origin)
                ?? throw new \ValueError('An origin is a scheme, a host and perhaps a port, such as https://app.example, not ' . json_encode($origin, \JSON_INVALID_UTF8_SUBSTITUTE));
            $table[$key] = true;
        }

        return $table;
    }

    /** What the client is told of its origin; null when it is told nothing. */
    private function allowed(string $origin): ?string
    {
        if ($this->any) {
            return '*';
        }
        $key = self::normalized($origin);

        return $key !== null && isset($this->origins[$key]) ? $origin : null;
    }

    /** In lower case, without the port that is its scheme's own; null for what is no origin, which "null" is not either. */
    private static function normalized(string $origin): ?string
    {
        if (preg_match(self::ORIGIN, strtolower($origin), $part) !== 1) {
            return null;
        }
        $port = (int) ($part[3] ?? self::PORTS[$part[1]] ?? 0);

        return "{$part[1]}://{$part[2]}:{$port}";
    }

    private static function set(ResponseInterface $response, string $name, string $value): ResponseInterface
    {
        return match (true) {
            $value !== '' => $response->withHeader($name, $value),
            $response->hasHeader($name) => $response->withoutHeader($name),
            default => $response,
        };
    }
}
