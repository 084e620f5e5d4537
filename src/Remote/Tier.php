<?php

declare(strict_types=1);

namespace Spindle\Remote;

/** How safe a job is that the engine has confirmed, when the engine's machine dies the moment after. */
enum Tier: string
{
    /** It is on the disk. */
    case Durable = 'durable';

    /** It is on the disk within a second. */
    case Fast = 'fast';
}
