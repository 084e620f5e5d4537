<?php

declare(strict_types=1);

namespace Spindle\Tests\Integration\Aircraft;

/** Serves the application, to all tests of a class. */
interface Host
{
    /** As {@see \Spindle\Tests\Http\RawClient} takes it. */
    public function address(): string;

    public function stop(): void;
}
