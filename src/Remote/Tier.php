<?php

declare(strict_types=1);

namespace Spindle\Remote;

/** The durability of a confirmed job if the engine's machine fails directly afterwards. */
enum Tier: string
{
    /** The job is on the disk. */
    case Durable = 'durable';

    /** The job is on the disk within about a second. */
    case Fast = 'fast';
}
