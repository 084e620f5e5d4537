<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Process;

use Spindle\SpindleException;

/** Thrown when a process can't be forked, because the machine lacks resources. */
final class ForkException extends \RuntimeException implements SpindleException
{
    public static function because(string $reason): self
    {
        return new self("no process can be forked: {$reason}");
    }
}
