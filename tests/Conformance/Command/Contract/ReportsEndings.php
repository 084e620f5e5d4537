<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Command\Contract;

use Spindle\Command\Command;
use Spindle\Command\StartMethod;
use Spindle\Tests\Conformance\Command\CommandPoolTestCase;

/**
 * Reports about how a command ended, or why it could not start.
 *
 * @phpstan-require-extends CommandPoolTestCase
 */
trait ReportsEndings
{
    public function testEveryExitCodeIsReported(): void
    {
        $commands = [];
        for ($code = 0; $code < 256; ++$code) {
            $commands[$code] = Command::shell("exit {$code}");
        }
        $codes = [];
        foreach ($this->pool(4)->run($commands) as $code => $result) {
            self::assertNull($result->signal);
            self::assertNull($result->error);
            self::assertSame($code === 0, $result->succeeded());
            $codes[$code] = $result->exitCode;
        }
        ksort($codes);

        self::assertSame(range(0, 255), $codes);
    }

    public function testDeathBySignalIsReported(): void
    {
        $signals = [1, 2, 3, 6, 8, 9, 11, 14, 15, 34, 64];
        $commands = array_map(
            static fn(int $signal): Command => Command::shell("kill -{$signal} \$\$"),
            array_combine($signals, $signals),
        );
        foreach ($this->pool(4)->run($commands) as $signal => $result) {
            self::assertSame([null, $signal], [$result->exitCode, $result->signal]);
            self::assertFalse($result->succeeded());
            self::assertStringContainsString("killed by signal {$signal}", $result->describe());
        }
    }

    public function testAResultSaysWhenItsCommandRanAndHowLong(): void
    {
        $before = microtime(true);
        $result = $this->execute(Command::of('sleep', '0.2'));

        self::assertGreaterThanOrEqual($before, $result->startedAt);
        self::assertLessThanOrEqual(microtime(true), $result->startedAt + $result->duration);
        self::assertGreaterThanOrEqual(0.2, $result->duration);
        self::assertLessThan(1.5, $result->duration);
        self::assertSame(1, $result->attempts);
    }

    public function testAMissingProgramIsAResultWithTheShellsExitCode(): void
    {
        foreach ([
            'no-such-program-anywhere',
            '/no/such/program',
            'no-such-scheme://program',
            'phar://program',
        ] as $program) {
            $result = $this->execute(Command::of($program, 'argument'));

            self::assertSame(127, $result->exitCode);
            self::assertFalse($result->succeeded());
            self::assertStringContainsString($program, (string) $result->error);
            self::assertMatchesRegularExpression('/could not be started.*No such/', $result->describe());
        }
    }

    public function testALineInPlaceOfAProgramIsReportedWithWhatToDo(): void
    {
        $advice = 'This looks like a command line: separate the arguments from the program, or run the line in a shell';

        self::assertStringEndsWith($advice, (string) $this->execute(Command::of('echo hi'))->error);
        self::assertStringNotContainsString($advice, (string) $this->execute(Command::of('no-such-program'))->error);
    }

    public function testAFileThatIsNoProgramGivesTheExitCodeOfAShell(): void
    {
        foreach (['a directory' => '/tmp', 'not executable' => $this->file('data', 'x')] as $what => $program) {
            $result = $this->execute(Command::of($program));

            self::assertSame(126, $result->exitCode, $what);
            self::assertStringContainsString('Permission denied', (string) $result->error);
        }
    }

    public function testAScriptWithoutAnInterpreterLineIsRunByTheShellAndItsArgumentsAreNot(): void
    {
        $arguments = ['$(touch hit)', '`x` ;"', '', "a\nb", '-c'];
        $path = $this->file('script', 'printf "%s|" "$@"', 0o755);
        $commands = [
            Command::of($path, ...$arguments),
            Command::of('script', ...$arguments)->withEnvironment(['PATH' => $this->path()]),
            Command::of('./script', ...$arguments)->withWorkingDirectory($this->path()),
            Command::of(
                './-script',
                ...$arguments,
            )->withWorkingDirectory(\dirname($this->file('-script', 'printf "%s|" "$@"', 0o755))),
        ];
        foreach ($commands as $command) {
            $result = $this->execute($command);

            self::assertSame(implode('|', $arguments) . '|', $result->stdout(), $result->describe());
            self::assertSame(0, $result->exitCode);
        }
        self::assertFileDoesNotExist($this->path('hit'));
    }

