<?php

declare(strict_types=1);

namespace Spindle\Bench\Postgres;

/** A way of sending many small statements, over one connection or several. */
interface Client
{
    /**
     * Does it so often, each time for a row by chance ({@see Tables::anyItem()}).
     *
     * @return int how often each statement gave what it has to
     */
    public function run(Load $load, int $count): int;

    public function close(): void;
}
