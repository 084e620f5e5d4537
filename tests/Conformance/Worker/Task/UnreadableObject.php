<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Worker\Task;

/** An object that refuses to be serialized, or to be unserialized. */
final class UnreadableObject
{
    public function __construct(private readonly bool $leaves) {}

    /** @return array<string, bool> */
    public function __serialize(): array
    {
        return $this->leaves ? ['leaves' => true] : throw new \DomainException('I stay');
    }

    /** @param array<string, bool> $data */
    public function __unserialize(array $data): void
    {
        throw new \DomainException('I am not welcome');
    }
}
