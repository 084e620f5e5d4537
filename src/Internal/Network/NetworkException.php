<?php

declare(strict_types=1);

namespace Spindle\Internal\Network;

use Spindle\Internal\Async\FiberTrace;

/** Connecting to an address, or an operation on a connection, failed. The message is a clause. */
class NetworkException extends \RuntimeException
{
    public function __construct(string $why, int $code = 0, ?\Throwable $previous = null)
    {
        parent::__construct($why, $code, $previous);
        FiberTrace::shorten($this);
    }

    /** @param string $why reason, as a clause that is shown after the address */
    public static function because(string $why, ?\Throwable $previous = null): self
    {
        return new self($why, 0, $previous);
    }
}
