<?php

declare(strict_types=1);

namespace Spindle\Tests\Remote\Simulation;

/** The process of an agent is no more: whatever it does next is the last. */
final class KilledException extends \LogicException {}
