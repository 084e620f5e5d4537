<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Command\Contract;

use Spindle\Command\Command;
use Spindle\Command\CommandResult;
use Spindle\Command\RetryPolicy;
use Spindle\Command\StartMethod;
use Spindle\Internal\Launcher\LauncherProtocol;
use Spindle\Tests\Async;
use Spindle\Tests\Conformance\Command\CommandPoolTestCase;
use Spindle\Tests\Eventually;
use Spindle\Tests\Streams;

/**
 * State of a started command: environment, working directory, name, descriptors, signals.
 *
 * @phpstan-require-extends CommandPoolTestCase
 */
trait StartsCommands
{
    public function testTheEnvironmentIsThisProcessesAtTheTimeOfTheRun(): void
    {
        $pool = $this->pool(1);
        $seen = static fn(): string => $pool->execute(Command::of('printenv', 'SPINDLE_SEEN'))->stdout();
        try {
            self::assertSame('', $seen());
            putenv('SPINDLE_SEEN=one');
            self::assertSame("one\n", $seen());
            putenv("SPINDLE_SEEN=two\n\xFF three=four");
            self::assertSame("two\n\xFF three=four\n", $seen());
            putenv('SPINDLE_SEEN=');
            self::assertSame("\n", $seen());
        } finally {
            putenv('SPINDLE_SEEN');
        }
        self::assertSame('', $seen());
    }

    public function testJoinedArgumentsArriveAsSeveralOnes(): void
    {
        $script = $this->path('script');
        file_put_contents($script, 'printf "[%s]" "$@"');
        chmod($script, 0o755);
        $numbers = implode("\0", range(1, 50_000));
        $pool = $this->pool(1);

        self::assertSame("[a b][][\xFF][z]", $pool->execute(
            Command::ofJoined('printf', '[%s]', "a b\0\0\xFF", 'z'),
        )->stdout());
        self::assertSame("50000\n", $pool->execute(
            Command::ofJoined('sh', '-c', 'echo $#', 'sh', $numbers),
        )->stdout());
        self::assertSame('[a][][b]', $pool->execute(Command::ofJoined($script, "a\0\0b"))->stdout());
        self::assertSame("a\n", $pool->execute(Command::ofJoined('echo', 'a'))->stdout());
    }

    public function testALineThatBeginsWithASignIsNoOptionOfTheShell(): void
    {
        $pool = $this->pool(1);
        $exitCode = static fn(string $line): ?int => $pool->execute(Command::shell($line))->exitCode;

        self::assertSame(127, $exitCode('-n foo'));
        self::assertSame(5, $exitCode("-e 2>&-\nexit 5"));
        self::assertSame(6, $exitCode('+x 2>&-; exit 6'));
        self::assertSame(7, $exitCode('--; exit 7'));
    }

    public function testAWaitingOrRetriedCommandHasTheConditionsOfItsSubmission(): void
    {
        $pool = $this->pool(1, new RetryPolicy(1, delay: 0.01));
        $before = (string) getcwd();
        $go = $this->path('go');
        $seen = Command::shell(
            "echo \$SPINDLE_SEEN \$(umask) \$(pwd -P); test -e {$this->path('again')}"
            . " || { touch {$this->path('again')}; exit 1; }",
        );
        $umask = umask(0o027);
        try {
            $running = Async::run(
                static fn(): CommandResult
                    => $pool->execute(Command::shell("while [ ! -e {$go} ]; do sleep 0.05; done")),
            );
            $waiting = [];
            foreach (['/' => 'one', '/usr' => 'two'] as $directory => $value) {
                chdir($directory);
                putenv("SPINDLE_SEEN={$value}");
                $waiting[] = Async::run(static fn(): CommandResult => $pool->execute($seen));
                Eventually::holds(
                    static fn(): bool => $pool->statistics()['waiting'] === \count($waiting),
                    'The command waits',
                );
            }
            chdir('/tmp');
            putenv('SPINDLE_SEEN=three');
            umask(0o022);
            touch($go);
            [$one, $two] = [$waiting[0]->await(), $waiting[1]->await()];
            $running->await();
        } finally {
            chdir($before);
            putenv('SPINDLE_SEEN');
            umask($umask);
        }

        self::assertSame(["one 0027 /\n", "two 0027 /usr\n"], [$one->stdout(), $two->stdout()]);
        self::assertSame(3, $one->attempts + $two->attempts);
    }

