<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Worker;

/** What a worker is doing with a task. */
enum Moment: string
{
    case Unserializing = 'unserializing the task';
    case Running = 'running it';
    case Serializing = 'serializing its result';
}
