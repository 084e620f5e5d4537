<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Remote;

use Psr\Log\AbstractLogger;

/** A log whose entries can't be written. */
final class ThrowingLog extends AbstractLogger
{
    /** @param array<mixed> $context */
    public function log(mixed $level, string|\Stringable $message, array $context = []): never
    {
        throw new \RuntimeException('The disk is full');
    }
}