    public function testAllCommandsOfARunHaveTheEnvironmentOfItsStart(): void
    {
        $pool = $this->pool(1);
        $input = static function () use ($pool): \Generator {
            for ($i = 0; $i < 4; ++$i) {
                yield Command::of('printenv', 'SPINDLE_SEEN');
                putenv("SPINDLE_SEEN=later {$i}");
                $pool->execute(Command::of('true'));
            }
        };
        putenv('SPINDLE_SEEN=start');
        try {
            foreach ($pool->run($input()) as $result) {
                self::assertSame("start\n", $result->stdout());
            }
        } finally {
            putenv('SPINDLE_SEEN');
        }
    }

    public function testACommandChangesItsOwnEnvironment(): void
    {
        $pool = $this->pool(1);
        $command = Command::of('env')->withEnvironment(
            ['SET' => "a=b\nc", 'EMPTY' => '', 'HOME' => null],
        )->withEnvironment(['7' => 'seven']);
        $lines = explode("\n", $pool->execute($command)->stdout());

        self::assertContains('SET=a=b', $lines);
        self::assertContains('EMPTY=', $lines);
        self::assertContains('7=seven', $lines);
        self::assertSame([], preg_grep('/^HOME=/', $lines));

        $lines = explode("\n", $pool->execute(Command::of('env'))->stdout());
        self::assertSame([], preg_grep('/^(SET|EMPTY|7)=/', $lines), 'and not that of the next');
        self::assertCount(1, (array) preg_grep('/^HOME=/', $lines));
    }

    public function testEachCommandIsMarkedInItsEnvironment(): void
    {
        $pool = $this->pool(2);
        $marker = static fn(Command $command): string => $pool->execute($command)->stdout();
        $print = Command::of('printenv', LauncherProtocol::MARKER);
        $one = $marker($print);

        self::assertMatchesRegularExpression('/^[0-9a-f]{16}\.\d+\n$/', $one);
        self::assertNotSame($one, $marker($print));
        self::assertMatchesRegularExpression(
            '/^[0-9a-f]{16}\.\d+\n$/',
            $marker($print->withEnvironment([LauncherProtocol::MARKER => 'mine'])),
        );
        self::assertMatchesRegularExpression(
            '/^[0-9a-f]{16}\.\d+\n$/',
            $marker($print->withEnvironment([LauncherProtocol::MARKER => null])),
        );
    }

    public function testAProgramIsLookedUpInThePathOfItsCommand(): void
    {
        $pool = $this->pool(1);
        foreach (['a', 'b'] as $name) {
            mkdir($this->path($name));
            $this->script("{$name}/program", "echo {$name}");
        }
        $command = Command::of('program');

        self::assertSame(
            "a\n",
            $pool->execute($command->withEnvironment(['PATH' => "{$this->path('a')}:{$this->path('b')}"]))->stdout(),
        );
        self::assertSame(
            "b\n",
            $pool->execute($command->withEnvironment(['PATH' => "{$this->path('b')}:{$this->path('a')}"]))->stdout(),
        );
        self::assertSame(127, $pool->execute($command)->exitCode);
        unlink($this->path('a/program'));
        self::assertSame(
            "b\n",
            $pool->execute($command->withEnvironment(['PATH' => "{$this->path('a')}:{$this->path('b')}"]))->stdout(),
        );
    }

    public function testARelativePathIsLookedUpFromTheWorkingDirectoryOfTheCommand(): void
    {
        $pool = $this->pool(1);
        foreach (['a', 'b'] as $name) {
            mkdir($this->path($name));
            mkdir($this->path("{$name}/bin"));
            $this->script("{$name}/bin/program", "echo {$name}");
        }
        foreach (['a', 'b', 'a'] as $name) {
            $here = Command::of('program')->withWorkingDirectory($this->path($name));
            self::assertSame(
                "{$name}\n",
                $pool->execute($here->withEnvironment(['PATH' => 'bin:/usr/bin:/bin']))->stdout(),
            );
            $here = Command::of('bin/program')->withWorkingDirectory($this->path($name));
            self::assertSame("{$name}\n", $pool->execute($here)->stdout());
        }
    }

    public function testWithoutAPathTheSystemsProgramsAreFound(): void
    {
        self::assertSame(
            "found\n",
            $this->execute(Command::of('echo', 'found')->withEnvironment(['PATH' => null]))->stdout(),
        );
    }

    public function testAProgramIsCalledByTheNameGiven(): void
    {
        $result = $this->execute(Command::of('ls', '/no/such/file')->withEnvironment(['LC_ALL' => 'C']));

        self::assertSame("ls: cannot access '/no/such/file': No such file or directory\n", $result->stderr());
    }

