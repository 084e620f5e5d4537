<?php

declare(strict_types=1);

namespace Spindle\Tests\Cli;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\Attributes\RequiresPhpExtension;
use PHPUnit\Framework\Attributes\TestWith;
use PHPUnit\Framework\TestCase;
use Psr\Log\AbstractLogger;
use Revolt\EventLoop;
use Spindle\Cli\Internal\Work\WorkerTrial;
use Spindle\Command\Command;
use Spindle\Command\CommandPool;
use Spindle\Command\CommandPoolOptions;
use Spindle\Internal\UsableMemory;
use Spindle\Remote\BrokerUnavailableException;
use Spindle\Remote\JobLostException;
use Spindle\Remote\JobRetryPolicy;
use Spindle\Remote\JobStatus;
use Spindle\Remote\KeyFileException;
use Spindle\Remote\RedisBroker;
use Spindle\Remote\RemoteCommands;
use Spindle\Remote\RemoteExecutor;
use Spindle\Remote\RemoteOptions;
use Spindle\Remote\SigningKeys;
use Spindle\Remote\Testing\TemporaryRedis;
use Spindle\Tests\EndsInTime;
use Spindle\Tests\Eventually;
use Spindle\Tests\Host;
use Spindle\Tests\Remote\AgentProgram;
use Spindle\Tests\Remote\Redis;
use Spindle\Tests\Streams;
use Spindle\Worker\TaskContext;
use Spindle\Worker\TaskFailedException;
use Spindle\Worker\WorkerPoolOptions;
use Symfony\Component\Process\Process;

use function Amp\async;

#[RequiresPhpExtension('pcntl')]
final class WorkTest extends TestCase
{
    use EndsInTime;
    use RunsWork;

    private const SECRET = 'pAssw0rd';

    public function testATaskRunsAndItsOutputAppearsInTheAgentsOutput(): void
    {
        $queue = self::newQueue();
        $process = $this->work(
            $queue,
            [
                '--bootstrap',
                $this->file('app.php', '<?php const LOADED = "app";'),
                '--memory-limit',
                '77M',
                '--lease',
                '6',
            ],
        );

        $outcome = $this->executor($queue)->submit(static function (): string {
            echo 'to standard output';
            fwrite(\STDERR, 'to standard error');

            return json_encode([\constant('LOADED'), \ini_get('memory_limit')], \JSON_THROW_ON_ERROR);
        })->await();

        self::assertSame('["app","77M"]', $outcome);
        Eventually::holds(
            static fn(): bool => $process->getOutput() === 'to standard output' && str_contains(
                $process->getErrorOutput(),
                'to standard error',
            ),
            'it is printed',
        );
        $process->signal(\SIGTERM);
        self::assertSame(0, $process->wait());
        self::assertStringNotContainsString(Redis::shared()->password, $process->getErrorOutput());
    }

    #[TestWith(['-1', null])]
    #[TestWith(['99M', '99M'])]
    public function testWithoutALimitInPhpIniEachWorkerHasAShareOfTheMemory(string $configured, ?string $limit): void
    {
        mkdir($this->path('ini'));
        file_put_contents($this->path('ini/memory.ini'), "memory_limit={$configured}\n");
        $share = (int) ((int) (new UsableMemory())->bytes() * 0.75 / 3);
        $queue = self::newQueue();
        $this->work($queue, ['--workers', '3'], environment: ['PHP_INI_SCAN_DIR' => ":{$this->path('ini')}"]);

        self::assertSame(
            $limit ?? max(128, intdiv($share, 1 << 20)) . 'M',
            $this->executor($queue)->submit(static fn(): string => \ini_get('memory_limit'))->await(),
        );
    }

    public function testTasksGoOnWhenTheirOutputIsNotReadAndTheLogReportsTheGap(): void
    {
        $queue = self::newQueue();
        $log = $this->path('log');
        $arguments = [
            \PHP_BINARY,
            \dirname(__DIR__, 2) . '/bin/spindle',
            'work',
            '--queue',
            $queue,
            '--workers',
            '1',
            '--allow-root',
        ];
        $work = proc_open(
            $arguments,
            [['file', '/dev/null', 'r'], ['pipe', 'w'], ['file', $log, 'w']],
            $pipes,
            null,
            [...getenv(), ...$this->environment([])],
        );
        self::assertIsResource($work);
        $print = static function (): string {
            echo str_repeat('x', 1 << 20);

            return 'printed';
        };
        $executor = $this->executor($queue);

        self::assertSame('printed', $executor->submit($print)->await());
        self::assertStringContainsString('x', (string) fread($pipes[1], 1 << 17));
        self::assertSame('printed', $executor->submit($print)->await());
        Eventually::holds(
            static fn(): bool => str_contains(
                (string) file_get_contents($log),
                'bytes that tasks printed are missing: standard output was not read',
            ),
            'it is told',
        );
        proc_terminate($work);
        fclose($pipes[1]);
        proc_close($work);
    }

    public function testTasksDoNotLearnTheKeysAndTheBrokersPassword(): void
    {
        $queue = self::newQueue();
        $this->work($queue);
        $secrets = static fn(): array => array_filter(
            [...getenv(), ...$_ENV, ...$_SERVER],
            static fn(string $name): bool
                => str_starts_with($name, 'SPINDLE_KEY') || str_starts_with($name, 'SPINDLE_BROKER'),
            \ARRAY_FILTER_USE_KEY,
        );

        self::assertSame([], $this->executor($queue)->submit($secrets)->await());
    }

    public function testAMissingVariableInATaskIsExplained(): void
    {
        $queue = self::newQueue();
        $this->work($queue);
        $messages = static function (): array {
            $messages = [];
            $broker = static fn(): RedisBroker => new RedisBroker((string) getenv('SPINDLE_BROKER'));
            foreach ([$broker, SigningKeys::fromEnvironment(...)] as $create) {
                try {
                    $create();
                } catch (\ValueError|KeyFileException $missing) {
                    $messages[] = $missing->getMessage();
                }
            }

            return $messages;
        };

        self::assertSame(
            [
                'The address of the engine is empty. The environment variable SPINDLE_BROKER of an agent '
                    . '(spindle work) is not passed on to its workers. Read the address from a file',
                'No key file is given: the environment variable SPINDLE_KEY_FILE of an agent '
                    . '(spindle work) is not passed on to its workers. Pass the keys as SigningKeys::fromFile($file)',
            ],
            $this->executor($queue)->submit($messages)->await(),
        );
    }

