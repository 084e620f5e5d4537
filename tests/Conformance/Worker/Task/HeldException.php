<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Worker\Task;

/** An exception that holds a value. */
final class HeldException extends \DomainException
{
    public function __construct(string $message, public readonly mixed $held)
    {
        parent::__construct($message);
    }
}
