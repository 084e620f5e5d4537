<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Http\Vectors;

use Spindle\Http\Internal\Message\MessageLimits;

/** Bytes that a client may send on one connection, and the expected result. */
final readonly class Vector
{
    /** @param list<string> $verdict in the format of {@see Reading::verdict()} */
    private function __construct(
        public string $bytes,
        public array $verdict,
        public ?MessageLimits $limits = null,
    ) {}

    public static function accepted(string $bytes, string ...$requests): self
    {
        return new self($bytes, array_values($requests));
    }

    /** @param string ...$before requests that are accepted */
    public static function refused(int $status, string $bytes, string ...$before): self
    {
        return new self($bytes, [...array_values($before), "refused {$status}"]);
    }

    /** @param string ...$before requests that are accepted */
    public static function incomplete(string $bytes, string ...$before): self
    {
        return new self($bytes, [...array_values($before), 'incomplete']);
    }

    public function within(MessageLimits $limits): self
    {
        return new self($this->bytes, $this->verdict, $limits);
    }

    public function isRefused(): bool
    {
        return str_starts_with($this->verdict[\count($this->verdict) - 1] ?? '', 'refused');
    }
}
