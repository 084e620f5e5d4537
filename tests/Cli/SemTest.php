<?php

declare(strict_types=1);

namespace Spindle\Tests\Cli;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Spindle\Tests\Eventually;
use Spindle\Tests\Processes;
use Spindle\Tests\Scale;
use Symfony\Component\Process\Process;

/** `spindle sem`, compared with `sem` of GNU parallel where it is installed. */
final class SemTest extends TestCase
{
    use RunsGnuParallel;

    /** Functions for the lines: hold waits in a command until the line calls go. */
    private const FUNCTIONS = 'rm -f go begun; go() { touch go; }; hold="until [ -e go ]; do sleep 0.1; done"; ';

    /** Shell lines in which `sem` is the tool. */
    private const LINES = [
        'in the background' => ['sem --id a "$hold; echo hi"; echo $?; go; sem --id a --wait', "0\nhi\n"],
        'in the foreground' => ['sem --id a --fg echo hi; echo $?', "hi\n0\n"],
        'the status of a command' => ['sem --id a --fg "exit 3"; echo $?', "3\n"],
        'a signal' => ['sem --id a --fg \'kill -9 $$\' 2>errors; echo $?', "137\n"],
        'a failure in the background' => ['sem --id a "exit 3"; echo $?; sem --id a --wait; echo $?', "0\n0\n"],
        'one at a time' => [
            'sem --id a "sleep 0.5; echo a"; sem --id a "echo b"; sem --id a --wait; echo $?', "a\nb\n0\n",
        ],
        'two at a time' => [
            'sem --id a -j2 "$hold; echo a"; sem --id a -j2 --fg "echo b"; go; sem --id a --wait', "b\na\n",
        ],
        'different names' => [
            'sem --id a "$hold; echo a"; sem --id b "echo b"; sem --id b --wait; go; sem --id a --wait', "b\na\n",
        ],
        'other spellings' => [
            'sem --semaphorename a -P 2 --bg "$hold; echo a"; sem --semaphore-name a --max-procs 2 --fg echo b;'
            . ' go; sem --id a --wait',
            "b\na\n",
        ],
        'a limit of time' => [
            'sem --id a "$hold; echo a"; sem --id a --st -1 echo b; echo $?; go; sem --id a --wait', "1\na\n",
        ],
        'standard input' => ['echo x | sem --id a --fg cat', "x\n"],
        'standard input in the background' => ['echo x | sem --id a cat; sem --id a --wait', "x\n"],
        'grouped output' => [
            'sem -j2 --id a "echo a1; $hold; echo a2"; sem -j2 --id a --fg "echo b"; go; sem --id a --wait',
            "b\na1\na2\n",
        ],
        'ungrouped output' => [
            'sem -j2 -u --id a "echo a1; touch begun; $hold; echo a2"; until [ -e begun ]; do sleep 0.05; done;'
            . ' sem -j2 -u --id a --fg "echo b"; go; sem --id a --wait',
            "a1\nb\na2\n",
        ],
        'both streams' => ['sem --id a --fg "echo a; echo b >&2" 2>&1', "a\nb\n"],
        'replacement strings' => ['sem --id a --fg echo {} "{#}" "{%}"', "1 1\n"],
        'a word that looks like a replacement string' => ["sem --id a --fg \"echo {''}\"", "{}\n"],
        'a descriptor of the caller' => ['exec 9>kept; sem --id a --fg "echo x >&9"; cat kept', "x\n"],
        'no jobs to wait for' => ['sem --id a --wait; echo $?', "0\n"],
        'what a command leaves running' => [
            'sem --id a "sleep 2 >/dev/null 2>&1 & echo a"; sem --id a --fg echo b; sleep 2', "a\nb\n",
        ],
    ];

    /** @return iterable<string, array{string, string}> */
    public static function lines(): iterable
    {
        yield from self::LINES;
    }

    #[DataProvider('lines')]
    public function testALineDoesWhatItDoesInGnuParallel(string $line, string $output): void
    {
        $line = self::FUNCTIONS . $line;
        self::assertSame($output, $this->sem($line)->getOutput());
        if (Scale::includes([$line]) && self::hasRecordedVersion()) {
            $other = $this->bash('sem() { ' . self::PARALLEL . " --semaphore \"\$@\"; }; {$line}");

            self::assertSame($output, $other->getOutput(), $other->getErrorOutput());
        }
    }

