<?php

declare(strict_types=1);

namespace Spindle\Tests\Cli;

use PHPUnit\Framework\TestCase;

/** Base class of the tests of the command `spindle`. */
abstract class SpindleCommandTestCase extends TestCase
{
    use RunsSpindle;
}
