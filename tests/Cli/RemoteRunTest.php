<?php

declare(strict_types=1);

namespace Spindle\Tests\Cli;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\Attributes\RequiresPhpExtension;
use PHPUnit\Framework\TestCase;
use Psr\Log\NullLogger;
use Spindle\Remote\Internal\FailedJobLog;
use Spindle\Remote\Internal\SettlementFactory;
use Spindle\Remote\JobStatus;
use Spindle\Remote\RedisBroker;
use Spindle\Remote\Testing\TemporaryRedis;
use Spindle\Tests\EndsInTime;
use Spindle\Tests\Eventually;
use Spindle\Tests\Fork\ProgramResult;
use Spindle\Tests\Processes;
use Spindle\Tests\Remote\AgentProgram;
use Spindle\Tests\Remote\Redis;
use Spindle\Tests\Text;
use Symfony\Component\Process\Process;

/** Tests `spindle run` with an agent on the same machine. */
#[RequiresPhpExtension('pcntl')]
final class RemoteRunTest extends TestCase
{
    use EndsInTime;
    use RunsWork;

    private const NOTICE = 'spindle: interrupted: no more jobs start, and running jobs may finish;'
        . " interrupt again to end them\n";

    public function testJobsRunAtTheAgentWithOutputsLogAndExitStatusAsHere(): void
    {
        $queue = self::newQueue();
        $agent = $this->work($queue, ['--workers', '3']);
        $process = $this->runs(
            $queue,
            [
                '-k',
                '--joblog',
                'log',
                '--tag',
                'echo out {}; echo err >&2; test $PPID != {} && exit {}',
                ':::',
                '0',
                '3',
                '0',
            ],
        );

        self::assertSame("0\tout 0\n3\tout 3\n0\tout 0\n", $process->getOutput());
        self::assertSame("0\terr\n3\terr\n0\terr\n", $process->getErrorOutput());
        self::assertSame(1, $process->getExitCode());
        self::assertSame(
            ['Exitval', '0', '3', '0'],
            array_map(static fn(string $line): string => explode("\t", $line)[6], Text::lines($this->path('log'))),
        );
        self::assertSame('', $agent->getOutput());

        $process = $this->runs(
            $queue,
            ['-k', '--jsonl'],
            '{"id":"a","cmd":"echo 1; exit 2"}' . "\n" . '{"id":"b","cmd":"kill -9 $$"}' . "\n",
        );
        self::assertOutcome(
            2,
            '{"id":"a","status":2,"stdout":"1\n","stderr":""}'
                . "\n"
                . '{"id":"b","status":137,"stdout":"","stderr":""}'
                . "\n",
            $process,
        );
        self::assertSame(5, (new RedisBroker(Redis::shared()->url()))->statistics($queue)['done_total']);
        $outcomes = "spindle:{{$queue}}:result:*";
        Eventually::holds(
            static fn(): bool => Redis::shared()->command('KEYS', $outcomes) === [],
            'the outcomes that the two runs have received are dropped',
        );
    }

    public function testARunThatWaitsForAnAgentSaysHowToStartOne(): void
    {
        $queue = self::newQueue();
        $process = $this->remote(['run', '--queue', $queue, 'echo', ':::', 'a', 'b']);
        $process->start();
        Eventually::holds(static fn(): bool => $process->getErrorOutput() !== '', 'there is a warning', 15.0);
        $warning = "spindle: no agent serves the queue {$queue}, so its jobs wait."
            . " Start one: spindle work --queue {$queue}\n";
        self::assertSame(['', $warning], [$process->getOutput(), $process->getErrorOutput()]);
        $this->work($queue);
        Eventually::holds(static fn(): bool => !$process->isRunning(), 'the jobs have run', 15.0);

        self::assertSame([0, $warning], [$process->getExitCode(), $process->getErrorOutput()]);
        $lines = explode("\n", trim($process->getOutput()));
        sort($lines);
        self::assertSame(['a', 'b'], $lines);
    }

