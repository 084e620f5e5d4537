<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Server;

interface TransportEvents
{
    /** Called when bytes can be received, or when the other side has ended or reset the connection. */
    public function readable(): void;

    /** Called when all unsent bytes were sent, or can't be sent any more. */
    public function written(): void;
}