    public function testSeveralQueuesShareTheWorkersByTheirWeights(): void
    {
        [$often, $seldom] = [self::newQueue(), self::newQueue()];
        $process = $this->work("{$often}=3", ['--queue', $seldom, '--workers', '4']);
        Eventually::holds(
            static fn(): bool => substr_count($process->getErrorOutput(), 'Serving the queue') === 2,
            'both are served',
        );
        foreach ([$often => 3, $seldom => 1] as $queue => $workers) {
            for ($i = 0; $i < 5; ++$i) {
                $this->executor($queue)->submit($this->gated("{$queue} {$i}"))->ignore();
            }
            $broker = new RedisBroker(Redis::shared()->url());
            Eventually::holds(
                static fn(): bool => $broker->statistics($queue)['running'] === $workers,
                "{$workers} workers serve it",
            );
        }
        touch($this->path('open'));
        $process->signal(\SIGTERM);

        self::assertSame(0, $process->wait(), $process->getErrorOutput());
    }

    public function testLargeResultsOfManyQueuesHaveRoomTogether(): void
    {
        mkdir($this->path('ini'));
        file_put_contents($this->path('ini/memory.ini'), "memory_limit=64M\n");
        $queues = array_map(static fn(): string => self::newQueue(), range(1, 8));
        $more = array_merge(
            ...array_map(static fn(string $queue): array => ['--queue', $queue], \array_slice($queues, 1)),
        );
        $process = $this->work(
            $queues[0],
            [...$more, '--workers', '8'],
            environment: ['PHP_INI_SCAN_DIR' => ":{$this->path('ini')}"],
        );
        $ready = $this->path('ready');
        mkdir($ready);
        $futures = array_map(
            fn(string $queue) => $this->executor($queue)->submit(static function () use ($ready, $queue): string {
                touch("{$ready}/{$queue}");
                for ($end = microtime(true) + 20; \count((array) glob("{$ready}/*")) < 8 && microtime(true) < $end;) {
                    usleep(1000);
                }

                return str_repeat('x', 7 << 20);
            }),
            $queues,
        );
        foreach ($futures as $future) {
            self::assertSame(7 << 20, \strlen($future->await()));
        }
        $process->signal(\SIGTERM);

        self::assertSame(0, $process->wait(), $process->getErrorOutput());
        self::assertStringNotContainsString('lease', $process->getErrorOutput());
    }

    public function testAQueueWhoseLeaseIsLostEndsNothingOfAnother(): void
    {
        [$lost, $kept] = [self::newQueue(), self::newQueue()];
        $process = $this->work($lost, ['--queue', $kept, '--workers', '2', '--lease', '6', '--lease-margin', '4']);
        $commands = new CommandPool(
            options: new CommandPoolOptions(
                transport: new RemoteCommands(
                    new RedisBroker(Redis::shared()->url()),
                    $lost,
                    new SigningKeys([AgentProgram::KEY]),
                    options: new RemoteOptions(brokerRetryTimeout: 0.5),
                ),
            ),
        );
        $stubborn = async(
            static fn() => $commands->execute(Command::of('sh', '-c', 'trap "" TERM; while true; do sleep 0.1; done')),
        );
        $open = $this->path('open');
        $future = $this->executor($kept)->submit(static function () use ($open): int {
            for ($end = microtime(true) + 25; !file_exists($open) && microtime(true) < $end;) {
                usleep(1000);
                clearstatcache();
            }

            return TaskContext::current()->attempt;
        });
        $broker = new RedisBroker(Redis::shared()->url());
        foreach ([$lost, $kept] as $queue) {
            Eventually::holds(static fn(): bool => $broker->statistics($queue)['running'] === 1, 'it runs');
        }
        Redis::shared()->command('DEL', "spindle:{{$lost}}:agents");
        Redis::shared()->command('SET', "spindle:{{$lost}}:agents", 'no lease can be renewed');
        $hasEnded = static fn(): bool
            => preg_match('/has ended: for too long, the agent.*is not available/s', $process->getErrorOutput()) === 1;
        Eventually::holds($hasEnded, 'what it ran has ended, and another lease is asked for', 20.0);
        touch($open);

        self::assertSame(1, $future->await(), $process->getErrorOutput());
        $commands->cancelAll();
        try {
            $stubborn->await();
            self::fail('Nobody can tell what became of it');
        } catch (BrokerUnavailableException|JobLostException) {
            Redis::shared()->command('DEL', "spindle:{{$lost}}:agents");
        }
        $process->signal(\SIGTERM);
        self::assertSame(0, $process->wait(), $process->getErrorOutput());
    }

    public function testTheOptionsOfAnAgentAreChecked(): void
    {
        foreach ([
            ['--lease', '3'],
            ['--heartbeat', '9'],
            ['--lease-margin', '9.5'],
            ['--max-dead-letters', '0'],
            ['--outcome-retention', '0'],
        ] as $options) {
            $process = $this->remote(['work', '--queue', 'any', '--allow-root', ...$options]);

            self::assertSame(255, $process->run(), implode(' ', $options));
        }
    }

    public function testSigtermFinishesRunningJobsAndGivesTheOthersBack(): void
    {
        $queue = self::newQueue();
        $process = $this->work($queue);
        $executor = $this->executor($queue);
        $running = $executor->submit($this->gated('first'));
        $this->waitForFile('first.runs');
        $others = [$executor->submit($this->gated('second')), $executor->submit($this->gated('third'))];

        $process->signal(\SIGTERM);
        Eventually::holds(static fn(): bool => str_contains($process->getErrorOutput(), 'Stopping'), 'the agent stops');
        touch($this->path('open'));

        self::assertSame(0, $process->wait(), $process->getErrorOutput());
        self::assertSame(['first', 1], $running->await());
        $statistics = (new RedisBroker(Redis::shared()->url()))->statistics($queue);
        self::assertSame(
            [2, 0, 0, 0, 0],
            [
                $statistics['waiting'],
                $statistics['running'],
                $statistics['agents'],
                $statistics['lost_total'],
                $statistics['retried_total'],
            ],
        );

        $this->work($queue);
        self::assertSame([['second', 1], ['third', 1]], [$others[0]->await(), $others[1]->await()]);
    }

