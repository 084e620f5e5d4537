<?php

declare(strict_types=1);

namespace Spindle\Http\Internal;

/** A request body with a maximum size, beyond which reading fails. */
interface BodyLimited
{
    /** @param int $bytes replaces the current limit */
    public function limit(int $bytes): void;
}
