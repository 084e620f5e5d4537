<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Command;

use PHPUnit\Framework\Attributes\Group;

/** The pool behaves the same with every launcher: without --full, UsualPoolTest shows it for the usual one. */
#[Group('full')]
final class BareProcOpenPoolTest extends CommandPoolTestCase
{
    use Contract\DependsOnThePool;
    use WithBareProcOpen;
}