    public function testCtrlCReachesTheAgentAndNoWorker(): void
    {
        $queue = self::newQueue();
        $options = ['--queue', $queue, '--workers', '1', '--allow-root'];
        $inner = $this->remote(['work', ...$this->loadingTests($options)]);
        $this->works[] = $process = Process::fromShellCommandline(
            "exec setsid {$inner->getCommandLine()}",
            $inner->getWorkingDirectory(),
            $inner->getEnv(),
        );
        $process->start();
        $running = $this->executor($queue)->submit($this->gated('first'));
        $this->waitForFile('first.runs');

        posix_kill(-(int) $process->getPid(), \SIGINT);
        Eventually::holds(static fn(): bool => str_contains($process->getErrorOutput(), 'Stopping'), 'the agent stops');
        touch($this->path('open'));

        self::assertSame(0, $process->wait(), $process->getErrorOutput());
        self::assertSame(['first', 1], $running->await());
    }

    public function testAnInterruptThatWasIgnoredAtTheStartStaysIgnored(): void
    {
        $queue = self::newQueue();
        $options = ['--queue', $queue, '--workers', '1', '--allow-root'];
        $inner = $this->remote(['work', ...$this->loadingTests($options)]);
        $command = "trap '' INT; exec {$inner->getCommandLine()}";
        $this->works[] = $process = Process::fromShellCommandline(
            $command,
            $inner->getWorkingDirectory(),
            $inner->getEnv(),
        );
        $process->start();
        $running = $this->executor($queue)->submit($this->gated('first'));
        $this->waitForFile('first.runs');

        $process->signal(\SIGINT);
        $process->signal(\SIGINT);
        touch($this->path('open'));
        self::assertSame(['first', 1], $running->await());
        $process->signal(\SIGTERM);

        self::assertSame(0, $process->wait(), $process->getErrorOutput());
    }

    public function testJobsThatRunAtTheStopTimeoutAreGivenBackWithoutAnAttempt(): void
    {
        $queue = self::newQueue();
        $executor = $this->executor($queue, new JobRetryPolicy(maxAttempts: 1, maxCrashes: 1));
        $running = $executor->submit($this->gated('task'));
        for ($i = 0; $i < 2; ++$i) {
            $process = $this->work($queue, ['--stop-timeout', '0.2']);
            $this->waitForFile('task.runs');
            unlink($this->path('task.runs'));
            $process->signal(\SIGTERM);

            self::assertSame(0, $process->wait(), $process->getErrorOutput());
            self::assertStringContainsString('Ending 1 running jobs and giving them back', $process->getErrorOutput());
            $statistics = (new RedisBroker(Redis::shared()->url()))->statistics($queue);
            self::assertSame(
                [1, 0, 0, 0],
                [$statistics['waiting'], $statistics['agents'], $statistics['lost_total'], $statistics['dead']],
            );
        }
        touch($this->path('open'));
        $this->work($queue);

        self::assertSame(['task', 1], $running->await(), 'it is the first attempt');
    }

    public function testASecondSignalEndsAllAtOnceAndGivesItBack(): void
    {
        foreach ([\SIGTERM => 143, \SIGINT => 130] as $signal => $status) {
            $queue = self::newQueue();
            $process = $this->work($queue);
            $this->executor($queue)->submit($this->gated("of {$signal}"))->ignore();
            $this->waitForFile("of {$signal}.runs");

            $process->signal(\SIGTERM);
            Eventually::holds(
                static fn(): bool => str_contains($process->getErrorOutput(), 'Stopping'),
                'the agent stops',
            );
            self::assertTrue($process->isRunning());
            $process->signal($signal);

            self::assertSame($status, $process->wait(), $process->getErrorOutput());
            $this->assertNothingRuns();
            self::assertCount(1, (new RedisBroker(Redis::shared()->url()))->listJobs($queue, JobStatus::Waiting, 10));
            self::assertSame(0, (new RedisBroker(Redis::shared()->url()))->statistics($queue)['lost_total']);
        }
    }

    public function testAfterSighupNewTasksRunNewCode(): void
    {
        $queue = self::newQueue();
        $process = $this->work(
            $queue,
            ['--bootstrap', $this->file('app.php', '<?php const VERSION = 1;'), '--workers', '2'],
        );
        $executor = $this->executor($queue);
        $task = static fn(): mixed => \constant('VERSION');
        self::assertSame(1, $executor->submit($task)->await());
        $running = $executor->submit($this->gated('old'));
        $this->waitForFile('old.runs');

        $this->file('app.php', '<?php const VERSION = 2;');
        $process->signal(\SIGHUP);
        Eventually::holds(
            static fn(): bool => str_contains($process->getErrorOutput(), 'Reloaded'),
            'the agent reloads',
        );

        self::assertSame(2, $executor->submit($task)->await());
        touch($this->path('open'));
        self::assertSame(['old', 1], $running->await());
    }

    public function testAfterSighupTheOldWorkersGoOnIfTheNewCodeCannotBeLoaded(): void
    {
        $queue = self::newQueue();
        $process = $this->work($queue, ['--bootstrap', $this->file('app.php', '<?php const VERSION = 1;')]);
        $executor = $this->executor($queue);
        $task = static fn(): mixed => \constant('VERSION');
        self::assertSame(1, $executor->submit($task)->await());

        $this->file('app.php', '<?php throw new LogicException("config missing");');
        $process->signal(\SIGHUP);
        Eventually::holds(
            static fn(): bool => str_contains($process->getErrorOutput(), 'Not reloaded: A worker could not be made'),
            'the agent refuses',
        );
        self::assertSame(1, $executor->submit($task)->await());

        $this->file('app.php', '<?php const VERSION = 2;');
        $process->signal(\SIGHUP);
        Eventually::holds(
            static fn(): bool => str_contains($process->getErrorOutput(), 'Reloaded'),
            'the agent reloads',
        );
        self::assertSame(2, $executor->submit($task)->await());
    }

    public function testASecondSighupDuringAReloadLoadsTheNewestCode(): void
    {
        $queue = self::newQueue();
        $process = $this->work($queue, ['--bootstrap', $this->file('app.php', '<?php const VERSION = 1;')]);
        $open = var_export($this->path('open'), true);
        $this->file(
            'app.php',
            "<?php echo 'loading'; while (!file_exists({$open})) { usleep(5000); clearstatcache(); } exit(3);",
        );
        $process->signal(\SIGHUP);
        Eventually::holds(static fn(): bool => $process->getOutput() === 'loading', 'the first file is being loaded');

        $this->file('app.php', '<?php const VERSION = 2;');
        $process->signal(\SIGHUP);
        touch($this->path('open'));
        Eventually::holds(
            static fn(): bool => str_contains($process->getErrorOutput(), 'Reloaded'),
            'the agent reloads',
        );
        $task = static fn(): mixed => \constant('VERSION');
        self::assertSame(2, $this->executor($queue)->submit($task)->await());
    }

