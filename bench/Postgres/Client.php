<?php

declare(strict_types=1);

namespace Spindle\Bench\Postgres;

/** A way to send many small statements over one connection or several. */
interface Client
{
    /**
     * Runs the load a number of times, each time for a random row ({@see Tables::anyItem()}).
     *
     * @return int number of runs in which each statement had the right result
     */
    public function run(Load $load, int $count): int;

    public function close(): void;
}
