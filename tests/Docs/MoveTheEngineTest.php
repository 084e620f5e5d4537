<?php

declare(strict_types=1);

namespace Spindle\Tests\Docs;

use Amp\TimeoutCancellation;
use Spindle\Remote\JobRetryPolicy;
use Spindle\Remote\JobStatus;
use Spindle\Remote\RedisBroker;
use Spindle\Remote\RemoteExecutor;
use Spindle\Remote\SigningKeys;
use Spindle\Remote\Testing\TemporaryRedis;
use Spindle\Tests\CatchesThrown;
use Spindle\Tests\Remote\AgentProgram;
use Spindle\Tests\Text;
use Spindle\Tests\TidyTestCase;
use Spindle\Worker\TaskFailedException;
use Symfony\Component\Process\Process;

/** Follows the guide about another server for the engine, with two servers and with jobs that count their runs. */
final class MoveTheEngineTest extends TidyTestCase
{
    use CatchesThrown;

    public const PAGE = 'docs/how-to/move-the-engine.md';

    private const PASSWORD = 'secret';

    private Workplace $workplace;
    private TemporaryRedis $old;
    private TemporaryRedis $new;

    protected function setUp(): void
    {
        [$this->old, $this->new] = [TemporaryRedis::start(), TemporaryRedis::start()];
        $this->new->command('CONFIG', 'SET', 'masterauth', self::PASSWORD);
        foreach ([$this->old, $this->new] as $redis) {
            $redis->command('CONFIG', 'SET', 'requirepass', self::PASSWORD);
        }
        $this->workplace = new Workplace();
        $this->workplace->useEngine(self::url($this->old));
        foreach (['broker' => $this->old, 'broker.new' => $this->new] as $name => $redis) {
            chmod($this->workplace->put($name, self::url($redis)), 0o600);
        }
    }

    protected function tearDown(): void
    {
        $this->workplace->remove();
        $this->old->stop();
        $this->new->stop();
    }

    public function testNothingIsLostOrRepeatedByACopy(): void
    {
        $caller = $this->caller($this->old);
        $agent = $this->startAgent();
        $caller->dispatch($this->job('done'), 'done');
        $caller->attach('done')->await(new TimeoutCancellation(20.0));
        $this->dispatchDeadLetter($caller);
        $agent->stop(30);
        foreach (['a', 'b', 'c'] as $name) {
            $caller->dispatch($this->job($name), $name);
        }
        $caller->dispatch($this->job('late'), 'late', delay: 3600.0);

        $this->follow('Copy everything');

        $caller = $this->caller($this->new);
        self::assertSame(JobStatus::Delayed, $caller->status('late'));
        self::assertSame(JobStatus::Dead, $caller->status('dead'));
        self::assertSame('done', $caller->attach('done')->await(new TimeoutCancellation(20.0)));
        $this->startAgent();
        foreach (['a', 'b', 'c'] as $name) {
            self::assertSame($name, $caller->attach($name)->await(new TimeoutCancellation(20.0)));
        }
        self::assertSame(['a', 'b', 'c', 'done'], $this->runs());
    }

    public function testNothingIsLostOrRepeatedByTwoEngines(): void
    {
        $caller = $this->caller($this->old);
        $this->startAgent();
        $this->dispatchDeadLetter($caller);
        $this->workplace->put('disk', '');
        $caller->dispatch($this->job('slow', 500_000), 'slow');
        $caller->dispatch($this->job('waits'), 'waits');
        $caller->dispatch($this->job('late'), 'late', delay: 1.0);

        $this->follow('Let the old queues run empty');

        $caller->attach('dead')->await(new TimeoutCancellation(20.0));
        $new = $this->caller($this->new);
        $new->dispatch($this->job('new'), 'new');
        self::assertSame('new', $new->attach('new')->await(new TimeoutCancellation(20.0)));
        self::assertSame(['dead', 'late', 'new', 'slow', 'waits'], $this->runs());
    }

    /** Runs the blocks of a section. */
    private function follow(string $title): void
    {
        $page = (string) file_get_contents(Workplace::project() . '/' . self::PAGE);
        $section = explode("\n## ", explode("\n## {$title}\n", $page)[1])[0];
        foreach (CodeBlock::allIn($section) as $block) {
            foreach ($block->skipped === null ? $block->commands() : [] as [$command, $expected]) {
                $command = strtr($command, [
                    '-h old.internal' => "-p {$this->old->port}",
                    '-h new.internal' => "-p {$this->new->port}",
                    'old.internal 6379' => "127.0.0.1 {$this->old->port}",
                ]);
                if ($block->stays) {
                    $this->workplace->keepRunning($command);
                    continue;
                }
                $process = $this->workplace->shell('export REDISCLI_AUTH=' . self::PASSWORD . "\n{$command}");
                self::assertSame(0, $process->getExitCode(), "{$command}\n{$process->getOutput()}");
                $expected === ''
                    ? self::assertSame('', $process->getOutput(), $command)
                    : ExpectedOutput::assertMatches($expected, $process->getOutput(), $command);
            }
        }
    }

    private function startAgent(): Process
    {
        return $this->workplace->keepRunning('spindle work --queue thumbnails --broker-file broker --quiet');
    }

    private function dispatchDeadLetter(RemoteExecutor $caller): void
    {
        $file = "{$this->workplace->folder}/disk";
        $job = $this->job('dead');
        $caller->dispatch(
            static fn(): string => is_file($file) ? $job() : throw new \DomainException('no disk'),
            'dead',
        );
        self::thrown(
            TaskFailedException::class,
            static fn(): mixed => $caller->attach('dead')->await(new TimeoutCancellation(20.0)),
        );
    }

    /** @return \Closure(): string a task that writes its name into a file */
    private function job(string $name, int $microseconds = 0): \Closure
    {
        $file = "{$this->workplace->folder}/runs";

        return static function () use ($file, $name, $microseconds): string {
            usleep($microseconds);
            file_put_contents($file, "{$name}\n", \FILE_APPEND);

            return $name;
        };
    }

    /** @return list<string> the names of the tasks that have run, in alphabetical order */
    private function runs(): array
    {
        $names = Text::lines("{$this->workplace->folder}/runs");
        sort($names);

        return $names;
    }

    private function caller(TemporaryRedis $redis): RemoteExecutor
    {
        return new RemoteExecutor(
            new RedisBroker(self::url($redis)),
            'thumbnails',
            new SigningKeys([AgentProgram::KEY]),
            JobRetryPolicy::none(),
        );
    }

    private static function url(TemporaryRedis $redis): string
    {
        return 'redis://:' . self::PASSWORD . "@127.0.0.1:{$redis->port}";
    }
}
