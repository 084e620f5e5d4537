<?php

declare(strict_types=1);

namespace Spindle\Tests\Http;

/** An answer as a client got it. */
final readonly class ReceivedResponse
{
    /**
     * @param string                      $head     as it came, without the empty line
     * @param array<string, list<string>> $headers  by name in lower case
     * @param array<string, list<string>> $trailers by name in lower case
     * @param int                         $chunks   in which the body came; 0 when it was not chunked
     */
    public function __construct(
        public string $head,
        public int $status,
        public string $reason,
        public array $headers,
        public string $body,
        public array $trailers,
        public int $chunks,
    ) {}

    /** The value of a field that there is once; null for none. */
    public function header(string $name): ?string
    {
        $values = $this->headers[$name] ?? [null];

        return \count($values) === 1 ? $values[0] : throw new \UnexpectedValueException("The field {$name} came " . \count($values) . " times: {$this->head}");
    }

    /** Whether the server keeps the connection after it. */
    public function keepsConnection(): bool
    {
        return $this->header('connection') !== 'close';
    }

    public function json(): mixed
    {
        return json_decode($this->body, true, flags: \JSON_THROW_ON_ERROR);
    }
}
