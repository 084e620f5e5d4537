<?php

declare(strict_types=1);

namespace Spindle\Worker\Internal;

/** A value that was made bytes when it was handed over: what its owner changes later does not reach the task. */
class Encoded
{
    /** @param int $kind {@see Protocol::SERIALIZED} or {@see Protocol::STRING} */
    public function __construct(public readonly string $bytes, public readonly int $kind) {}
}
