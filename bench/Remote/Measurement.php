<?php

declare(strict_types=1);

namespace Spindle\Bench\Remote;

/** What there is to measure. */
enum Measurement: string
{
    case Bulk = 'bulk';
    case Single = 'single';
    case Recovery = 'recovery';
    case Backlog = 'backlog';
}
