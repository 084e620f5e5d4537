<?php

declare(strict_types=1);

namespace Spindle\Tests\Remote\Simulation;

/** Thrown in a simulated agent whose process was killed. */
final class KilledException extends \LogicException {}