    public function testAJobThatAnOperatorCancelsHasFailed(): void
    {
        $queue = self::newQueue();
        $broker = new RedisBroker(Redis::shared()->url());
        $log = $this->path('log');
        $process = $this->remote(['run', '--queue', $queue, '-k', '--joblog', $log, 'echo', ':::', '1', '2']);
        $process->start();
        Eventually::holds(fn(): bool => $this->statistics($queue)['waiting'] === 2, 'the jobs wait', 15.0);
        $broker->cancelAndRecord($queue, [(string) array_key_first($broker->listJobs($queue, JobStatus::Waiting, 2))]);
        $this->work($queue);
        Eventually::holds(static fn(): bool => !$process->isRunning(), 'the run has ended', 15.0);

        self::assertSame(
            [1, "2\n", "spindle: echo 1: cancelled by another process\n"],
            [$process->getExitCode(), $process->getOutput(), $process->getErrorOutput()],
        );
        self::assertCount(3, Text::lines($log), 'the heading and both jobs');
    }

    public function testAClaimedJobThatAnOperatorCancelsAfterAnInterruptHasFailed(): void
    {
        $queue = self::newQueue();
        $broker = new RedisBroker(Redis::shared()->url());
        $process = $this->remote(['run', '--queue', $queue, 'echo', ':::', '1']);
        $process->start();
        Eventually::holds(fn(): bool => $this->statistics($queue)['waiting'] === 1, 'the job waits', 15.0);
        $broker->renewLease($queue, 'agent', 30.0, true, '{}');
        [$delivery] = $broker->settleAndClaim($queue, 'agent', [], 1, 3600.0)->deliveries;
        $process->signal(\SIGINT);
        Eventually::holds(static fn(): bool => $process->getErrorOutput() === self::NOTICE, 'no job starts');
        self::assertSame([$delivery->id => JobStatus::Running], $broker->cancelAndRecord($queue, [$delivery->id]));
        $log = new FailedJobLog(new NullLogger(), $queue);
        $cancelled = (new SettlementFactory(self::keys(), $queue, 'agent', 1, $log))->cancelled($delivery);
        $broker->settleAndClaim($queue, 'agent', [$cancelled], 0, 3600.0);
        $broker->releaseLease($queue, 'agent');
        Eventually::holds(static fn(): bool => !$process->isRunning(), 'the run has ended', 15.0);

        self::assertSame(
            [130, '', self::NOTICE . "spindle: echo 1: cancelled by another process\n"],
            [$process->getExitCode(), $process->getOutput(), $process->getErrorOutput()],
        );
    }

    public function testAJobThatIsTooLargeForTheQueueFailsAlone(): void
    {
        $queue = self::newQueue();
        $this->work($queue);
        $process = $this->runs($queue, ['-k', 'printf %.1s {}'], "a\n" . str_repeat('x', 2 << 20) . "\nb\n");

        self::assertSame([1, 'ab'], [$process->getExitCode(), $process->getOutput()]);
        self::assertStringContainsString('The limit is 1048576', $process->getErrorOutput());
    }

    public function testTheKeysCanComeFromAPipe(): void
    {
        $queue = self::newQueue();
        $this->work($queue);
        $url = Redis::shared()->url();
        $environment = "SPINDLE_BROKER='{$url}' SPINDLE_KEY_FILE=<(echo '" . AgentProgram::KEY . "')";

        self::assertOutcome(0, "1\n", $this->shell("{$environment} \$SPINDLE run --queue {$queue} echo ::: 1"));
    }

    public function testFailuresAreTriedAgainAndHaltAsHere(): void
    {
        $queue = self::newQueue();
        $this->work($queue, ['--workers', '2']);
        $process = $this->runs(
            $queue,
            [
                '-j1',
                '--retries',
                '3',
                '--halt',
                'soon,fail=1',
                "echo {} >> {$this->path('tries')}; test {} != 2",
                ':::',
                '1',
                '2',
                '3',
            ],
        );

        self::assertOutcome(
            1,
            '',
            $process,
            "spindle: job 2 failed: exit code 1: echo 2 >> {$this->path('tries')}; test 2 != 2\n"
                . "spindle: halted after 2 jobs, of which 1 failed; running jobs may finish\n",
        );
        self::assertSame(['1', '2', '2', '2'], Text::lines($this->path('tries')));
    }

