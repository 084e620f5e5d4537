<?php

declare(strict_types=1);

namespace Spindle\Tests\Remote\Simulation;

/** The ways in which a run ends. */
enum Fate
{
    case Returns;
    case Throws;
    case Crashes;
}