    public function testAfterSighupNewTasksRunTheReleaseToWhichALinkLeadsNow(): void
    {
        $queue = self::newQueue();
        $this->makeReleases();
        $process = $this->work($queue, ['--bootstrap', 'app.php'], folder: $this->path('current'));
        $executor = $this->executor($queue);
        $task = static fn(): string => (string) json_encode([\constant('VERSION'), getcwd()]);
        $expected = fn(int $version): string => (string) json_encode(
            [$version, realpath($this->path("release {$version}"))],
        );
        self::assertSame($expected(1), $executor->submit($task)->await());

        $this->switchRelease();
        $process->signal(\SIGHUP);
        Eventually::holds(
            static fn(): bool => str_contains($process->getErrorOutput(), 'Reloaded'),
            'the agent reloads',
        );

        self::assertSame($expected(2), $executor->submit($task)->await());
    }

    public function testAMissingLinkAtSighupKeepsTheReleaseThatWasFollowedLast(): void
    {
        $queue = self::newQueue();
        $this->makeReleases();
        $process = $this->work($queue, folder: $this->path('current'));
        $this->switchRelease();
        $process->signal(\SIGHUP);
        Eventually::holds(
            static fn(): bool => str_contains($process->getErrorOutput(), 'Reloaded'),
            'the agent reloads',
        );

        unlink($this->path('current'));
        $process->signal(\SIGHUP);
        Eventually::holds(
            fn(): bool => str_contains(
                $process->getErrorOutput(),
                "Not reloaded: {$this->path('current')} does not exist. Create it, or correct the link in its path",
            ),
            'the agent refuses',
        );

        $task = static fn(): string|false => getcwd();
        self::assertSame(realpath($this->path('release 2')), $this->executor($queue)->submit($task)->await());
    }

    public function testAReleaseWithoutTheWorkingDirectoryIsNotLoadedAfterSighup(): void
    {
        $this->makeReleases();
        mkdir($this->path('release 1/var'));
        $bootstrap = ['--bootstrap', $this->path('current/app.php')];
        $process = $this->work(self::newQueue(), $bootstrap, folder: $this->path('current/var'));

        $this->switchRelease();
        $process->signal(\SIGHUP);

        Eventually::holds(
            fn(): bool => str_contains(
                $process->getErrorOutput(),
                "Not reloaded: The application has moved to {$this->path('release 2')}, but its working directory",
            ),
            'the agent refuses',
        );
    }

    public function testProcess1WithoutFfiWarnsOfZombies(): void
    {
        $unshare = ['unshare', '--fork', '--kill-child', '--pid', '--mount-proc'];
        if ((new Process([...$unshare, 'true']))->run() !== 0) {
            self::markTestSkipped('This user may not make a process the first of its own, as unshare does');
        }
        $command = [\PHP_BINARY, '-d', 'ffi.enable=0', \dirname(__DIR__, 2) . '/bin/spindle', 'work', '--allow-root'];
        $this->works[] = $process = new Process(
            [...$unshare, ...$command, '--queue', self::newQueue()],
            $this->path(),
            $this->environment([]),
        );
        $process->start();

        Eventually::holds(
            static fn(): bool => str_contains($process->getErrorOutput(), 'remain as zombies: this is process 1'),
            'it warns',
            10.0,
        );
    }

    public function testTheAdminAddressReportsStatisticsAndTheBrokersHealth(): void
    {
        $address = Streams::unusedAddress();
        $queue = self::newQueue();
        $process = $this->work($queue, ['--admin', $address, '--admin-host', 'a']);
        $executor = $this->executor($queue);
        self::assertSame(
            2,
            $executor->submit(
                static fn(): int => TaskContext::current()->attempt > 1 ? TaskContext::current()->attempt : exit(1),
            )->await(),
        );
        $executor->submit($this->gated('first'))->ignore();
        $this->waitForFile('first.runs');

        $statistics = self::get($address, '/metrics');
        self::assertStringContainsString("spindle_pool_crashed_total{pool=\"{$queue}\"} 1\n", $statistics);
        self::assertStringContainsString("spindle_pool_workers{pool=\"{$queue}\"} 1\n", $statistics);
        self::assertStringContainsString("spindle_pool_claimed{pool=\"{$queue}\"} 1\n", $statistics);
        self::assertStringContainsString("spindle_pool_done_total{pool=\"{$queue}\"} 1\n", $statistics);
        self::assertStringContainsString('<!doctype html>', self::get($address, '/'));
        self::assertStringStartsWith('HTTP/1.1 200 ', self::get($address, '/healthz'));
        $process->signal(\SIGTERM);
        Eventually::holds(
            static fn(): bool => str_starts_with(self::get($address, '/healthz'), 'HTTP/1.1 503 '),
            'it is not ready any more',
        );
        touch($this->path('open'));

        self::assertSame(0, $process->wait());
    }

    public function testTheAdminAddressReportsTheStatisticsOfTheQueue(): void
    {
        $queue = self::newQueue();
        $address = Streams::unusedAddress();
        $process = $this->work(
            $queue,
            ['--workers', '2', '--heartbeat', '0.1', '--admin', $address, '--admin-host', 'a'],
        );
        $dead = $this->executor($queue, JobRetryPolicy::none())->submit(
            static fn() => throw new \DomainException('bad'),
        );
        try {
            $dead->await();
        } catch (TaskFailedException) {
        }
        $executor = $this->executor($queue);
        $executor->dispatch($this->gated('of the key'), exclusiveKey: 'customer 7');
        $this->waitForFile('of the key.runs');
        $executor->dispatch($this->gated('blocked'), exclusiveKey: 'customer 7');
        $executor->dispatch($this->gated('first'));
        $this->waitForFile('first.runs');
        $executor->dispatch($this->gated('waits'));
        $executor->dispatch($this->gated('waits as well'));
        $executor->dispatch(static fn(): int => 1, delay: 3600.0);
        $others = $this->executor(self::newQueue());
        $others->dispatch(static fn(): int => 1, delay: 3600.0);

        $names = ['waiting', 'delayed', 'blocked', 'dead', 'agents'];
        self::awaitFigures($address, $queue, array_combine($names, [2, 1, 1, 1, 1]));
        $age = self::figure($address, $queue, 'oldest_waiting_seconds');
        self::assertGreaterThan(0.0, $age);
        self::assertLessThan(60.0, $age);
        Eventually::holds(
            static fn(): bool => self::figure($address, $queue, 'oldest_waiting_seconds') > $age,
            'it grows',
            20.0,
        );
        touch($this->path('open'));
        self::awaitFigures(
            $address,
            $queue,
            [...array_combine($names, [0, 1, 0, 1, 1]), 'oldest_waiting_seconds' => 0],
        );
        $process->signal(\SIGTERM);

        self::assertSame(0, $process->wait(), $process->getErrorOutput());
    }