    public function testOneInterruptLetsFinishWhatRunsAndTakesBackWhatWaitsInTheQueue(): void
    {
        $queue = self::newQueue();
        $this->work($queue);
        $process = $this->lingering($queue, ['-k', '-j3', '--joblog', 'log']);

        $process->signal(\SIGINT);
        Eventually::holdsByItself(static fn(): bool => $process->getErrorOutput() === self::NOTICE, 'it says so', 10.0);
        Eventually::holds(fn(): bool => $this->statistics($queue)['waiting'] === 0, 'they are taken back');
        $this->file('go', '');
        $process->wait();

        self::assertSame([130, "1\n"], [$process->getExitCode(), $process->getOutput()]);
        self::assertStringStartsWith(
            self::NOTICE . 'spindle: to run the jobs that have not finished: ',
            $process->getErrorOutput(),
        );
        self::assertCount(2, Text::lines($this->path('log')));
        self::assertFileDoesNotExist($this->path('started2'));
        self::assertSame([0, 1], [$this->statistics($queue)['running'], $this->statistics($queue)['done_total']]);
    }

    /** @return iterable<string, array{list<int>, int}> */
    public static function endings(): iterable
    {
        yield 'a second interrupt' => [[\SIGINT, \SIGINT], 130];
        yield 'a termination' => [[\SIGTERM], 143];
    }

    /** @param list<int> $signals */
    #[DataProvider('endings')]
    public function testASecondInterruptOrATerminationEndsWhatRunsThere(array $signals, int $status): void
    {
        $queue = self::newQueue();
        $this->work($queue);
        $process = $this->lingering($queue, ['-j3', '--joblog', 'log']);
        foreach ($signals as $i => $signal) {
            $process->signal($signal);
            Eventually::holdsByItself(
                static fn(): bool => $i > 0 || $signal !== \SIGINT || $process->getErrorOutput() === self::NOTICE,
                'it says so',
                10.0,
            );
        }
        $process->wait();

        self::assertSame([$status, ''], [$process->getExitCode(), $process->getOutput()]);
        self::assertCount(1, Text::lines($this->path('log')));
        self::assertFalse(Processes::isAlive((int) file_get_contents($this->path('started1'))));
        self::assertSame(
            [0, 0, 0],
            array_values(array_intersect_key($this->statistics($queue), ['waiting' => 0, 'running' => 0, 'dead' => 0])),
        );
    }

    public function testAReaderThatGoesAwayEndsWhatRunsThere(): void
    {
        $queue = self::newQueue();
        $this->work($queue, ['--workers', '3']);
        $job = "cd {$this->path()}; case {} in long) echo \$\$ > pid; exec sleep 100;; again) until test -e read;"
            . ' do sleep 0.05; done;; esac; echo {}';
        $inner = $this->remote(['run', '--queue', $queue, '-j3', $job, ':::', 'long', 'once', 'again']);
        $process = Process::fromShellCommandline(
            "{$inner->getCommandLine()} | { head -n 1; exec <&-; touch read; }",
            $this->path(),
            $inner->getEnv(),
        );
        $process->run();

        self::assertSame("once\n", $process->getOutput());
        self::assertFalse(Processes::isAlive((int) file_get_contents($this->path('pid'))));
        self::assertSame(0, $this->statistics($queue)['running']);
    }

    public function testABrokerThatWouldLoseJobsIsRefused(): void
    {
        $redis = TemporaryRedis::start(['appendonly' => 'no']);
        $environment = ['SPINDLE_BROKER' => $redis->url()];
        $process = $this->ranRemote(['run', '--queue', 'q', 'true', ':::', '1'], $environment);

        self::assertSame(253, $process->getExitCode());
        self::assertStringContainsString('appendonly', $process->getErrorOutput());
        self::assertStringNotContainsString($redis->password, $process->getErrorOutput());
        $redis->stop();
    }

