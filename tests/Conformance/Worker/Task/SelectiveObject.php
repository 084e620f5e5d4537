<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Worker\Task;

/** An object whose __serialize() returns only some of its properties. */
final class SelectiveObject
{
    public function __construct(public mixed $sent = null, public mixed $omitted = null) {}

    /** @return array<string, mixed> */
    public function __serialize(): array
    {
        return ['sent' => $this->sent];
    }

    /** @param array<string, mixed> $data */
    public function __unserialize(array $data): void
    {
        $this->sent = $data['sent'];
        $this->omitted = null;
    }
}
