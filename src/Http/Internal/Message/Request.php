<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Message;

use Amp\Cancellation;
use Nyholm\Psr7\Uri;
use Psr\Http\Message\ServerRequestInterface;
use Psr\Http\Message\StreamInterface;
use Psr\Http\Message\UploadedFileInterface;
use Psr\Http\Message\UriInterface;
use Spindle\Http\HttpException;
use Spindle\Http\Internal\Form\Query;
use Spindle\Http\MatchedRoute;

/**
 * A received request. Each part is parsed when a handler first uses it.
 *
 * @phpstan-import-type FieldMap from Fields
 */
final class Request implements ServerRequestInterface
{
    use HasFields;
    use NotSerializable;

    /** @var string|null null for the received method */
    private ?string $method = null;

    /** @var FieldMap|null */
    private ?array $fields = null;

    /** @var FieldMap|null the received fields, after {@see withFields()} has replaced them; before that, null */
    private ?array $receivedFields = null;

    /** @var UriInterface|null URI of withUri(); null for the received URI */
    private ?UriInterface $uri = null;

    private ?UriInterface $receivedUri = null;

    /** @var string|UriInterface|null target of withRequestTarget() or URI of withUri(); null for the received target */
    private string|UriInterface|null $target = null;

    /** @var array<array-key, mixed>|null */
    private ?array $query = null;

    /** @var array<array-key, mixed>|null */
    private ?array $cookies = null;

    private ?StreamInterface $body = null;

    /**
     * The value from {@see withParsedBody()}, in a list because the value may be null. Null if no value was set.
     *
     * @var array{array<array-key, mixed>|object|null}|null
     */
    private ?array $parsed = null;

    /** @var array<array-key, mixed>|null */
    private ?array $files = null;

    /** @var array<array-key, mixed> by name; key "\0X": the attribute X (Cancellation or MatchedRoute) was removed */
    private array $attributes = [];

    /**
     * The parameters have no native types, because checking types would double the time of this constructor.
     *
     * @param Head            $head
     * @param RequestExchange $exchange
     */
    public function __construct(private $head, private $exchange)
    {
        if ($head->version !== '1.1') {
            $this->version = $head->version;
        }
    }

    /** @return array<string, mixed> without $exchange, because $exchange leads to requests of other clients */
    public function __debugInfo(): array
    {
        return [
            'method' => $this->getMethod(),
            'target' => $this->getRequestTarget(),
            'protocol' => $this->getProtocolVersion(),
            'headers' => $this->getHeaders(),
            'attributes' => array_filter(
                $this->attributes,
                static fn(string|int $name): bool => !str_starts_with((string) $name, "\0"),
                \ARRAY_FILTER_USE_KEY,
            ),
        ];
    }

    public function getMethod(): string
    {
        return $this->method ?? $this->head->method;
    }

    public function withMethod(string $method): static
    {
        $copy = clone $this;
        $copy->method = Fields::name($method);

        return $copy;
    }

    public function getRequestTarget(): string
    {
        return match (true) {
            $this->target === null => $this->head->target,
            \is_string($this->target) => $this->target,
            default => ($this->target->getPath() === '' ? '/' : $this->target->getPath())
                . ($this->target->getQuery() === '' ? '' : "?{$this->target->getQuery()}"),
        };
    }

    public function withRequestTarget(string $requestTarget): static
    {
        if (preg_match('/[\x00-\x20\x7f]/', $requestTarget) === 1) {
            throw new \InvalidArgumentException('A request target must not contain spaces or control characters');
        }
        $copy = clone $this;
        $copy->target = $requestTarget;

        return $copy;
    }

    /**
     * Returns the target URI. If the request names no host, as HTTP/1.0 allows, the URI has the address and port to
     * which the client has connected. On a Unix socket, the host is then `localhost`.
     *
     * @throws HttpException 400 when the target or the Host field is not valid in a URI; 421 when a client sends a
     *         target with https:// over an unencrypted connection, unless the client is a trusted proxy
     */
    public function getUri(): UriInterface
    {
        return $this->uri ?? $this->receivedUri();
    }

