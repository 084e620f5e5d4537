<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Server;

use Spindle\Http\BackgroundWork;

/** The functions of {@see BackgroundWork} of one event loop. A fork of the process counts its own functions. */
final class LoopWork
{
    public int $running = 0;

    /** Number of functions that have begun, but not returned. {@see $running} also counts those that wait to begin. */
    public int $begun = 0;

    /** @var array<int, \Closure(): void> called when no function is running any more, by id of the waiting object */
    public array $waiting = [];

    public function __construct(public readonly int $pid) {}
}
