<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Remote;

/** A class with a harmful effect when it is unserialized. */
final class UnserializableEffect
{
    public function __construct(public string $file) {}

    public function __wakeup(): void
    {
        touch($this->file);
    }
}