    public function testTheLogMayBeJsonOrWarningsOnly(): void
    {
        $process = $this->work(self::newQueue(), ['--log-format', 'json']);
        $process->signal(\SIGTERM);
        self::assertSame(0, $process->wait());

        $entries = array_map(
            static fn(string $line): array => (array) json_decode($line, true, flags: \JSON_THROW_ON_ERROR),
            explode("\n", rtrim($process->getErrorOutput())),
        );
        self::assertSame(['info', 'info', 'info'], array_column($entries, 'level'));
        self::assertIsString($entries[0]['message'] ?? null);
        self::assertStringStartsWith('Serving the queue test-', $entries[0]['message']);

        $queue = self::newQueue();
        $quiet = $this->work($queue, ['--quiet'], '');
        self::assertSame(1, $this->executor($queue)->submit(static fn(): int => 1)->await());
        $quiet->signal(\SIGTERM);
        self::assertSame(0, $quiet->wait());
        self::assertSame('', $quiet->getErrorOutput());
    }

    public function testLinesOnStandardErrorAreEntriesOfAJsonLog(): void
    {
        $queue = self::newQueue();
        $process = $this->work($queue, ['--log-format', 'json']);
        $this->executor($queue)->submit(static function (): void {
            echo 'to standard output';
            fwrite(\STDERR, "one {queue}\xFF\n\n\ttwo\r\n");
            error_log('three');
        })->await();
        $entries = static fn(): array => array_map(
            static fn(string $line): array => (array) json_decode($line, true, flags: \JSON_THROW_ON_ERROR),
            array_filter(explode("\n", $process->getErrorOutput()), static fn(string $line): bool => $line !== ''),
        );
        Eventually::holds(static fn(): bool => str_contains($process->getErrorOutput(), 'three'), 'it is logged');
        $written = [];
        foreach ($entries() as $entry) {
            self::assertSame($queue, $entry['queue'] ?? null);
            if ($entry['level'] === 'warning') {
                $written[] = $entry['message'];
            }
        }

        self::assertSame(
            [
                "A worker wrote to standard error: one {queue}\u{FFFD}",
                "A worker wrote to standard error: \ttwo",
                'A worker wrote to standard error: three',
            ],
            $written,
        );
        self::assertSame('to standard output', $process->getOutput());
    }

    public function testAnEntryOfAJsonLogAboutAFailedAttemptHasTheIdOfTheJob(): void
    {
        $queue = self::newQueue();
        $process = $this->work($queue, ['--log-format', 'json', '--quiet'], '');
        $executor = $this->executor($queue, JobRetryPolicy::none());
        foreach (['order-7', '817'] as $id) {
            $executor->dispatch(static fn() => throw new \RuntimeException('no disk'), $id);
            $executor->attach($id)->catch(static fn(\Throwable $failure): bool => true)->await();
        }
        Eventually::holds(static fn(): bool => substr_count($process->getErrorOutput(), "\n") === 2, 'both are logged');

        $entries = array_map(
            static fn(string $line): array => (array) json_decode($line, true, flags: \JSON_THROW_ON_ERROR),
            explode("\n", rtrim($process->getErrorOutput())),
        );
        self::assertSame(['order-7', '817'], array_column($entries, 'job'));
        self::assertSame([$queue, $queue], array_column($entries, 'queue'));
    }

    public function testABrokerThatRefusesHasAStatusOfItsOwn(): void
    {
        $port = Redis::shared()->port;
        $work = $this->remote(
            ['work', '--queue', 'q', '--allow-root'],
            ['SPINDLE_BROKER' => 'redis://:' . self::SECRET . "@127.0.0.1:{$port}"],
        );
        $queue = $this->remote(
            ['queue', 'show', 'q'],
            ['SPINDLE_BROKER' => 'redis://:' . self::SECRET . "@127.0.0.1:{$port}"],
        );
        foreach ([$work, $queue] as $process) {
            self::assertSame(253, $process->run());
            self::assertStringContainsString(
                "The engine at 127.0.0.1:{$port} can't be used: it does not accept the user or the password",
                $process->getErrorOutput(),
            );
            self::assertStringNotContainsString(self::SECRET, $process->getErrorOutput() . $process->getOutput());
        }
    }

    #[TestWith(['disable_functions=proc_open', 'this PHP has no proc_open(); see disable_functions in php.ini'])]
    #[TestWith(['open_basedir=/', 'is an executable file that open_basedir'])]
    public function testWithoutWorkersNoJobIsClaimed(string $setting, string $reason): void
    {
        $queue = self::newQueue();
        $this->executor($queue)->dispatch(static fn(): int => 1);
        $setting = str_replace('=/', '=' . \dirname(__DIR__, 2) . ':' . $this->path(), $setting);
        $process = new Process(
            [\PHP_BINARY, '-d', $setting, Program::path(), 'work', '--queue', $queue, '--allow-root'],
            $this->path(),
            $this->environment([]),
        );
        $process->run();

        self::assertSame(254, $process->getExitCode());
        self::assertStringContainsString($reason, $process->getErrorOutput());
        self::assertMatchesRegularExpression('/^spindle: .*\n$/D', $process->getErrorOutput(), 'one line');
        self::assertStringNotContainsString('CommandPoolOptions', $process->getErrorOutput());
        $broker = new RedisBroker(Redis::shared()->url());
        self::assertCount(1, $broker->listJobs($queue, JobStatus::Waiting, 10));
    }