    /** @return iterable<string, array{string, int, string}> line, exit status, standard error */
    public static function lostOutput(): iterable
    {
        yield 'a full disk' => ['sem --id a --fg "echo hi" >/dev/full 2>errors', 254, ''];
        yield 'a full disk for standard error' => ['sem --id a --fg "echo hi >&2; echo ok" 2>/dev/full', 254, ''];
        yield 'a closed output' => ['sem --id a --fg "echo hi; exit 3" 2>errors >&-', 254, ''];
        yield 'a reader that closed the output' => ['sem --id a --fg "seq 1000000" | head -n 1 >&2', 141, "1\n"];
        yield 'the same without groups' => ['sem --id a -u --fg "seq 1000000" | head -n 1 >&2', 141, "1\n"];
        yield 'a pipe that the command itself closes' => ['sem --id a --fg "yes | head -n 1" >/dev/null', 0, ''];
        yield 'no output' => ['sem --id a --fg "exit 3" >/dev/full', 3, ''];
        yield 'a small limit of file sizes' => ['ulimit -f 1; sem --id a --fg "echo hi; exit 3" >&2', 3, "hi\n"];
    }

    #[DataProvider('lostOutput')]
    public function testOutputThatCannotBeWrittenIsReported(string $line, int $status, string $errors): void
    {
        $process = $this->sem("set -o pipefail; {$line}");

        self::assertSame([$status, $errors], [$process->getExitCode(), $process->getErrorOutput()]);
    }

    public function testOutputThatFillsTheDiskIsReported(): void
    {
        $mount = 'mkdir -p disk && mount -t tmpfs -o size=1m none disk && export TMPDIR=$PWD/disk && exec "$@"';
        $within = "unshare -m sh -c '{$mount}' sh";
        $process = $this->bash("{$within} true || exit 77");
        if ($process->getExitCode() === 77) {
            self::markTestSkipped('A file system can not be mounted here');
        }
        $sem = \PHP_BINARY . ' ' . Program::path() . ' sem --id a --fg';
        foreach (['', ' >$TMPDIR/large; seq 9'] as $then) {
            $command = "head -c 2000000 /dev/zero{$then}; exit 0";
            $process = $this->bash("{$within} {$sem} '{$command}' >printed");

            self::assertSame(254, $process->getExitCode(), $process->getErrorOutput());
            self::assertStringContainsString(
                "spindle: the output may be incomplete, because {$this->path()}/disk has no space left\n",
                $process->getErrorOutput(),
            );
        }
    }

    public function testNoFileIsLeftIfNotAllFilesForTheOutputCanBeCreated(): void
    {
        mkdir($folder = $this->path('files'));
        $mktemp = $this->script('mktemp', "mkdir {$folder}/first 2>/dev/null || exec /usr/bin/mktemp {$folder}/XXXXXX");
        $path = \dirname($mktemp);
        $process = $this->bash("PATH={$path}:\$PATH " . \PHP_BINARY . ' ' . Program::path() . ' sem --id a --fg true');

        self::assertSame(254, $process->getExitCode(), $process->getErrorOutput());
        self::assertSame(['.', '..', 'first'], scandir($folder));
    }

    public function testTheCommandHasTheVariablesOfItsEnvironment(): void
    {
        $variables = '$out $err $status $printed';
        $process = $this->sem("export out=1 err=2 status=3 printed=4; sem --id a --fg 'echo {$variables}'");

        self::assertOutcome(0, "1 2 3 4\n", $process);
    }

    public function testSeveralWordsRunNoBuiltinOfTheShell(): void
    {
        $process = $this->sem('for u in "" -u; do sem --id a --fg $u eval "touch ran"; echo $?; done; ls -d ran .home');

        self::assertSame("127\n127\n.home\n", $process->getOutput());
    }

    public function testNeverMoreThanTheLimitRun(): void
    {
        $command = '"echo s >> log; sleep 0.05; echo e >> log"';
        $this->sem("for i in $(seq 12); do sem --id a -j 3 --fg {$command} & done; wait");
        $running = $highest = $ended = 0;
        foreach (str_split(str_replace("\n", '', (string) file_get_contents($this->path('log')))) as $line) {
            $running += $line === 's' ? 1 : -1;
            $ended += $line === 'e' ? 1 : 0;
            $highest = max($highest, $running);
        }

        self::assertSame(12, $ended);
        self::assertLessThanOrEqual(3, $highest);
    }

