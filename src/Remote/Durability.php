<?php

declare(strict_types=1);

namespace Spindle\Remote;

/** How durable a confirmed job is, if the engine's machine fails directly after the confirmation. */
enum Durability: string
{
    /** The job is on the disk, so it is not lost. */
    case Durable = 'durable';

    /** The job may be lost, because it is written to the disk about a second later. */
    case Fast = 'fast';
}
