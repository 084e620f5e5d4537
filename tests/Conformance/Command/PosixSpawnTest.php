<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Command;

use Spindle\Command\Command;

final class PosixSpawnTest extends CommandPoolTestCase
{
    use Contract\DependsOnTheLauncher;
    use SharesAPool;
    use WithPosixSpawn;

    public function testACommandHasAProcessGroupOfItsOwn(): void
    {
        $stat = explode(' ', $this->execute(Command::of('cat', '/proc/self/stat'))->stdout());

        self::assertSame($stat[0], $stat[4]);
    }
}
