<?php

declare(strict_types=1);

namespace Spindle\Tests\Integration\Http\Server;

use Nyholm\Psr7\Stream;
use Psr\Http\Message\MessageInterface;
use Psr\Http\Message\ResponseInterface;
use Psr\Http\Message\StreamInterface;

/** A response of a library without checks. One header has a line break. */
final class Hostile implements ResponseInterface
{
    public function getStatusCode(): int
    {
        return 200;
    }

    public function getReasonPhrase(): string
    {
        return 'OK';
    }

    /** @return array<string, list<string>> */
    public function getHeaders(): array
    {
        return ['X' => ["a\r\nInjected: yes"]];
    }

    public function hasHeader(string $name): bool
    {
        return $name === 'X';
    }

    /** @return list<string> */
    public function getHeader(string $name): array
    {
        return $this->getHeaders()[$name] ?? [];
    }

    public function getHeaderLine(string $name): string
    {
        return implode(', ', $this->getHeader($name));
    }

    public function getBody(): StreamInterface
    {
        return Stream::create('body');
    }

    public function getProtocolVersion(): string
    {
        return '1.1';
    }

    public function withStatus(int $code, string $reasonPhrase = ''): ResponseInterface
    {
        return $this;
    }

    public function withProtocolVersion(string $version): MessageInterface
    {
        return $this;
    }

    public function withHeader(string $name, $value): MessageInterface
    {
        return $this;
    }

    public function withAddedHeader(string $name, $value): MessageInterface
    {
        return $this;
    }

    public function withoutHeader(string $name): MessageInterface
    {
        return $this;
    }

    public function withBody(StreamInterface $body): MessageInterface
    {
        return $this;
    }
}
