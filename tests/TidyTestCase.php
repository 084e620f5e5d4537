<?php

declare(strict_types=1);

namespace Spindle\Tests;

use PHPUnit\Framework\TestCase;

/** Fails a test that exceeds its deadline or leaves processes, files or other resources behind. */
abstract class TidyTestCase extends TestCase
{
    use EndsInTime;
    use LeavesNothing;
}
