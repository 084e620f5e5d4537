<?php

declare(strict_types=1);

namespace Spindle\Worker\Internal;

/** An argument or task as bytes. Later changes to the original objects do not reach the task. */
class EncodedValue
{
    /** @param int $kind {@see WorkerProtocol::SERIALIZED} or {@see WorkerProtocol::STRING} */
    public function __construct(public readonly string $bytes, public readonly int $kind) {}
}
