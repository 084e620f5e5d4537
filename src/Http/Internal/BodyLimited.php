<?php

declare(strict_types=1);

namespace Spindle\Http\Internal;

/** A request's body that is refused once it is larger than a limit. */
interface BodyLimited
{
    /** @param int $bytes instead of the limit so far */
    public function limit(int $bytes): void;
}
