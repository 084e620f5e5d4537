<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Command;

use PHPUnit\Framework\Attributes\Group;

/** The pool is the same with each launcher, so UsualPoolTest covers it without --full. */
#[Group('full')]
final class ProcOpenPoolTest extends LauncherIndependentContract
{
    use WithProcOpen;
}
