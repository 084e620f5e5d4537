<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Command;

use Spindle\Command\Command;

final class PosixSpawnTest extends LauncherDependentContract
{
    use WithPosixSpawn;

    public function testACommandHasAProcessGroupOfItsOwn(): void
    {
        $stat = explode(' ', $this->execute(Command::of('cat', '/proc/self/stat'))->stdout());

        self::assertSame($stat[0], $stat[4]);
    }

    /** Only with FFI: PHP's proc_open uses execvp(3), which runs such a file with the shell. */
    public function testAFileThatIsNeitherAProgramNorAScriptNeverMeetsAShell(): void
    {
        $result = $this->execute(Command::of($this->file('binary', "\x7fELF\0\0\necho a shell has read this", 0o755)));

        self::assertSame(126, $result->exitCode);
        self::assertSame('', $result->stdout());
    }
}
