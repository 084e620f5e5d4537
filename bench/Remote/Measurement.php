<?php

declare(strict_types=1);

namespace Spindle\Bench\Remote;

/** Measurements of tasks on other machines. */
enum Measurement: string
{
    case Bulk = 'bulk';
    case Single = 'single';
    case Recovery = 'recovery';
    case Backlog = 'backlog';
}