    #[TestWith(['exit(3);', 'Check --bootstrap'])]
    #[TestWith(['throw new LogicException("config missing");', 'app.php threw LogicException: config missing in'])]
    #[TestWith(['if (', 'app.php threw ParseError: '])]
    public function testAnAgentWhoseBootstrapCannotBeLoadedServesNoQueue(string $code, string $message): void
    {
        $bootstrap = $this->file('app.php', "<?php {$code}");
        $queue = self::newQueue();
        $arguments = ['work', '--queue', $queue, '--allow-root', ...$this->loadingTests(['--bootstrap', $bootstrap])];
        $process = $this->ranRemote($arguments);

        self::assertSame(254, $process->getExitCode(), $process->getErrorOutput());
        self::assertStringContainsString($message, $process->getErrorOutput());
        self::assertStringNotContainsString('WorkerPoolOptions', $process->getErrorOutput());
        self::assertStringNotContainsString('Serving', $process->getErrorOutput());
    }

    /** @param list<int> $signals */
    #[TestWith([[\SIGTERM]])]
    #[TestWith([[\SIGHUP, \SIGTERM]])]
    public function testAnAgentThatIsStoppedWhileItsBootstrapIsLoadedEnds(array $signals): void
    {
        $queue = self::newQueue();
        $process = $this->work(
            $queue,
            ['--bootstrap', $this->file('app.php', '<?php echo "loading"; while (true) { usleep(5000); }')],
            '',
        );
        Eventually::holds(static fn(): bool => $process->getOutput() === 'loading', 'the file is being loaded');
        array_map($process->signal(...), $signals);

        Eventually::holds(static fn(): bool => !$process->isRunning(), 'the agent ends');
        self::assertSame(0, $process->getExitCode(), $process->getErrorOutput());
        self::assertStringNotContainsString('Serving', $process->getErrorOutput());
    }

    public function testASignalThatArrivesWhileTheFirstWorkerIsStartedIsHandled(): void
    {
        self::assertSame(1, Host::call(self::class . '::signalAtTheFirstStart'));
    }

    public static function signalAtTheFirstStart(): int
    {
        $count = 0;
        EventLoop::onSignal(\SIGHUP, static function () use (&$count): void {
            ++$count;
        });
        $logger = new class extends AbstractLogger {
            public function log(mixed $level, string|\Stringable $message, array $context = []): void
            {
                if ($message === 'Worker {id} was started') {
                    posix_kill((int) getmypid(), \SIGHUP);
                }
            }
        };
        (new WorkerTrial(new WorkerPoolOptions(logger: $logger)))->run();

        return $count;
    }

    public function testTheLogAndTheDeadLetterOfAFailureNameTheTask(): void
    {
        $queue = self::newQueue();
        $process = $this->work($queue, ['--workers', '2', '--max-result', '1000']);
        $broker = new RedisBroker(Redis::shared()->url());
        $policy = new JobRetryPolicy(maxAttempts: 1, maxCrashes: 1);
        $options = new RemoteOptions(timeout: 0.5);
        $executor = new RemoteExecutor($broker, $queue, new SigningKeys([AgentProgram::KEY]), $policy, $options);
        $executor->dispatch(static fn() => exit(4));
        $line = __LINE__ - 1;
        $executor->dispatch([self::class, 'neverEnd']);
        $executor->dispatch([self::class, 'returnStream']);
        $executor->dispatch([self::class, 'returnMuch'], 'much');
        $executor->dispatch([self::class, 'throwNoDisk']);
        Eventually::holds(static fn(): bool => $broker->statistics($queue)['dead'] === 5, 'they are dead letters');

        $reasons = array_map(strval(...), array_column($broker->listJobs($queue, JobStatus::Dead, 10), 'reason'));
        sort($reasons);
        $name = 'closure at ' . __FILE__ . ":{$line}: The task called exit(4)";
        $limit = 'the task exceeded its limit of 0.5 s (RemoteOptions::$timeout)';
        self::assertSame(self::class . "::neverEnd(): {$limit}", $reasons[0]);
        self::assertStringStartsWith(self::class . '::returnMuch(): The result of the job much has 1001', $reasons[1]);
        self::assertStringStartsWith(self::class . '::returnStream(): The result is an open', $reasons[2]);
        $thrown = self::class . '::throwNoDisk(): RuntimeException: no disk (' . __FILE__ . ':';
        self::assertStringStartsWith($thrown, $reasons[3]);
        self::assertStringStartsWith($name, $reasons[4]);
        self::assertStringContainsString("has failed: {$name}", $process->getErrorOutput());
        self::assertStringContainsString("has failed: {$thrown}", $process->getErrorOutput());
    }

    public static function throwNoDisk(): never
    {
        throw new \RuntimeException('no disk');
    }

    /** @return resource */
    public static function returnStream(): mixed
    {
        return \STDIN;
    }

    public static function returnMuch(): string
    {
        return str_repeat('x', 1001);
    }

    public static function neverEnd(): never
    {
        while (true) {
            usleep(5000);
        }
    }

    public function testABrokerThatWouldLoseJobsIsRefused(): void
    {
        $redis = TemporaryRedis::start(['maxmemory-policy' => 'allkeys-lru']);
        $process = $this->remote(
            ['work', '--queue', 'q', '--allow-root', '--log-format', 'json'],
            ['SPINDLE_BROKER' => $redis->socketUrl()],
        );
        self::assertSame(253, $process->run());

        $entry = json_decode($process->getErrorOutput(), true, flags: \JSON_THROW_ON_ERROR);
        self::assertIsArray($entry);
        self::assertSame('critical', $entry['level'] ?? null);
        self::assertIsString($entry['message'] ?? null);
        self::assertStringContainsString('set "maxmemory-policy noeviction"', $entry['message']);
        self::assertStringNotContainsString($redis->password, $process->getErrorOutput());
        $redis->stop();
    }

    public function testABrokerThatIsNotThereIsWaitedFor(): void
    {
        $redis = TemporaryRedis::start();
        $redis->kill();
        $file = $this->file('broker', "# of tests\n\n{$redis->url()}\n", 0o600);
        $queue = self::newQueue();
        $process = $this->work($queue, ['--broker-file', $file], 'is not available');
        $redis->restart();

        Eventually::holds(
            static fn(): bool => str_contains($process->getErrorOutput(), "Serving the queue {$queue} as"),
            'it has found it',
            10.0,
        );
        $process->signal(\SIGTERM);
        self::assertSame(0, $process->wait());
        $redis->stop();
    }

