<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Client;

use Nyholm\Psr7\Request as PsrRequest;
use Psr\Http\Message\RequestInterface;
use Psr\Http\Message\StreamInterface;
use Spindle\Http\Client\RequestBody;
use Spindle\Http\Client\RequestRetryPolicy;
use Spindle\Http\Internal\Message\Fields;
use Spindle\Http\Internal\Message\HeadReader;
use Spindle\Http\Internal\Message\IterableStream;
use Spindle\Http\Internal\Message\SingleReader;
use Spindle\Http\Internal\Message\StreamSize;

/** @phpstan-import-type FieldMap from Fields */
final readonly class OutgoingRequest
{
    private const METHOD_PATTERN = '@^' . HeadReader::TOKEN . '$@D';

    /** @param FieldMap $fields valid fields */
    public function __construct(
        public string $method,
        public Url $url,
        public array $fields,
        public string|StreamInterface $body,
        public Call $call,
    ) {}

    /**
     * @param FieldMap $fields valid fields
     *
     * @throws \InvalidArgumentException when the method or the URL is invalid, or there are several Host headers
     */
    public static function of(
        string $method,
        #[\SensitiveParameter]
        string $url,
        #[\SensitiveParameter]
        array $fields,
        #[\SensitiveParameter]
        string|StreamInterface|RequestBody $body,
        Call $call,
    ): self {
        if (preg_match(self::METHOD_PATTERN, $method) !== 1 || $method === 'CONNECT') {
            $shown = json_encode(substr($method, 0, 40), \JSON_INVALID_UTF8_SUBSTITUTE);

            throw new \InvalidArgumentException("A request can not have the method {$shown}");
        }
        if ($body instanceof RequestBody) {
            $fields += Fields::of(['Content-Type' => $body->type]);
            $body = $body->content;
        }
        if (\count($fields['host'][1] ?? []) > 1) {
            throw new \InvalidArgumentException('A request can not have several Host headers');
        }
        $parsed = Url::of($url);
        $authorization = $parsed->authorization();
        if ($authorization !== null) {
            $fields += ['authorization' => ['Authorization', [$authorization]]];
        }

        return new self($method, $parsed, $fields, $body, $call);
    }

    /** @param FieldMap $fields valid fields */
    public function withFields(#[\SensitiveParameter] array $fields): self
    {
        return new self($this->method, $this->url, $fields, $this->body, $this->call);
    }

    /**
     * Returns whether the request can be sent a second time: its method is idempotent, and its body can be read a
     * second time. Rewinds the body.
     *
     * @throws UnreadableBodyException
     */
    public function isRepeatable(): bool
    {
        return \in_array($this->method, RequestRetryPolicy::METHODS, true) && $this->rewindBody();
    }

    /**
     * Returns the request that follows a redirect; null if the body can't be read a second time. Rewinds the body.
     *
     * @throws UnreadableBodyException
     */
    public function redirected(Redirect $redirect): ?self
    {
        $fields = $redirect->url->origin() === $this->url->origin()
            ? $this->fields
            : array_diff_key($this->fields, Redirect::CREDENTIALS, ['host' => 0]);
        if ($redirect->dropsBody) {
            $fields = array_diff_key($fields, Redirect::BODY_FIELDS);

            return new self($redirect->method, $redirect->url, $fields, '', $this->call);
        }

        return $this->rewindBody() ? new self($this->method, $redirect->url, $fields, $this->body, $this->call) : null;
    }

    /**
     * Returns the request with a single Cookie field: RFC 6265, 5.4. This field has all cookies of the request, and
     * those cookies of the jar whose names the request does not use.
     *
     * @param string $ofJar cookies of the jar, as the value of a Cookie field; '' for none
     */
    public function withCookies(#[\SensitiveParameter] string $ofJar): self
    {
        if ($ofJar === '' && !isset($this->fields['cookie'])) {
            return $this;
        }
        $cookies = array_map(static fn(string $line): string => trim($line, "; \t"), $this->fields['cookie'][1] ?? []);
        $cookies = array_values(array_diff($cookies, ['']));
        preg_match_all('/(?:^|;)[ \t]*+([^=;]++)=/', implode(';', $cookies), $own);
        foreach ($ofJar === '' ? [] : explode('; ', $ofJar) as $cookie) {
            if (!\in_array(strstr($cookie, '=', true), $own[1], true)) {
                $cookies[] = $cookie;
            }
        }
        $field = $cookies === [] ? [] : ['cookie' => ['Cookie', [implode('; ', $cookies)]]];

        return new self($this->method, $this->url, array_replace($this->fields, $field), $this->body, $this->call);
    }

    /** Returns the metadata of the response's body: the URL as `uri`, without user, password and fragment. */
    public function metadata(?string $key): mixed
    {
        $metadata = ['uri' => (string) $this->url];

        return $key === null ? $metadata : $metadata[$key] ?? null;
    }

    public function toPsr(): RequestInterface
    {
        $headers = [];
        foreach ($this->fields as [$name, $values]) {
            $headers[$name] = $values;
        }

        return new PsrRequest($this->method, (string) $this->url, $headers, $this->body);
    }

    /** @return array<string, mixed> without field values and the body, which may be secret */
    public function __debugInfo(): array
    {
        return [
            'method' => $this->method,
            'url' => $this->url->withoutSecrets(),
            'fields' => array_column($this->fields, 0),
        ];
    }

    /**
     * Rewinds a body that an earlier request or a logger has read.
     *
     * @throws UnreadableBodyException also if the body was closed, or was already sent and can't be rewound
     */
    public function beginBody(): void
    {
        $body = $this->body;
        if (!\is_string($body)) {
            UnreadableBodyException::guard(static function () use ($body): void {
                if ($body instanceof IterableStream && ($body->tell() > 0 || $body->eof())) {
                    throw new \LogicException('it was already sent; create a new body for each request');
                }
                if (!$body->isReadable()) { // a closed stream would look like an empty body
                    throw new \LogicException('it was closed, or is not readable');
                }
                if (!$body->isSeekable() && $body->eof() && StreamSize::hasMoved($body)) {
                    throw new \LogicException('it was already read to its end; create a new body for each request');
                }
            });
        }
        $this->rewindBody();
    }

    /**
     * Returns whether the body can be sent in a further attempt: no attempt has read it, or it can be read a second
     * time. Rewinds the body.
     */
    public function canResendBody(): bool
    {
        $body = $this->body;
        try {
            return $this->rewindBody() || !\is_string($body) && UnreadableBodyException::guard(
                static fn(): bool => !SingleReader::isClaimed($body) && StreamSize::left($body, 1) === 1,
            );
        } catch (UnreadableBodyException) {
            return false;
        }
    }

    private function rewindBody(): bool
    {
        $body = $this->body;
        if (\is_string($body)) {
            return true;
        }

        return UnreadableBodyException::guard(static function () use ($body): bool {
            if (SingleReader::isClaimed($body)) {
                return false; // a request has sent a part of it, or still sends it
            }
            if (!$body->isSeekable()) {
                return $body->getSize() === 0 && !StreamSize::hasMoved($body); // even a pipe that was read has size 0
            }
            $body->tell() > 0 ? $body->rewind() : null;

            return true;
        });
    }
}
