<?php

declare(strict_types=1);

namespace Spindle\Remote;

/** Whether a confirmed job can be lost if the engine's machine fails directly after the confirmation. */
enum Durability: string
{
    /** The job is on the disk, so it is not lost. */
    case Durable = 'durable';

    /** The job can be lost, because it is written to the disk only about a second later. */
    case Fast = 'fast';
}
