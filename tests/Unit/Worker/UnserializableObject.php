<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Worker;

/** An object that refuses to be serialized. */
final class UnserializableObject
{
    public mixed $held = null;

    /** @return array<string, mixed> */
    public function __serialize(): array
    {
        throw new \DomainException('I stay');
    }
}