    public function testASecondSignalEndsItThoughTheBrokerIsGoneAndTheLeaseIsLong(): void
    {
        $redis = TemporaryRedis::start();
        $file = $this->file('broker', "{$redis->url()}\n", 0o600);
        $process = $this->work(self::newQueue(), ['--broker-file', $file, '--lease', '600']);
        $redis->kill();
        Eventually::holds(
            static fn(): bool => str_contains($process->getErrorOutput(), 'is not available'),
            'it has noticed',
            10.0,
        );
        $process->signal(\SIGTERM);
        Eventually::holds(static fn(): bool => str_contains($process->getErrorOutput(), 'Stopping'), 'it stops');
        $process->signal(\SIGTERM);

        self::assertSame(143, $process->wait(), $process->getErrorOutput());
        $redis->stop();
    }

    public function testAThirdSignalExitsWithTheStatusOfTheSecondOne(): void
    {
        $redis = TemporaryRedis::start();
        $queue = self::newQueue();
        $process = $this->work($queue, ['--broker-file', $this->file('broker', $redis->url(), 0o600)]);
        $executor = new RemoteExecutor(new RedisBroker($redis->url()), $queue, self::keys());
        $executor->submit($this->gated('task'))->ignore();
        $this->waitForFile('task.runs');
        posix_kill((int) $redis->pid(), \SIGSTOP);
        foreach (['Stopping', 'Ending 1 running jobs'] as $entry) {
            $process->signal(\SIGTERM);
            Eventually::holds(static fn(): bool => str_contains($process->getErrorOutput(), $entry), $entry);
        }
        $process->signal(\SIGTERM);

        self::assertSame(143, $process->wait(), $process->getErrorOutput());
        $executor->kill();
        $redis->kill();
    }

    public function testAnAddressThatIsTakenIsOneLine(): void
    {
        $taken = Streams::server();
        $address = (string) stream_socket_get_name($taken, false);
        $process = $this->ranRemote(['work', '--queue', 'q', '--allow-root', '--admin', $address]);

        self::assertOutcome(
            254,
            '',
            $process,
            "spindle: The server can't listen on {$address}: address already in use. Another program listens there:"
            . " stop it, or choose another address\n",
        );
    }

    /**
     * @return iterable<string, array{list<string>, string, 2?: array<string, string>}> options, the message, the
     *     environment
     */
    public static function mistakes(): iterable
    {
        $advice = 'Create one: (umask 077; head -c 32 /dev/urandom | base64 > spindle.key)';
        $password = 'option --broker: all users of this machine can read a password in a command line;'
            . " change the engine's password, and give the address in SPINDLE_BROKER or in the file of --broker-file";
        $address = 'the address of an engine must be redis://:password@host:port/database, rediss:// for TLS,'
            . ' or unix://:password@/path/of/the/socket, with special characters of the password percent-encoded,'
            . ' but it does not begin with redis://, rediss:// or unix://';
        yield 'no queue' => [[], 'option --queue: give the name of the queue to serve (--queue thumbnails)'];
        yield 'a queue' => [
            ['--queue', 'a b'],
            "option --queue: 'a b' is not allowed; give 1 to 64 letters, digits, dots, hyphens and underscores",
        ];
        yield 'an address for a queue' => [
            ['--queue', 'redis://:' . self::SECRET . '@host'],
            "option --queue: 'redis://***@host' is not allowed;"
            . ' give 1 to 64 letters, digits, dots, hyphens and underscores',
        ];
        yield 'no broker' => [
            ['--queue', 'q'],
            'no address of an engine is given; use --broker, --broker-file, or the environment variable SPINDLE_BROKER'
            . ' (redis://:password@host:port)',
            ['SPINDLE_BROKER' => ''],
        ];
        yield 'a password' => [['--queue', 'q', '--broker', 'redis://:' . self::SECRET . '@host'], $password];
        yield 'a password that is not encoded' => [
            ['--queue', 'q', '--broker', 'redis://jo:a/' . self::SECRET . '@host'],
            $password,
        ];
        yield 'a password for a socket' => [
            ['--queue', 'q', '--broker', 'unix://:' . self::SECRET . '@/run/redis.sock'],
            $password,
        ];
        yield 'a password without an option' => [
            ['--queue', 'q', 'redis://:' . self::SECRET . '@host'],
            'No arguments expected for "work" command, got "redis://***@host" (see --help)',
        ];
        yield 'an address' => [
            ['--queue', 'q', '--broker', 'host:6379'],
            "option --broker: {$address}",
        ];
        yield 'an address in the environment' => [
            ['--queue', 'q'],
            "SPINDLE_BROKER: {$address}",
            ['SPINDLE_BROKER' => 'http://:' . self::SECRET . '@host'],
        ];
        yield 'two brokers' => [
            ['--queue', 'q', '--broker', 'redis://host', '--broker-file', 'x'],
            'option --broker-file: it is not allowed together with --broker; give one of them',
        ];
        yield 'a weight' => [
            ['--queue', 'q=0'],
            "option --queue: 'q=0' is not allowed; give NAME=N, with a weight N from 1 to 9999",
        ];
        yield 'no file' => [
            ['--queue', 'q', '--broker-file', 'none'],
            "option --broker-file: 'none' does not exist or can't be read; write the address into it, such as"
            . ' redis://:password@host:port, and set its mode to 0600',
        ];
        yield 'a folder' => [
            ['--queue', 'q', '--broker-file', 'folder'],
            "option --broker-file: 'folder' is a folder; give a file that has the address",
        ];
        yield 'a file with another address' => [
            ['--queue', 'q', '--broker-file', 'other'],
            "option --broker-file: 'other': {$address}",
        ];
        yield 'a file that others can read' => [
            ['--queue', 'q', '--broker-file', 'exposed'],
            "option --broker-file: users other than the owner can access 'exposed' (mode 0644);"
            . ' set the mode to 0600, or copy the file (install -m 600) if another user owns it;'
            . " if other users may have read the engine's password, change the password",
        ];
        yield 'a file without an address' => [
            ['--queue', 'q', '--broker-file', 'empty'],
            "option --broker-file: 'empty' contains no address; write one into it, such as redis://:password@host:port",
        ];
        yield 'no key file' => [
            ['--queue', 'q'],
            'No key file is given: set SPINDLE_KEY_FILE to the file with the keys that sign jobs and outcomes.'
            . " {$advice}",
            ['SPINDLE_KEY_FILE' => ''],
        ];
        yield 'a key file that others can read' => [
            ['--queue', 'q'],
            "Users other than the owner can access the key file 'exposed' (mode 0644)."
            . ' Set the mode to 0600, or copy the file (install -m 600) if another user owns it.'
            . ' If other users may have read the keys, replace the keys.',
            ['SPINDLE_KEY_FILE' => 'exposed'],
        ];
        yield 'workers' => [
            ['--queue', 'q', '--workers', '0'],
            "option --workers: '0' is not allowed; give a number of workers from 1 to 10000",
        ];
        yield 'too many workers' => [
            ['--queue', 'q', '--workers', '999999999'],
            "option --workers: '999999999' is not allowed; give a number of workers from 1 to 10000",
        ];
        yield 'a lease' => [
            ['--queue', 'q', '--lease', '4'],
            "option --lease: '4' is not allowed; give a number of seconds, or a number with s, m, h or d such as 10m,"
            . ' at most 1000000000 s, more than 4, which is --heartbeat and --lease-margin together',
        ];
        yield 'a heartbeat beyond the default lease' => [
            ['--queue', 'q', '--heartbeat', '20'],
            "option --lease: '10' is not allowed; give a number of seconds, or a number with s, m, h or d such as 10m,"
            . ' at most 1000000000 s, more than 23, which is --heartbeat and --lease-margin together',
        ];
        yield 'no heartbeat' => [
            ['--queue', 'q', '--heartbeat', '0'],
            "option --heartbeat: '0' is not allowed; give a number of seconds, or a number with s, m, h or d such as"
            . ' 10m, at most 1000000000 s, more than 0',
        ];
        yield 'a bootstrap' => [
            ['--queue', 'q', '--bootstrap', 'none.php'],
            "option --bootstrap: 'none.php' is not a readable file; give a PHP file that each worker loads",
        ];
        yield 'memory' => [
            ['--queue', 'q', '--memory-limit', 'much'],
            "option --memory-limit: 'much' is not allowed; give a number of bytes, at least 8M,"
            . ' optionally with K, M or G, or -1 for no limit',
        ];
        yield 'an address for operators' => [
            ['--queue', 'q', '--admin', '8080'],
            "option --admin: '8080' is not allowed; give host:port, [IPv6]:port, with a port from 0 to 65535,"
            . ' or unix:///path',
        ];
        yield 'a format' => [
            ['--queue', 'q', '--log-format', 'xml'],
            "option --log-format: 'xml' is not allowed; give text or json",
        ];
    }

