<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Process;

use Spindle\SpindleException;

/** A process can't be started because the machine lacks resources. */
final class ForkException extends \RuntimeException implements SpindleException
{
    public static function because(string $reason): self
    {
        return new self("no process can be forked: {$reason}");
    }
}
