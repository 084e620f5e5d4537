<?php

declare(strict_types=1);

namespace Spindle\Tests\Remote\Simulation;

/** What comes of a run. */
enum Fate
{
    case Returns;
    case Throws;
    case Crashes;
}
