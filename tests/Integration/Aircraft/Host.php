<?php

declare(strict_types=1);

namespace Spindle\Tests\Integration\Aircraft;

/** A server that runs the application for all tests of a class. */
interface Host
{
    /** Seconds that each request waits while there is no database. */
    public const WAIT = 1;

    /** Returns the address in the form that {@see \Spindle\Tests\Http\RawClient} expects. */
    public function address(): string;

    public function stop(): void;
}