    /** @return iterable<string, array{list<string>, string, 2?: array<string, string>}> */
    public static function mistakes(): iterable
    {
        yield 'a broker without a queue' => [
            ['--broker', 'redis://host'],
            'option --broker: without a queue, jobs run on this machine; add --queue NAME',
        ];
        yield 'a file without a queue' => [
            ['--broker-file', 'x'],
            'option --broker-file: without a queue, jobs run on this machine; add --queue NAME',
        ];
        yield 'a queue' => [
            ['--queue', 'a b'],
            "option --queue: 'a b' is not allowed; give 1 to 64 letters, digits, dots, hyphens and underscores",
        ];
        yield 'no broker' => [
            ['--queue', 'q'],
            'no address of an engine is given; use --broker, --broker-file,'
            . ' or the environment variable SPINDLE_BROKER (redis://:password@host:port)',
            ['SPINDLE_BROKER' => ''],
        ];
        yield 'a password' => [
            ['--queue', 'q', '--broker', 'redis://:pAssw0rd@host'],
            'option --broker: all users of this machine can read a password in a command line;'
            . " change the engine's password, and give the address in SPINDLE_BROKER or in the file of --broker-file",
        ];
        yield 'no keys' => [
            ['--queue', 'q'],
            'No key file is given: set SPINDLE_KEY_FILE to the file with the keys that sign jobs and outcomes.'
            . ' Create one: (umask 077; head -c 32 /dev/urandom | base64 > spindle.key)',
            ['SPINDLE_KEY_FILE' => ''],
        ];
        yield 'too many' => [
            ['--queue', 'q', '-j', '10001'],
            "option --jobs: '10001' is not allowed; give at most 10000",
        ];
    }

    /**
     * @param list<string>          $options
     * @param array<string, string> $environment
     */
    #[DataProvider('mistakes')]
    public function testAMistakeIsOneLineAndNothingStarts(
        array $options,
        string $message,
        array $environment = [],
    ): void {
        $process = $this->ranRemote(['run', ...$options, 'touch', $this->path('started'), ':::', '1'], $environment);

        self::assertOutcome(255, '', $process, "spindle: {$message}\n");
        self::assertFileDoesNotExist($this->path('started'));
    }

    public function testWithoutAQueueNothingOfThisIsLoaded(): void
    {
        $prepended = $this->file('prepended.php', '<?php register_shutdown_function(static function () {
            file_put_contents('
                . var_export($this->path('classes'), true)
                . ', implode("\n", [...get_declared_classes(), ...get_declared_interfaces()]));
        });', );
        $inner = $this->remote(['run', 'echo', ':::', '1']);
        $process = Process::fromShellCommandline(
            str_replace("'error_reporting=-1'", "'auto_prepend_file={$prepended}'", $inner->getCommandLine()),
            $this->path(),
            $inner->getEnv(),
        );
        $process->run();
        $classes = Text::lines($this->path('classes'));

        self::assertOutcome(0, "1\n", $process);
        self::assertContains('Spindle\Command\CommandPool', $classes);
        self::assertSame(
            [],
            array_values(
                (array) preg_grep(
                    '/^(Spindle\\\\Remote|Predis|Spindle\\\\Worker)\\\\|Elsewhere|CommandTransport|PortableCommand/',
                    $classes,
                ),
            ),
        );
    }

    /** @param list<string> $arguments after the queue */
    private function runs(string $queue, array $arguments, string $input = ''): ProgramResult
    {
        return $this->ranRemote(['run', '--queue', $queue, ...$arguments], input: $input);
    }

    /**
     * Starts three jobs. The first one runs until a file "go" exists.
     *
     * @param list<string> $options
     */
    private function lingering(string $queue, array $options): Process
    {
        $job = "cd {$this->path()}; echo \$\$ > started{}; while [ ! -e go ]; do sleep 0.05; done; echo {}";
        $process = $this->remote(['run', '--queue', $queue, ...$options, $job, ':::', '1', '2', '3']);
        $process->start();
        $this->waitForFile('started1');
        Eventually::holds(fn(): bool => $this->statistics($queue)['waiting'] === 2, 'the others wait');

        return $process;
    }

    /** @return array<string, int> */
    private function statistics(string $queue): array
    {
        return (new RedisBroker(Redis::shared()->url()))->statistics($queue);
    }
}
