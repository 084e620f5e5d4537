<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Server;

use Psr\Http\Message\StreamInterface;
use Spindle\Http\HttpException;
use Spindle\Http\Internal\BodyLimited;
use Spindle\Http\Internal\Message\Fields;
use Spindle\Http\Internal\Message\ForwardOnly;

/** The body of a request as it comes: what nobody reads stays with the client. */
final class BodyStream implements StreamInterface, BodyLimited
{
    use ForwardOnly;

    private string $rest = '';
    private int $received = 0;
    private bool $ended = false;
    private ?int $limit = null;

    public function __construct(
        private readonly Connection $connection,
        private readonly ServerExchange $exchange,
    ) {}

    public function limit(int $bytes): void
    {
        $this->limit = $bytes;
    }

    public function getSize(): ?int
    {
        return $this->exchange->head->length;
    }

    public function getContents(): string
    {
        $contents = $this->read(\PHP_INT_MAX);
        while (!$this->eof()) {
            $contents .= $this->read(\PHP_INT_MAX);
        }

        return $contents;
    }

    public function read(int $length): string
    {
        if ($this->rest === '' && !$this->ended) {
            $this->receive();
        }
        $bytes = substr($this->rest, 0, $length);
        $this->rest = \strlen($this->rest) <= $length ? '' : substr($this->rest, $length);

        return $bytes;
    }

    public function eof(): bool
    {
        return $this->rest === '' && ($this->ended || $this->received === $this->exchange->head->length);
    }

    public function tell(): int
    {
        return $this->received - \strlen($this->rest);
    }

    public function close(): void
    {
        [$this->rest, $this->ended] = ['', true];
    }

    /** "trailers" are the fields after the last chunk, once the body was read to its end: values by name. */
    public function getMetadata(?string $key = null): mixed
    {
        $metadata = ['trailers' => []];
        foreach (Fields::parse($this->ended ? $this->connection->trailers($this->exchange) : '') as [$name, $values]) {
            $metadata['trailers'][$name] = $values;
        }

        return $key === null ? $metadata : $metadata[$key] ?? null;
    }

    /** @throws HttpException when it is too much */
    private function receive(): void
    {
        $limit = $this->limit ?? $this->connection->maxBody();
        if (($this->exchange->head->length ?? 0) > $limit) {
            throw self::tooLarge($limit);
        }
        $this->rest = $this->connection->receiveBody($this->exchange);
        $this->received += \strlen($this->rest);
        $this->ended = $this->rest === '';
        if ($this->received > $limit) {
            $this->close();
            throw self::tooLarge($limit);
        }
    }

    private static function tooLarge(int $limit): HttpException
    {
        return new HttpException(413, "The body is larger than {$limit} bytes");
    }
}