    public function withUri(UriInterface $uri, bool $preserveHost = false): static
    {
        $copy = clone $this;
        $copy->uri = $uri;
        $copy->target = \is_string($this->target) ? $this->target : $uri;
        if ($uri->getHost() === '' || $preserveHost && $this->getHeaderLine('Host') !== '') {
            return $copy;
        }

        return $copy->withHeader('Host', $uri->getHost() . ($uri->getPort() === null ? '' : ":{$uri->getPort()}"));
    }

    /**
     * Returns addresses, method, target, protocol and time as in $_SERVER, without header fields and environment.
     *
     * @return array<string, mixed>
     */
    public function getServerParams(): array
    {
        $peer = $this->exchange->peer();
        $time = $this->exchange->arrivedAt();
        $query = strpos($this->head->target, '?');

        return [
            'REQUEST_METHOD' => $this->head->method,
            'REQUEST_URI' => $this->head->target,
            'QUERY_STRING' => $query === false ? '' : substr($this->head->target, $query + 1),
            'SERVER_PROTOCOL' => "HTTP/{$this->head->version}",
            'REQUEST_SCHEME' => $peer->secure ? 'https' : 'http',
            'REMOTE_ADDR' => $peer->address,
            'REMOTE_PORT' => $peer->port,
            'SERVER_ADDR' => $peer->localAddress,
            'SERVER_PORT' => $peer->localPort,
            'REQUEST_TIME' => (int) $time,
            'REQUEST_TIME_FLOAT' => $time,
        ] + ($peer->secure ? ['HTTPS' => 'on'] : []);
    }

    /**
     * Returns the parameters in the query of the received URI, even after {@see withUri()}.
     *
     * @return array<array-key, mixed>
     *
     * @throws HttpException 400 when the query exceeds max_input_vars or max_input_nesting_level of PHP; also the
     *         exceptions of {@see getUri()}
     */
    public function getQueryParams(): array
    {
        return $this->query ??= Query::parse($this->receivedUri()->getQuery());
    }

    /** @param array<array-key, mixed> $query */
    public function withQueryParams(array $query): static
    {
        $copy = clone $this;
        $copy->query = $query;

        return $copy;
    }

    /**
     * Returns the received cookies, even after a change of the Cookie field.
     *
     * @return array<array-key, mixed>
     *
     * @throws HttpException 400 when there are more cookies than PHP's max_input_vars
     */
    public function getCookieParams(): array
    {
        return $this->cookies ??= Cookies::parse(($this->receivedFields ?? $this->fields())['cookie'][1] ?? []);
    }

    /** @param array<array-key, mixed> $cookies */
    public function withCookieParams(array $cookies): static
    {
        $copy = clone $this;
        $copy->cookies = $cookies;

        return $copy;
    }

    /**
     * Returns the body. A read suspends until bytes have arrived. If the body is too large, too slow or malformed, the
     * read throws an {@see HttpException}; if the client has closed the connection, a ClientDisconnectedException.
     *
     * Most bodies can be read several times, even after {@see getParsedBody()}: JSON and urlencoded forms up to
     * FormLimits::$maxTextBytes, other bodies up to 64 KiB. A multipart form can be read only once. After
     * getParsedBody(), its body is empty. After the end of the request, each read throws a LogicException.
     */
    public function getBody(): StreamInterface
    {
        return $this->body ??= $this->exchange->body();
    }

    public function withBody(StreamInterface $body): static
    {
        $copy = clone $this;
        $copy->body = $body;

        return $copy;
    }

    /**
     * Returns a form's fields or decoded JSON as an array; null for a JSON scalar, empty JSON and other types. The
     * first call reads a form or JSON to its end, and then restores the body's position, except for a multipart form.
     *
     * @return array<array-key, mixed>|object|null
     *
     * @throws HttpException 400: the body is malformed; 408: it arrives too slowly; 413: it exceeds a limit; 415: it
     *         has a Content-Encoding; 503: memory or file descriptors are scarce; 507: a file can't be stored
     * @throws \LogicException when the body was closed, or was read before and can be read only once, or when the
     *         request has ended
     */
    public function getParsedBody(): array|object|null
    {
        return $this->parsed !== null ? $this->parsed[0] : $this->exchange->form()->fields;
    }