    public function testAFileThatCannotBeExecutedIsReportedWithTheReason(): void
    {
        $file = $this->file('data', 'x');
        mkdir($this->path('folder'));
        $this->file('unknown', "#!/no/such/interpreter -x\n", 0o755);
        $this->file('windows', "#!/bin/sh\r\necho hi\r\n", 0o755);
        $this->file('nested', "#!{$file}\n", 0o755);
        $interpreter = "the script's first line names";
        foreach ([
            './missing' => [127, 'No such file or directory. The path is relative to the working directory '
                . "'{$this->path()}'"],
            $this->path('missing') => [127, 'No such file or directory'],
            './data/missing' => [126, 'Not a directory: ./data'],
            './folder' => [126, 'Permission denied: the path is a directory, not a program'],
            './data' => [126, 'Permission denied: the file is not executable for this user'],
            './unknown' => [127, "No such interpreter: {$interpreter} '/no/such/interpreter'"],
            './windows' => [127, "No such interpreter: {$interpreter} '/bin/sh\\r'. Change the line ends of the script "
                . 'from CRLF to LF'],
            './nested' => [126, "Permission denied: the script's interpreter '{$file}' is not executable for this "
                . 'user'],
        ] as $program => [$exitCode, $reason]) {
            $result = $this->execute(Command::of($program)->withWorkingDirectory($this->path()));

            self::assertSame("could not be started: '{$program}': {$reason}", $result->error);
            self::assertSame($exitCode, $result->exitCode, $program);
        }
    }

    public function testAFileThatIsNeitherAProgramNorAScriptIsReportedAsSuch(): void
    {
        $this->file('garbage', "x\0y\n", 0o755);
        $result = $this->execute(Command::of('./garbage')->withWorkingDirectory($this->path()));

        self::assertFalse($result->succeeded());
        if ($this->start() === StartMethod::PosixSpawn || \PHP_VERSION_ID >= 80300) {
            self::assertSame(126, $result->exitCode);
            self::assertStringStartsWith(
                "could not be started: './garbage': Exec format error: the file, or the interpreter of a script, is",
                (string) $result->error,
            );
        } else {
            self::assertNotNull($result->exitCode, 'proc_open() has let a shell read the file as a script');
        }
    }

    public function testABadWorkingDirectoryIsAResult(): void
    {
        $file = $this->file('file', '');
        foreach (['/no/such/directory' => 'No such directory', $file => 'Not a directory'] as $directory => $reason) {
            $result = $this->execute(Command::of('true')->withWorkingDirectory($directory));

            self::assertSame(126, $result->exitCode);
            self::assertStringContainsString("'{$directory}': {$reason}", (string) $result->error);
        }
        self::assertTrue($this->execute(Command::of('true'))->succeeded());
    }

    public function testAMissingWorkingDirectoryFailsOnlyItsOwnCommand(): void
    {
        $pool = $this->pool(1);
        mkdir($this->path('gone'));
        $here = Command::of('pwd')->withWorkingDirectory($this->path('gone'));
        self::assertTrue($pool->execute($here)->succeeded());
        rmdir($this->path('gone'));

        self::assertTrue($pool->execute(Command::of('true'))->succeeded());
        self::assertSame(126, $pool->execute($here)->exitCode);
        self::assertTrue($pool->execute(Command::of('true'))->succeeded());
    }

    public function testAnArgumentUpToTheSystemsLimitIsPassedOn(): void
    {
        $result = $this->execute($this->php('echo strlen($argv[1]);', str_repeat('x', 131071)));

        self::assertSame('131071', $result->stdout());
    }

    public function testAnArgumentBeyondTheSystemsLimitIsAResult(): void
    {
        $pool = $this->pool(2);
        foreach ([131072, 1_000_000] as $size) {
            $result = $pool->execute(Command::of('true', str_repeat('x', $size)));

            self::assertSame(126, $result->exitCode, "{$size} bytes");
            self::assertStringContainsString('Argument list too long', (string) $result->error);
        }
        self::assertTrue($pool->execute(Command::of('true'))->succeeded());
    }

