<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Worker;

/** Phases of a task in a worker. */
enum TaskPhase: string
{
    case Unserializing = 'unserializing the task';
    case Running = 'running it';
    case Serializing = 'serializing its result';
}
