<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Worker\Task;

/** A nested object with its own serialization. */
final class HiddenDeep extends Deep
{
    /** @return list<string> */
    public function __sleep(): array
    {
        return ['next'];
    }
}
