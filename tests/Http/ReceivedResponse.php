<?php

declare(strict_types=1);

namespace Spindle\Tests\Http;

/** A response as received by a client. */
final readonly class ReceivedResponse
{
    /**
     * @param string                      $head     as received, without the empty line
     * @param array<string, list<string>> $headers  by name in lower case
     * @param array<string, list<string>> $trailers by name in lower case
     * @param int                         $chunks   number of chunks in the body; 0 when it was not chunked
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

    /** Returns the value of a field that occurs once; null when it is missing. */
    public function header(string $name): ?string
    {
        $values = $this->headers[$name] ?? [null];

        return \count($values) === 1
            ? $values[0]
            : throw new \UnexpectedValueException(
                "The field {$name} came " . \count($values) . " times: {$this->head}",
            );
    }

    /** Returns whether the server keeps the connection after this response. */
    public function keepsConnection(): bool
    {
        return $this->header('connection') !== 'close';
    }

    public function json(): mixed
    {
        return json_decode($this->body, true, flags: \JSON_THROW_ON_ERROR);
    }
}
