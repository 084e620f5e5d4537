<?php

declare(strict_types=1);

namespace Spindle\Tests\Integration\Aircraft;

/** Serves the application, to all tests of a class. */
interface Host
{
    /** Seconds for which each request waits while there is no database. */
    public const WAIT = 1;

    /** As {@see \Spindle\Tests\Http\RawClient} takes it. */
    public function address(): string;

    public function stop(): void;
}