    public function testTheWorkingDirectoryIsThisProcessesUnlessGiven(): void
    {
        $pool = $this->pool(1);
        $pwd = Command::of('pwd', '-P');
        $before = (string) getcwd();
        $directory = (string) realpath($this->path());
        mkdir($this->path('below'));
        try {
            self::assertSame("{$before}\n", $pool->execute($pwd)->stdout());
            self::assertSame("{$directory}\n", $pool->execute($pwd->withWorkingDirectory($directory))->stdout());
            chdir($directory);
            self::assertSame("{$directory}\n", $pool->execute($pwd)->stdout());
            self::assertSame("{$directory}/below\n", $pool->execute($pwd->withWorkingDirectory('below'))->stdout());
            self::assertSame("/\n", $pool->execute($pwd->withWorkingDirectory('/'))->stdout());
            chdir('/');
            self::assertSame("/\n", $pool->execute($pwd)->stdout());
            self::assertSame("/usr\n", $pool->execute($pwd->withWorkingDirectory('usr'))->stdout());
        } finally {
            chdir($before);
        }
    }

    public function testACommandDoesNotStartWhenTheWorkingDirectoryOfThisProcessWasRemoved(): void
    {
        $pool = $this->pool(1);
        $pwd = Command::of('pwd');
        $before = (string) getcwd();
        $pool->execute($pwd);
        mkdir($this->path('gone'));
        chdir($this->path('gone'));
        rmdir($this->path('gone'));
        try {
            foreach ([$pwd, $pwd->withWorkingDirectory('tmp'), $pwd->withWorkingDirectory('.')] as $command) {
                $result = $pool->execute($command);
                self::assertSame(126, $result->exitCode, $result->stdout());
                self::assertSame(
                    "could not be started: 'pwd': The working directory of the calling process no longer exists",
                    $result->error,
                );
            }
            self::assertSame("/usr\n", $pool->execute($pwd->withWorkingDirectory('/usr'))->stdout());
        } finally {
            chdir($before);
        }
    }

    public function testACommandInheritsNoDescriptorOfThisProcess(): void
    {
        $server = Streams::server();
        $file = Streams::open($this->file('secret', 'x'), 'r');
        $pool = $this->pool(2);
        $pool->execute(Command::of('true'));
        $later = Streams::server();
        $list = Command::shell('ls -l /proc/self/fd; :');
        $descriptors = $pool->execute($list)->stdout() . $pool->execute($list)->stdout();

        self::assertStringNotContainsString('socket:', $descriptors);
        self::assertStringNotContainsString('secret', $descriptors);
        self::assertIsResource($server);
        self::assertIsResource($later);
        self::assertIsResource($file);
    }

    public function testACommandHasItsStandardDescriptorsAndWithoutFfiTheOneThatAnnouncesItsExit(): void
    {
        $files = [Streams::open('/etc/passwd', 'r'), Streams::open('/dev/zero', 'r')]; // some of 4 to 9 are in use
        $listed = $this->execute(Command::shell('ls /proc/$$/fd; :'))->stdout();
        $own = $this->start() === StartMethod::PosixSpawn ? ['0', '1', '2'] : ['0', '1', '2', '3'];
        $others = array_diff(explode("\n", trim($listed)), $own);

        self::assertSame(
            [],
            array_values(array_filter($others, static fn(string $descriptor): bool => (int) $descriptor < 10)),
        );
        array_map(fclose(...), $files);
    }

    public function testACommandInheritsNoDescriptorOfAnotherCommand(): void
    {
        $pool = $this->pool(8);
        $commands = array_fill(0, 7, Command::of('sleep', '0.5')->withInput(str_repeat('x', 200_000)));
        $commands['list'] = Command::shell('sleep 0.2; readlink /proc/$$/fd/*; :');
        $results = iterator_to_array($pool->run($commands));

        self::assertLessThanOrEqual(
            3,
            substr_count($results['list']->stdout(), 'pipe:'),
            'its own outputs, and one that announces its exit',
        );
    }

    public function testACommandStartsWithoutBlockedAndIgnoredSignals(): void
    {
        if (!$this->launcherHandlesSignals()) {
            self::markTestSkipped('Without pcntl a launcher can not reset signals');
        }
        $status = $this->execute(Command::of('grep', '-E', '^Sig(Blk|Ign)', '/proc/self/status'))->stdout();

        // Signals 32 and 33 are reserved by the C library, whose posix_spawn ignores them in the child.
        self::assertMatchesRegularExpression('/^SigBlk:\t0{16}\nSigIgn:\t(0{16}|0000000180000000)\n$/', $status);
    }

    public function testAWriterWithoutAReaderIsKilledBySigpipe(): void
    {
        if (!$this->launcherHandlesSignals()) {
            self::markTestSkipped('Without pcntl a launcher can not reset signals');
        }
        $result = $this->execute(Command::shell('{ yes; echo $? >&2; } | head -n 1'));

        self::assertSame("y\n", $result->stdout());
        self::assertSame('', str_replace("141\n", '', $result->stderr()));
    }
}
