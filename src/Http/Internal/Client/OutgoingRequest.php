<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Client;

use Nyholm\Psr7\Request as PsrRequest;
use Psr\Http\Message\RequestInterface;
use Psr\Http\Message\StreamInterface;
use Spindle\Http\Internal\Message\Fields;

/**
 * A request that a client sends.
 *
 * @phpstan-import-type FieldMap from Fields
 */
final readonly class OutgoingRequest
{
    /** Methods that can be repeated if the connection ended before an answer: RFC 9110, 9.2.2. */
    private const IDEMPOTENT_METHODS = [
        'GET' => true, 'HEAD' => true, 'OPTIONS' => true, 'TRACE' => true, 'PUT' => true, 'DELETE' => true,
    ];

    /** Fields with credentials for one origin. */
    private const CREDENTIALS = ['authorization' => 0, 'cookie' => 0, 'proxy-authorization' => 0];

    /** Fields that describe a body. */
    private const BODY_FIELDS = [
        'content-length' => 0, 'content-type' => 0, 'content-encoding' => 0, 'transfer-encoding' => 0, 'expect' => 0,
    ];

    /** @param FieldMap $fields valid fields */
    public function __construct(
        public string $method,
        public Url $url,
        public array $fields,
        public string|StreamInterface $body,
    ) {}

    /** Returns whether the request can be sent again: repeating it is safe, and its body can be read again. */
    public function isRepeatable(): bool
    {
        return isset(self::IDEMPOTENT_METHODS[$this->method]) && $this->rewindBody();
    }

    /** Returns the request that follows a redirect; null when the body can't be sent again. RFC 9110, 15.4. */
    public function redirected(int $status, Url $url): ?self
    {
        $fields = $url->origin() === $this->url->origin()
            ? $this->fields
            : array_diff_key($this->fields, self::CREDENTIALS);
        unset($fields['host']);
        $becomesGet = $status === 303 && $this->method !== 'HEAD' || $status < 303 && $this->method === 'POST';
        if ($becomesGet) {
            return new self('GET', $url, array_diff_key($fields, self::BODY_FIELDS), '');
        }

        return $this->rewindBody() ? new self($this->method, $url, $fields, $this->body) : null;
    }

    public function toPsr(): RequestInterface
    {
        $headers = [];
        foreach ($this->fields as [$name, $values]) {
            $headers[$name] = $values;
        }

        return new PsrRequest($this->method, (string) $this->url, $headers, $this->body);
    }

    /** @return array<string, mixed> without values of fields and the body, which may be secret */
    public function __debugInfo(): array
    {
        return [
            'method' => $this->method,
            'url' => $this->url->withoutSecrets(),
            'fields' => array_column($this->fields, 0),
        ];
    }

    private function rewindBody(): bool
    {
        if (\is_string($this->body)) {
            return true;
        }
        if (!$this->body->isSeekable()) {
            return $this->body->getSize() === 0;
        }
        $this->body->rewind();

        return true;
    }
}