    /**
     * @param mixed $data an array, an object or null
     *
     * @throws \InvalidArgumentException when $data has another type
     */
    public function withParsedBody($data): static
    {
        if (!\is_array($data) && !\is_object($data) && $data !== null) {
            throw new \InvalidArgumentException(
                'A parsed body must be an array, an object or null, not ' . get_debug_type($data),
            );
        }
        $copy = clone $this;
        $copy->parsed = [$data];

        return $copy;
    }

    /**
     * @return array<array-key, mixed> a tree of UploadedFileInterface
     *
     * @throws HttpException for the same reasons as {@see getParsedBody()}
     */
    public function getUploadedFiles(): array
    {
        return $this->files ?? $this->exchange->form()->files;
    }

    /**
     * @param array<array-key, mixed> $uploadedFiles a tree of UploadedFileInterface
     *
     * @throws \InvalidArgumentException when the tree contains another value
     */
    public function withUploadedFiles(array $uploadedFiles): static
    {
        array_walk_recursive($uploadedFiles, static function (mixed $file): void {
            if (!$file instanceof UploadedFileInterface) {
                throw new \InvalidArgumentException(
                    'Uploaded files must be a tree of UploadedFileInterface, not of ' . get_debug_type($file),
                );
            }
        });
        $copy = clone $this;
        $copy->files = $uploadedFiles;

        return $copy;
    }

    public function getAttribute(string $name, $default = null): mixed
    {
        return \array_key_exists($name, $this->attributes) ? $this->attributes[$name] : match ($name) {
            Cancellation::class => isset($this->attributes["\0" . Cancellation::class])
                ? $default
                : $this->exchange->cancellation(),
            MatchedRoute::class => isset($this->attributes["\0" . MatchedRoute::class])
                ? $default
                : $this->exchange->route(),
            // Only middleware of this package uses this attribute, so getAttributes() leaves it out.
            RequestExchange::class => $this->exchange,
            default => $default,
        };
    }

    /** @return array<array-key, mixed> */
    public function getAttributes(): array
    {
        $attributes = $this->attributes;
        foreach ([Cancellation::class, MatchedRoute::class] as $name) {
            if (!isset($attributes["\0{$name}"])) {
                $attributes += [$name => $this->getAttribute($name)];
            }
            unset($attributes["\0{$name}"]);
        }

        return $attributes;
    }

    public function withAttribute(string $name, $value): static
    {
        $copy = clone $this;
        $copy->attributes[$name] = $value;

        return $copy;
    }

    public function withoutAttribute(string $name): static
    {
        $copy = clone $this;
        unset($copy->attributes[$name]);
        if ($name === Cancellation::class || $name === MatchedRoute::class) {
            $copy->attributes["\0{$name}"] = true;
        }

        return $copy;
    }

    /** @return FieldMap */
    private function fields(): array
    {
        return $this->fields ??= Fields::parse($this->head->fields);
    }

    /** @param FieldMap $fields */
    private function withFields(array $fields): static
    {
        $copy = clone $this;
        $copy->receivedFields ??= $this->fields();
        $copy->fields = $fields;

        return $copy;
    }

    private function receivedUri(): UriInterface
    {
        return $this->receivedUri ??= $this->effectiveUri();
    }

    /** Returns the target URI (RFC 9112, 3.3), or throws the exceptions of {@see getUri()} (RFC 9110, 7.4). */
    private function effectiveUri(): UriInterface
    {
        $target = $this->head->target;
        $peer = $this->exchange->peer();
        try {
            if ($target[0] === '/' || $target === '*') {
                $host = $this->head->host === '' ? $peer->authority() : $this->head->host;

                return new Uri(($peer->secure ? 'https' : 'http') . "://{$host}" . ($target === '*' ? '' : $target));
            }
            $uri = new Uri($target);
        } catch (\InvalidArgumentException $malformed) {
            throw new HttpException(400, 'The target or the Host field is not valid in a URI', previous: $malformed);
        }
        if ($uri->getScheme() === 'https' && !$peer->secure && !$this->exchange->trustsPeer()) {
            throw new HttpException(
                421,
                'The request target begins with https://, but the connection is not encrypted',
            );
        }

        return $uri;
    }
}