    public function testACommandThatIsTooLargeIsReportedWithItsSizeAndTheLimit(): void
    {
        $long = str_repeat('x', 140_000);
        $advice = 'Pass the value on standard input or in a file';
        foreach ([
            [Command::of('true', 'a', $long), "argument 2 has 140000 bytes, but the limit is 131071. {$advice}"],
            [Command::shell(": {$long}"), "the shell line has 140002 bytes, but the limit is 131071. {$advice}"],
            [Command::of('true')->withEnvironment(['LARGE' => $long]), "the variable 'LARGE' with its name has 140006 "
                . 'bytes, but the limit is 131071. Remove or shorten the variable'],
            [Command::of('true', str_repeat('x', 9 << 20)), 'arguments and environment have more than 8 MiB, but the '
                . 'system allows at most 6 MiB. Pass large values on standard input or in a file'],
        ] as [$command, $reason]) {
            $error = (string) $this->execute($command)->error;

            self::assertStringEndsWith("': Argument list too long: {$reason}", $error);
        }

        self::assertMatchesRegularExpression(
            '/the arguments have \d+ bytes and the environment has \d+, but the limit for both is \d+ \(a quarter/',
            (string) $this->execute(Command::of('true', ...array_fill(0, 70, str_repeat('x', 100_000))))->error,
        );
    }

    public function testJoinedArgumentsHaveTheSameLimits(): void
    {
        $pool = $this->pool(2);
        foreach ([str_repeat('x', 131072), implode("\0", array_fill(0, 100, str_repeat('x', 100_000)))] as $arguments) {
            $result = $pool->execute(Command::ofJoined('true', "a\0{$arguments}\0b"));

            self::assertSame(126, $result->exitCode);
            self::assertStringContainsString('Argument list too long', (string) $result->error);
        }
        self::assertTrue($pool->execute(Command::ofJoined('true', "a\0b"))->succeeded());
    }

    public function testMoreArgumentsThanTheSystemTakesAreAResult(): void
    {
        $result = $this->execute(Command::of('true', ...array_fill(0, 100, str_repeat('x', 100_000))));

        self::assertSame(126, $result->exitCode);
        self::assertStringContainsString('Argument list too long', (string) $result->error);
    }

    public function testACommandTooLargeForAnySystemIsAResultAndFailsNoOther(): void
    {
        $pool = $this->pool(2);
        $large = str_repeat('x', 9 << 20);
        $commands = [
            Command::of('true', $large),
            Command::shell(": {$large}"),
            Command::of('cat')->withEnvironment(['LARGE' => $large])->withInput('input'),
            Command::of('cat')->withInput($large),
        ];
        self::assertTrue($pool->execute(Command::of('true'))->succeeded());
        putenv("SPINDLE_LARGE={$large}");
        try {
            $inherited = $pool->execute(Command::of('true'));
            $without = $pool->execute(Command::of('true')->withEnvironment(['SPINDLE_LARGE' => null]));
        } finally {
            putenv('SPINDLE_LARGE');
        }
        $results = iterator_to_array($pool->run($commands));

        foreach ([$inherited, $results[0], $results[1], $results[2]] as $result) {
            self::assertSame(126, $result->exitCode);
            self::assertStringContainsString('Argument list too long', (string) $result->error);
        }
        self::assertTrue($without->succeeded());
        self::assertSame(9 << 20, \strlen($results[3]->stdout()));
    }

    public function testAShellLineBeyondTheSystemsLimitIsAResult(): void
    {
        $result = $this->execute(Command::shell(': ' . str_repeat('x', 140_000)));

        self::assertSame(126, $result->exitCode);
        self::assertStringContainsString('Argument list too long', (string) $result->error);
    }

    public function testAnEnvironmentBeyondTheSystemsLimitIsAResult(): void
    {
        $result = $this->execute(Command::of('true')->withEnvironment(['LARGE' => str_repeat('x', 140_000)]));

        self::assertSame(126, $result->exitCode);
        self::assertStringContainsString('Argument list too long', (string) $result->error);
    }

    public function testACommandThatCannotBeStartedFailsNoOtherCommand(): void
    {
        $commands = [];
        for ($i = 0; $i < 60; ++$i) {
            $commands[] = $i % 3 === 0 ? Command::of('/no/such/program') : Command::of('true');
        }
        $codes = array_map(static fn($result) => $result->exitCode, iterator_to_array($this->pool(4)->run($commands)));
        ksort($codes);

        self::assertSame(array_merge(...array_fill(0, 20, [127, 0, 0])), $codes);
    }
}