    public function testMoreHoldersThanDescriptorsAreReported(): void
    {
        $process = $this->sem(
            self::FUNCTIONS . 'for i in $(seq 20); do sem --id a -j 30 "$hold"; done;'
                . ' (ulimit -n 16; sem --id a -j 20 --st -1 --fg echo hi); echo $?; go; sem --id a --wait',
        );

        self::assertSame("255\n", $process->getOutput());
        self::assertMatchesRegularExpression(
            "/^spindle: can't open '.+'; raise the limit of open files\n\$/D",
            $process->getErrorOutput(),
        );
    }

    public function testAWaitForManyHoldersNeedsNoProcessorTime(): void
    {
        $autoload = var_export(\dirname(__DIR__, 2) . '/vendor/autoload.php', true);
        $this->file('hold.php', "<?php require {$autoload};\n" . <<<'PHP'
            $semaphore = Spindle\Cli\Internal\Run\Sem\Semaphore::open('a');
            for ($holders = []; count($holders) < 1_100; $holders[] = $semaphore->take());
            touch('begun');
            fgets(STDIN);
            PHP);
        $process = $this->sem(
            'ulimit -n 4096; coproc ' . \PHP_BINARY . ' hold.php; until [ -e begun ]; do sleep 0.05; done;'
                . ' TIMEFORMAT="%U %S"; time sem --id a --wait --st -2 2>/dev/null; echo >&${COPROC[1]}; wait',
        );

        self::assertLessThan(0.5, array_sum(explode(' ', $process->getErrorOutput())), $process->getOutput());
    }

    public function testAHolderThatIsKilledReleasesTheSemaphore(): void
    {
        // The command starts no process after the file appears. During exec, no environment shows the mark of the test.
        $holder = $this->process(['sem', '--id', 'a', '--fg', 'mkfifo fifo; : > started; read line < fifo']);
        $holder->start();
        $this->waitForFile('started');
        $waiting = $this->process(['sem', '--id', 'a', '--fg', 'echo', 'free']);
        $waiting->start();
        foreach (array_keys(Processes::withVariable(self::MARK, $this->mark)) as $pid) {
            if ($pid !== $waiting->getPid()) {
                posix_kill($pid, \SIGKILL);
            }
        }
        $waiting->wait();

        self::assertSame("free\n", $waiting->getOutput());
    }

    public function testNoPipeDisappearsWhileAnotherProcessCountsThem(): void
    {
        $holder = $this->process(['sem', '--id', 'a', '--fg', ': > started; until [ -e go ]; do sleep 0.05; done']);
        $holder->setEnv(['TMPDIR' => $this->path(), self::MARK => $this->mark]);
        $holder->start();
        $this->waitForFile('started');
        $lock = fopen($this->path('spindle-sem-' . posix_geteuid() . '/lock'), 'r');
        self::assertIsResource($lock);
        flock($lock, \LOCK_EX);
        $this->file('go', '');
        $wait = "-> FLOCK  ADVISORY  WRITE {$holder->getPid()} ";
        Eventually::holdsByItself(
            static fn(): bool => !$holder->isRunning()
                || str_contains((string) file_get_contents('/proc/locks'), $wait),
            'the process waits for the lock',
        );

        self::assertTrue($holder->isRunning());
        flock($lock, \LOCK_UN);
        self::assertSame(0, $holder->wait());
    }

    public function testTheCommandStartsAnywayAfterItsTime(): void
    {
        $process = $this->sem(
            self::FUNCTIONS . 'sem --id a "$hold"; sem --id a --st 0.2 --fg echo b; go; sem --id a --wait',
        );

        self::assertSame("b\n", $process->getOutput());
        self::assertSame(
            "spindle: the semaphore 'a' was not free within 0.2 s; going on anyway\n",
            $process->getErrorOutput(),
        );
    }

    public function testAWaitThatExceedsItsTimeFails(): void
    {
        $process = $this->sem(
            self::FUNCTIONS . 'sem --id a "$hold"; sem --id a --wait --st 0.2; echo $?; go; sem --id a --wait',
        );

        self::assertSame("1\n", $process->getOutput());
        self::assertSame(
            "spindle: the semaphore 'a' was not free within 0.2 s; commands are still running\n",
            $process->getErrorOutput(),
        );
    }

    public function testTheFolderIsPrivateAndKeepsNoPipesOfEndedCommands(): void
    {
        $this->sem('for i in 1 2 3; do sem --id $i echo; done; for i in 1 2 3; do sem --id $i --wait; done');
        $folder = $this->path('spindle-sem-' . posix_geteuid());

        self::assertSame(0o40700, fileperms($folder));
        Eventually::holdsByItself(function () use ($folder): bool {
            $this->sem('sem --id 4 --wait');

            return scandir($folder) === ['.', '..', 'lock'];
        }, 'no pipe is left', 5.0);
        $this->sem('sem --id 5 --fg "exit 3"; sem --id 5 --fg sh -c \'kill $$\' 2>errors');
        self::assertSame(['.', '..', 'lock'], scandir($folder));
    }

