<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Worker\Task;

/** An exception with a constructor of its own, and with a text as its code, like \PDOException. */
final class FieldException extends \RuntimeException
{
    public function __construct(public readonly string $field, Suit $suit)
    {
        parent::__construct("{$field} must not be {$suit->label()}");
        $this->code = 'HY000';
    }
}
