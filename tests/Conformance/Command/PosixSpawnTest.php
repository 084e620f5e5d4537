<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Command;

use Spindle\Command\Command;
use Spindle\Command\StartMethod;
use Spindle\Tests\LauncherPhp;

final class PosixSpawnTest extends CommandPoolContract
{
    protected function setUp(): void
    {
        if (!LauncherPhp::hasFfi()) {
            self::markTestSkipped("The launcher can't load FFI here");
        }
    }

    public function testACommandHasAProcessGroupOfItsOwn(): void
    {
        $stat = explode(' ', $this->execute(Command::of('cat', '/proc/self/stat'))->stdout());

        self::assertSame($stat[0], $stat[4]);
    }

    protected function start(): StartMethod
    {
        return StartMethod::PosixSpawn;
    }

    /** Without FFI it does: PHP's proc_open leaves the file to execvp(3), and that to the shell. */
    public function testAFileThatIsNeitherAProgramNorAScriptNeverMeetsAShell(): void
    {
        $result = $this->execute(Command::of($this->file('binary', "\x7fELF\0\0\necho a shell has read this", 0o755)));

        self::assertSame(126, $result->exitCode);
        self::assertSame('', $result->stdout());
    }
}
