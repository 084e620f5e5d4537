<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Worker\Task;

/** Serializes its objects itself. */
final class HiddenDeep extends Deep
{
    /** @return list<string> */
    public function __sleep(): array
    {
        return ['next'];
    }
}
