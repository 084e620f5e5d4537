<?php

declare(strict_types=1);

namespace Spindle\Http\Internal;

/** A request body with a maximum size. Reading a larger body fails. */
interface BodyLimited
{
    public function limit(int $bytes): void;
}
