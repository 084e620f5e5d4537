<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Worker\Task;

/** An exception that cannot be serialized. */
final class HoldingException extends \DomainException
{
    public \Closure $held;

    public function __construct(string $message, int $code = 0, ?\Throwable $previous = null)
    {
        parent::__construct($message, $code, $previous);
        $this->held = static fn(): int => 1;
    }
}
