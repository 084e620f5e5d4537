<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Worker\Task;

/** Its constructor is not that of exceptions, and its code is no number, as that of \PDOException. */
final class FieldException extends \RuntimeException
{
    public function __construct(public readonly string $field, Suit $suit)
    {
        parent::__construct("{$field} must not be {$suit->label()}");
        $this->code = 'HY000';
    }
}