    public function testTheFolderMayInheritAGroup(): void
    {
        chmod($this->path(), 0o2700);

        self::assertOutcome(0, "hi\n", $this->sem('sem --id a --fg echo hi'));
        self::assertSame(0o42700, fileperms($this->path('spindle-sem-' . posix_geteuid())));
    }

    public function testAUmaskDoesNotTakeAccessFromItsUser(): void
    {
        $process = $this->sem('umask 0177; sem --id a --fg "umask;"; umask 0777; sem --id a --fg "umask;"');

        self::assertOutcome(0, "0177\n0777\n", $process);
        $folder = $this->path('spindle-sem-' . posix_geteuid());
        self::assertSame([0o40700, 0o100600], [fileperms($folder), fileperms("{$folder}/lock")]);
    }

    /** @return iterable<string, array{\Closure(string): mixed}> */
    public static function wrongFolders(): iterable
    {
        yield 'others can read it' => [static fn(string $path): bool => mkdir($path, 0o755) && chmod($path, 0o755)];
        yield 'a link' => [static fn(string $path): bool => mkdir("{$path}.x", 0o700) && symlink("{$path}.x", $path)];
        yield 'a file' => [static fn(string $path): bool => touch($path) && chmod($path, 0o700)];
    }

    /** @param \Closure(string): mixed $create */
    #[DataProvider('wrongFolders')]
    public function testAFolderOfAnotherKindIsRefused(\Closure $create): void
    {
        $folder = $this->path('spindle-sem-' . posix_geteuid());
        $create($folder);
        $process = $this->sem('sem --id a --fg touch ran');

        self::assertOutcome(
            255,
            '',
            $process,
            "spindle: can't use the folder '{$folder}' for semaphores: it is not a writable folder of this user with"
            . " mode 0700; remove it, or set TMPDIR to another folder\n",
        );
        self::assertFileDoesNotExist($this->path('ran'));
    }

    /** @return iterable<string, array{list<string>, string}> */
    public static function mistakes(): iterable
    {
        $time = 'a number of seconds, or a number with s, m, h or d such as 10m, at most 1000000000 s; write -'
            . ' before the time to start nothing after that time';
        foreach (['x', '--1', '-', '99999999999'] as $value) {
            yield "time {$value}" => [
                ["--st={$value}", 'touch', 'ran'],
                "option --st: '{$value}' is not allowed; give {$time}",
            ];
        }
        foreach (['st', 'id', 'jobs'] as $name) {
            yield "empty --{$name}" => [
                ["--{$name}=", 'touch', 'ran'],
                "option --{$name}: the value is empty; give a value",
            ];
        }
        yield 'too many jobs' => [
            ['-j', '501', 'touch', 'ran'],
            "option --jobs: '501' is not allowed; give at most 500",
        ];
        yield 'two places' => [
            ['--fg', '--bg', 'touch', 'ran'],
            "option --fg: can't be combined with --bg, which does not wait for the command",
        ];
        yield 'no command' => [['--id', 'a'], 'give a command, or --wait to wait until all commands have ended'];
        yield 'a command and --wait' => [
            ['--wait', 'touch', 'ran'],
            'option --wait: nothing is started; remove the command',
        ];
        yield 'no program' => [[''], 'the first word of the command is empty; give a program'];
        yield 'an option of spindle run' => [
            ['--joblog', 'x', 'touch', 'ran'],
            'The "--joblog" option does not exist (see --help)',
        ];
    }

    /** @param list<string> $arguments */
    #[DataProvider('mistakes')]
    public function testAMistakeStartsNothing(array $arguments, string $message): void
    {
        $process = $this->ran(['sem', ...$arguments]);

        self::assertOutcome(255, '', $process, "spindle: {$message}\n");
        self::assertFileDoesNotExist($this->path('ran'));
    }

    private function sem(string $line): Process
    {
        return $this->bash('sem() { ' . \PHP_BINARY . ' ' . Program::path() . " sem \"\$@\"; }; {$line}");
    }

    private function bash(string $script): Process
    {
        $environment = ['TMPDIR' => $this->path(), ...$this->parallelEnvironment()];
        $process = new Process(['bash', '-c', $script], $this->path(), $environment, '', 110.0);
        $process->run();

        return $process;
    }
}
