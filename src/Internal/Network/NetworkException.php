<?php

declare(strict_types=1);

namespace Spindle\Internal\Network;

use Spindle\Internal\Async\FiberTrace;

/** Thrown when connecting or a later operation fails. The message is a clause that callers put after the address. */
class NetworkException extends \RuntimeException
{
    public function __construct(string $why, int $code = 0, ?\Throwable $previous = null)
    {
        parent::__construct($why, $code, $previous);
        FiberTrace::shorten($this);
    }

    public static function because(string $why, ?\Throwable $previous = null): self
    {
        return new self($why, 0, $previous);
    }
}
