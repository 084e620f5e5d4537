<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Worker\Task;

/** A date with a property, which PHP serializes as well. */
final class AnnotatedDate extends \DateTimeImmutable
{
    public mixed $note = null;

    public static function with(mixed $note): self
    {
        $date = new self('2026-01-02 03:04:05.678 UTC');
        $date->note = $note;

        return $date;
    }
}