    /**
     * @param list<string>                $options
     * @param array<string, string> $environment
     */
    #[DataProvider('mistakes')]
    public function testAMistakeIsOneLineAndNothingStarts(
        array $options,
        string $message,
        array $environment = [],
    ): void {
        $this->file('exposed', Redis::shared()->url());
        $this->file('empty', "# nothing\n", 0o600);
        $this->file('other', "host:6379\n", 0o600);
        mkdir($this->path('folder'), 0o755);
        $process = $this->ranRemote(['work', '--allow-root', ...$options], $environment);

        self::assertOutcome(255, '', $process, "spindle: {$message}\n");
        self::assertStringNotContainsString(self::SECRET, $process->getErrorOutput());
    }

    public function testRootIsRefused(): void
    {
        if (posix_geteuid() !== 0) {
            self::markTestSkipped('Only root is refused');
        }
        $process = $this->ranRemote(['work', '--queue', 'q']);

        self::assertOutcome(
            255,
            '',
            $process,
            'spindle: spindle work runs as root, so anyone with a key could run any code as root;'
            . ' run it as another user, or, in a container whose root has no more rights than other users,'
            . " give --allow-root\n",
        );
    }

    public function testTheHelpNamesEverySignalAndExitStatusInLinesThatFitATerminal(): void
    {
        foreach ([
            'work' => [
                '--queue',
                '--broker',
                '--broker-file',
                '--workers',
                '--lease',
                '--admin',
                '--allow-root',
                'HUP',
                'TERM',
                '130',
                '143',
                '253',
                '254',
                '255',
            ],
            'queue' => ['show', 'retry', 'delete', 'purge', '--broker', '--json', '253', '254', '255'],
        ] as $command => $words) {
            $process = $this->ran([$command, '--help']);

            self::assertSame(0, $process->getExitCode());
            foreach ($words as $word) {
                self::assertStringContainsString($word, $process->getOutput());
            }
            self::assertSame(
                [],
                array_values(array_filter(
                    explode("\n", $process->getOutput()),
                    static fn(string $line): bool => \strlen($line) > 80,
                )),
            );
        }
    }

    /** Creates two releases with different code, and the link "current" to the first one. */
    private function makeReleases(): void
    {
        foreach ([1, 2] as $version) {
            mkdir($this->path("release {$version}"));
            $this->file("release {$version}/app.php", "<?php const VERSION = {$version};");
        }
        symlink('release 1', $this->path('current'));
    }

    private function switchRelease(): void
    {
        symlink('release 2', $this->path('next'));
        rename($this->path('next'), $this->path('current'));
    }

    /** @return \Closure(): array{string, int} a task that writes a file and waits; returns the number of its attempt */
    private function gated(string $name): \Closure
    {
        $folder = $this->path();

        return static function () use ($folder, $name): array {
            touch("{$folder}/{$name}.runs");
            while (!file_exists("{$folder}/open")) {
                usleep(5000);
            }

            return [$name, TaskContext::current()->attempt];
        };
    }

    /** @param array<string, int> $statistics */
    private static function awaitFigures(string $address, string $queue, array $statistics): void
    {
        $lines = array_map(
            static fn(string $name, int $figure): string => "\nspindle_pool_{$name}{pool=\"{$queue}\"} {$figure}\n",
            array_keys($statistics),
            $statistics,
        );
        foreach ($lines as $line) {
            Eventually::holds(
                static fn(): bool => str_contains(self::get($address, '/metrics'), $line),
                "there is{$line}",
                20.0,
            );
        }
    }

    private static function figure(string $address, string $queue, string $name): float
    {
        self::assertSame(
            1,
            preg_match("/^spindle_pool_{$name}\\{pool=\"{$queue}\"} (\S+)$/m", self::get($address, '/metrics'), $match),
        );

        return (float) $match[1];
    }

    private static function get(string $address, string $path): string
    {
        $client = stream_socket_client("tcp://{$address}");
        self::assertNotFalse($client);
        stream_set_timeout($client, 10);
        fwrite($client, "GET {$path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
        $answer = (string) stream_get_contents($client);
        fclose($client);

        return $answer;
    }
}
