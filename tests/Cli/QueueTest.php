<?php

declare(strict_types=1);

namespace Spindle\Tests\Cli;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Spindle\Remote\Job;
use Spindle\Remote\JobCancelledException;
use Spindle\Remote\JobRetryPolicy;
use Spindle\Remote\JobStatus;
use Spindle\Remote\QueueFullException;
use Spindle\Remote\RedisBroker;
use Spindle\Remote\RemoteExecutor;
use Spindle\Remote\RemoteOptions;
use Spindle\Remote\Settlement;
use Spindle\Remote\SettlementKind;
use Spindle\Remote\Testing\TemporaryRedis;
use Spindle\Tests\CatchesThrown;
use Spindle\Tests\EndsInTime;
use Spindle\Tests\Fork\ProgramResult;
use Spindle\Tests\Remote\Redis;

final class QueueTest extends TestCase
{
    use CatchesThrown;
    use EndsInTime;
    use RunsWork;

    private const OWNER = "host:1:\e[31mab";

    public function testItShowsTheNumbersOfJobsAndTheirOwners(): void
    {
        $queue = $this->filled();

        $process = $this->ranRemote(['queue', 'show', $queue, '--no-ansi']);

        $time = '\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ';
        self::assertSame([0, ''], [$process->getExitCode(), $process->getErrorOutput()]);
        self::assertMatchesRegularExpression(<<<REGEX
            ~^{$queue}
              waiting  3  the oldest for 0:0\d
              running  1  1 agent serves the queue
              delayed  1
              blocked  0
              dead     2
              in all   7 submitted, 0 done, 2 died, 0 cancelled; 0 retried, 0 requeued from lost agents
            running
              id         owner              since                 crashes  failures
              running-1  host:1:\\\\033\[31mab  {$time}  0        0
            delayed
              id         due                   crashes  failures
              delayed-1  {$time}  0        0
            dead
              id      died                  attempts  owner              reason
              dead-\d  {$time}  5         host:1:\\\\033\[31mab  no\\\\033\[2J\\\\302\\\\233 disk
              dead-\d  {$time}  5         host:1:\\\\033\[31mab  no\\\\033\[2J\\\\302\\\\233 disk
            $~D
            REGEX, $process->getOutput());
    }

    public function testADelayedJobWithoutAnAgentIsShownWithWhatItWaitsFor(): void
    {
        $queue = self::newQueue();
        self::broker()->submit($queue, [new Job('due', 'frame', delay: 3600.0)], 10_000, '', false);
        $remark = '  delayed  1  until an agent serves the queue, even if they are due';

        self::assertStringContainsString("\n{$remark}\n", $this->ranRemote(['queue', 'show', $queue])->getOutput());
        self::broker()->renewLease($queue, self::OWNER, 60.0, true, '{}');
        self::assertStringContainsString("\n  delayed  1\n", $this->ranRemote(['queue', 'show', $queue])->getOutput());
    }

    public function testTheReferenceDescribesTheStatisticsOfTheJson(): void
    {
        $statistics = (array) ($this->json(['show', self::newQueue()])['statistics'] ?? null);
        $page = (string) file_get_contents(\dirname(__DIR__, 2) . '/docs/reference/cli.md');

        self::assertNotSame([], $statistics);
        foreach (array_keys($statistics) as $name) {
            self::assertMatchesRegularExpression("~^\\| `.*`{$name}`|^\\| `{$name}`~m", $page);
        }
    }

    public function testADeadLetterIsShownInFullByItsId(): void
    {
        $queue = $this->filled();
        $process = $this->ranRemote(['queue', 'show', $queue, 'dead-2']);

        self::assertSame([0, ''], [$process->getExitCode(), $process->getErrorOutput()]);
        self::assertMatchesRegularExpression(<<<'REGEX'
            ~^id        dead-2
            status    dead
            died      \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ
            owner     host:1:\\033\[31mab
            attempts  5
            reason
              no\\033\[2J\\302\\233 disk
              #0 trace
            $~D
            REGEX, $process->getOutput());
        $job = (array) ($this->json(['show', $queue, 'dead-2'])['job'] ?? null);
        self::assertSame("no\e[2J\u{9b} disk\n#0 trace", $job['reason'] ?? null);
        self::assertSame(['dead-2', 'dead'], [$job['id'] ?? null, $job['status'] ?? null]);
    }

    public function testAPostponedJobIsShownWithTheTimeOfItsFirstPostponement(): void
    {
        $queue = self::newQueue();
        self::broker()->submit($queue, [new Job('one', 'frame')], 10_000, '', false);
        self::broker()->renewLease($queue, self::OWNER, 60.0, true, '{}');
        self::broker()->settleAndClaim($queue, self::OWNER, [], 1, 60.0);
        $postponed = new Settlement('one', 1, SettlementKind::Postpone, delay: 3600.0);
        self::broker()->settleAndClaim($queue, self::OWNER, [$postponed], 0, 60.0);

        $time = '\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ';
        self::assertMatchesRegularExpression(
            "~ 0 requeued from lost agents, 1 postponed\ndelayed\n"
            . "  id   due +crashes  failures  postponed_since\n  one  {$time}  0        0         {$time}\n$~D",
            $this->ranRemote(['queue', 'show', $queue, '--no-ansi'])->getOutput(),
        );
        self::assertMatchesRegularExpression(
            "~^postponed_since  {$time}\n~m",
            $this->ranRemote(['queue', 'show', $queue, 'one'])->getOutput(),
        );
    }

    public function testAJobIsShownWithItsStatusAndItsKey(): void
    {
        $queue = self::newQueue();
        $jobs = [new Job('#817', 'frame', 'customer-7'), new Job('next', 'frame', 'customer-7')];
        self::broker()->submit($queue, $jobs, 10_000, '', false);
        self::broker()->renewLease($queue, self::OWNER, 60.0, true, '{}');
        self::broker()->settleAndClaim($queue, self::OWNER, [], 2, 60.0);

        $running = (array) ($this->json(['show', $queue, '817'])['job'] ?? null);
        self::assertSame(['817', 'running'], [$running['id'] ?? null, $running['status'] ?? null]);
        self::assertSame('customer-7', $running['exclusive_key'] ?? null);
        $shown = "id             next\nstatus         blocked\ncrashes        0\nfailures       0\n"
            . "exclusive_key  customer-7\n";
        self::assertOutcome(0, $shown, $this->ranRemote(['queue', 'show', $queue, 'next']));
    }

    public function testAJobsKeyThatResemblesThatOfAQueueIsNotListed(): void
    {
        $redis = TemporaryRedis::start();
        $broker = new RedisBroker($redis->url());
        $broker->submit('mail', [new Job('one', 'frame', exclusiveKey: 'customer:{5}:meta')], 10_000, '', false);
        $broker->submit('mail', [new Job('{5}:meta', 'frame', exclusiveKey: 'customer:{5}:meta')], 10_000, '', false);
        $broker->renewLease('mail', self::OWNER, 60.0, true, '{}');
        $broker->settleAndClaim('mail', self::OWNER, [], 2, 60.0);
        self::assertSame(1, $broker->statistics('mail')['blocked']);

        self::assertOutcome(0, <<<'TEXT'
            queue  waiting  running  delayed  blocked  dead  agents
            mail   0        1        0        1        0     1

            TEXT, $this->ranRemote(['queue', 'list', '--no-ansi'], ['SPINDLE_BROKER' => $redis->url()]));
        $redis->stop();
    }

    public function testAllQueuesAreListed(): void
    {
        $redis = TemporaryRedis::start();
        $engine = ['SPINDLE_BROKER' => $redis->url()];
        $list = fn(string $option = '--no-ansi'): ProgramResult => $this->ranRemote(
            ['queue', 'list', $option],
            $engine,
        );
        self::assertOutcome(0, "The engine has no queues. Is its address correct?\n", $list());

        $broker = new RedisBroker($redis->url());
        $jobs = [new Job('one', 'frame'), new Job('two', 'frame'), new Job('later', 'frame', delay: 60.0)];
        $broker->submit('mail', $jobs, 10_000, '', false);
        $broker->renewLease('mail', self::OWNER, 60.0, true, '{}');
        $broker->settleAndClaim('mail', self::OWNER, [], 1, 60.0);
        $broker->renewLease('idle', self::OWNER, 60.0, true, '{}');
        $redis->command('EVAL', "for i = 1, 5000 do redis.call('SET', 'other:' .. i, i) end", '0');

        self::assertOutcome(0, <<<'TEXT'
            queue  waiting  running  delayed  blocked  dead  agents
            idle   0        0        0        0        0     1
            mail   1        1        1        0        0     1

            TEXT, $list());
        $rows = (array) json_decode($list('--json')->getOutput(), true, 16, \JSON_THROW_ON_ERROR);
        $queues = (array) ($rows['queues'] ?? null);
        self::assertSame(['idle', 'mail'], array_column($queues, 'queue'));
        self::assertSame([0, 3], array_column(array_column($queues, 'statistics'), 'submitted_total'));
        $redis->stop();
    }

    public function testKeysThatCannotBeReadAreReportedLoudly(): void
    {
        $redis = TemporaryRedis::start();
        $engine = ['SPINDLE_BROKER' => $redis->url()];
        (new RedisBroker($redis->url()))->submit('mail', [new Job('one', 'frame')], 10_000, '', false);
        $redis->command('SET', 'spindle:{other}:meta', 'text');
        $redis->command('HSET', 'spindle:{not a queue}:meta', 'submitted', '1');

        $process = $this->ranRemote(['queue', 'list'], $engine);

        self::assertSame(1, $process->getExitCode());
        self::assertStringContainsString("\nmail   1  ", $process->getOutput());
        self::assertMatchesRegularExpression(
            "~^spindle: the keys spindle:\\{not a queue\\}:\\* of the engine can't be read: "
                . "The name is not valid for a queue\\. Another program [^\n]+\n"
                . "spindle: the keys spindle:\\{other\\}:\\* of the engine can't be read: [^\n]+WRONGTYPE[^\n]+\n$~D",
            $process->getErrorOutput(),
        );
        $rows = (array) json_decode(
            $this->ranRemote(['queue', 'list', '--json'], $engine)->getOutput(),
            true,
            16,
            \JSON_THROW_ON_ERROR,
        );
        $errors = array_column((array) ($rows['queues'] ?? null), 'error', 'queue');
        self::assertSame(['not a queue', 'other'], array_map(strval(...), array_keys($errors)));
        $redis->stop();
    }

    public function testAnUnknownJobIsReported(): void
    {
        self::assertOutcome(
            1,
            '',
            $this->ranRemote(['queue', 'show', 'nothing', 'order-7']),
            "spindle: the queue nothing has neither the job order-7 nor its outcome\n",
        );
    }

    public function testAQueueWithoutAJobOrAnAgentMayBeMisspelled(): void
    {
        $queue = self::newQueue();
        $question = "  {$queue} never had a job, and no agent serves it. Is this name correct?\n";
        $show = fn(): string => $this->ranRemote(['queue', 'show', $queue, '--no-ansi'])->getOutput();

        self::assertStringEndsWith("requeued from lost agents\n{$question}", $show());
        self::broker()->renewLease($queue, self::OWNER, 60.0, true, '{}');
        self::assertStringNotContainsString($question, $show());
        self::broker()->releaseLease($queue, self::OWNER);
        self::assertStringEndsWith($question, $show());
        self::submit($queue, 1, 'job');
        self::broker()->cancel($queue, ['job-1']);
        self::assertStringNotContainsString($question, $show());
    }

    public function testOneStatusMayBeShownAndSoManyAtMost(): void
    {
        $options = ['--status', 'waiting', '--limit', '2', '--no-ansi'];
        $process = $this->ranRemote(['queue', 'show', $this->filled(), ...$options]);

        self::assertMatchesRegularExpression(
            "~\nwaiting\n  id         since\n  waiting-1  \\S+\n  waiting-2  \\S+\n  and 1 more \\(see --limit\\)\n$~D",
            $process->getOutput(),
        );
        self::assertStringNotContainsString('dead-', $process->getOutput());
    }

    public function testAQueueMayBeNamedLikeAStatus(): void
    {
        self::kill('dead', 1);
        $process = $this->ranRemote(['queue', 'show', 'dead', '--no-ansi']);

        self::assertMatchesRegularExpression(
            "~^dead\n  waiting  0\n  (.+\n){5}dead\n  id      died .+\n  dead-1  .+\n$~D",
            $process->getOutput(),
        );
    }

    public function testColoursAreForTerminals(): void
    {
        $queue = self::newQueue();
        foreach (['--ansi' => "\e[33m{$queue}\e[39m\n", '--no-ansi' => "{$queue}\n"] as $option => $title) {
            $process = $this->ranRemote(['queue', 'show', $queue, $option]);

            self::assertStringStartsWith($title, $process->getOutput());
        }
    }

    public function testForProgramsAllOfItIsJson(): void
    {
        $queue = $this->filled();
        $shown = $this->json(['show', $queue]);

        self::assertSame($queue, $shown['queue'] ?? null);
        $statistics = (array) ($shown['statistics'] ?? null);
        self::assertSame(
            [3, 1, 1, 2],
            [
                $statistics['waiting'] ?? null,
                $statistics['running'] ?? null,
                $statistics['delayed'] ?? null,
                $statistics['dead'] ?? null,
            ],
        );
        $jobs = (array) ($shown['jobs'] ?? null);
        self::assertSame(['running', 'delayed', 'dead'], array_keys($jobs));
        $running = (array) ((array) $jobs['running'])[0];
        self::assertSame(['running-1', self::OWNER], [$running['id'] ?? null, $running['owner'] ?? null]);
        $dead = (array) ((array) $jobs['dead'])[0];
        self::assertSame("no\e[2J\u{9b} disk", $dead['reason'] ?? null);
        $job = (array) ($this->json(['show', $queue, 'dead-1'])['job'] ?? null);
        self::assertSame("no\e[2J\u{9b} disk\n#0 trace", $job['reason'] ?? null);
        self::assertSame(['queue' => $queue, 'retried' => 1], $this->json(['retry', $queue, 'dead-1']));
        self::assertSame(['queue' => $queue, 'deleted' => 1], $this->json(['delete', $queue, '--all']));
        self::assertSame(['queue' => $queue, 'purged' => 4], $this->json(['purge', $queue, '--yes']));
    }

    public function testDeadLettersAreRetriedOrDeletedByTheirIds(): void
    {
        $queue = $this->filled();
        foreach ([
            ['retry', 'dead-1', 'retried', [4, 1]],
            ['delete', 'dead-2', 'deleted', [4, 0]],
        ] as [$action, $id, $done, $expected]) {
            $process = $this->ranRemote(['queue', $action, $queue, $id, "no-{$id}", 'waiting-1', $id]);

            self::assertOutcome(
                1,
                "1 job {$done}\n",
                $process,
                "spindle: not among the dead letters of the queue {$queue}: no-{$id} waiting-1\n",
            );
            $statistics = self::broker()->statistics($queue);
            self::assertSame($expected, [$statistics['waiting'], $statistics['dead']]);
        }
    }

    public function testUnfinishedJobsAreCancelledByTheirIds(): void
    {
        $queue = $this->filled();
        $process = $this->ranRemote(['queue', 'cancel', $queue, 'waiting-1', 'running-1', 'dead-1', 'none']);

        self::assertOutcome(
            1,
            "2 jobs cancelled; 1 was running, and its agent ends it\n",
            $process,
            "spindle: not among the unfinished jobs of the queue {$queue}: dead-1 none\n",
        );
        self::assertOutcome(
            0,
            "id      waiting-1\nstatus  cancelled\n",
            $this->ranRemote(['queue', 'show', $queue, 'waiting-1']),
        );
        self::assertOutcome(0, "1 job cancelled\n", $this->ranRemote(['queue', 'cancel', $queue, 'delayed-1']));
        self::assertOutcome(
            1,
            "0 jobs cancelled\n",
            $this->ranRemote(['queue', 'cancel', $queue, 'delayed-1']),
            "spindle: not among the unfinished jobs of the queue {$queue}: delayed-1\n",
        );
        $cancelled = $this->json(['cancel', $queue, 'waiting-2', 'waiting-3', 'running-1']);
        self::assertSame(['queue' => $queue, 'cancelled' => 3, 'running' => 1], $cancelled);
        self::assertSame('cancelled', ((array) $this->json(['show', $queue, 'waiting-2'])['job'])['status'] ?? null);
        $statistics = self::broker()->statistics($queue);
        self::assertSame(
            [0, 1, 0, 2, 4],
            array_map(
                static fn(string $name): int => $statistics[$name],
                ['waiting', 'running', 'delayed', 'dead', 'cancelled_total'],
            ),
        );
    }

    public function testACancelledJobEndsOnItsAgentAndItsCallerLearnsIt(): void
    {
        $queue = self::newQueue();
        $this->work($queue);
        $executor = $this->executor($queue, JobRetryPolicy::none());
        $file = $this->path('started');
        $executor->dispatch(static fn(): int => touch($file) ? sleep(60) : 0, 'order-7');
        $outcome = $executor->attach('order-7');
        $this->waitForFile('started');

        self::assertOutcome(
            0,
            "1 job cancelled; 1 was running, and its agent ends it\n",
            $this->ranRemote(['queue', 'cancel', $queue, 'order-7']),
        );
        $cancelled = self::thrown(JobCancelledException::class, static fn() => $outcome->await());
        self::assertSame('order-7', $cancelled->id);
        self::assertSame(JobStatus::Cancelled, $executor->status('order-7'));
    }

    public function testAnIdIsShownAsItWasGiven(): void
    {
        $queue = self::newQueue();
        foreach (['817', '#817', '-3', '#x'] as $id) {
            self::broker()->submit($queue, [new Job(Job::storedId($id), 'frame')], 10_000, '', false);
            self::killSubmitted($queue, 1);
        }

        $process = $this->ranRemote(['queue', 'show', $queue, '--no-ansi']);
        self::assertMatchesRegularExpression(
            "~^  #x    .*\n  -3    .*\n  #817  .*\n  817   .*\n~m",
            $process->getOutput(),
        );
        $jobs = (array) ($this->json(['show', $queue])['jobs'] ?? null);
        $ids = array_column((array) ($jobs['dead'] ?? null), 'id');
        self::assertSame(['#x', '-3', '#817', '817'], $ids);
        foreach ($ids as $id) {
            $process = $this->ranRemote(['queue', 'delete', $queue, '--', $id]);

            self::assertOutcome(0, "1 job deleted\n", $process);
        }
        self::assertOutcome(
            1,
            "0 jobs deleted\n",
            $this->ranRemote(['queue', 'delete', $queue, '--', '817', '-3']),
            "spindle: not among the dead letters of the queue {$queue}: 817 -3\n",
        );
    }

    public function testAllDeadLettersAreRetriedHoweverManyThereAre(): void
    {
        $queue = self::newQueue();
        self::kill($queue, 1203);

        $process = $this->ranRemote(['queue', 'retry', $queue, '--all']);

        self::assertOutcome(0, "1203 jobs retried\n", $process);
        $statistics = self::broker()->statistics($queue);
        self::assertSame([1203, 0], [$statistics['waiting'], $statistics['dead']]);
    }

    public function testADeadLetterThatIsRetriedRunsAgain(): void
    {
        $queue = self::newQueue();
        $this->work($queue);
        $file = $this->path('disk');
        $task = static fn(): bool
            => file_exists($file) ? touch("{$file}.done") : throw new \RuntimeException('no disk');
        $this->executor($queue, JobRetryPolicy::none())
            ->submit($task)
            ->catch(static fn(\Throwable $failure): bool => true)
            ->await();
        touch($file);

        $process = $this->ranRemote(['queue', 'retry', $queue, '--all']);

        self::assertOutcome(0, "1 job retried\n", $process);
        $this->waitForFile('disk.done');
    }

    public function testOnlyWaitingJobsArePurgedInAnyNumber(): void
    {
        $queue = $this->filled();
        self::submit($queue, 1200, 'more');

        $process = $this->ranRemote(['queue', 'purge', $queue, '--yes']);

        self::assertOutcome(0, "1203 jobs purged\n", $process);
        $statistics = self::broker()->statistics($queue);
        self::assertSame(
            [0, 1, 1, 2, 0],
            [
                $statistics['waiting'],
                $statistics['running'],
                $statistics['delayed'],
                $statistics['dead'],
                $statistics['oldest_ms'],
            ],
        );
    }

    public function testAFullQueueAdvisesWhatFreesRoom(): void
    {
        $queue = $this->filled();
        $full = new RemoteExecutor(self::broker(), $queue, self::keys(), options: new RemoteOptions(maxJobs: 5));
        $failure = self::refusal($full);
        self::assertStringContainsString('it had 5 jobs without an outcome', $failure);
        self::assertStringContainsString("'spindle queue purge {$queue} --yes' removes the waiting jobs", $failure);
        self::assertStringContainsString('Dead letters do not count', $failure);

        self::assertOutcome(0, "2 jobs deleted\n", $this->ranRemote(['queue', 'delete', $queue, '--all']));
        self::refusal($full);

        self::assertOutcome(0, "3 jobs purged\n", $this->ranRemote(['queue', 'purge', $queue, '--yes']));
        self::assertSame('job', $full->dispatch(getmypid(...), 'job'));
    }

    public function testTheAddressCanComeFromAPipe(): void
    {
        $url = Redis::shared()->url();
        $line = '$SPINDLE queue purge q --yes --broker-file';
        $process = $this->shell("echo '{$url}' | {$line} /dev/stdin; {$line} <(echo '{$url}')");

        self::assertSame("0 jobs purged\n0 jobs purged\n", $process->getOutput(), $process->getErrorOutput());
    }

    public function testEachCommandReadsTheAddressFromADescriptorOfAFile(): void
    {
        $file = $this->file('broker', Redis::shared()->url(), 0o600);
        $line = '$SPINDLE queue purge q --yes --broker-file /dev/fd/3';
        $process = $this->shell("{ {$line}; {$line}; } 3< {$file}");

        self::assertSame("0 jobs purged\n0 jobs purged\n", $process->getOutput(), $process->getErrorOutput());
    }

    public function testTheAddressCanComeFromADescriptorOfANamedPipe(): void
    {
        $url = Redis::shared()->url();
        $line = 'timeout 20 $SPINDLE queue purge q --yes --broker-file /dev/fd/3';
        $process = $this->shell("mkfifo -m 600 p; echo '{$url}' > p & exec 3<p; wait; {$line}");

        self::assertSame("0 jobs purged\n", $process->getOutput(), $process->getErrorOutput());
    }

    public function testABrokerThatIsNotThereIsOneLine(): void
    {
        $process = $this->ranRemote(['queue', 'show', 'q'], ['SPINDLE_BROKER' => 'redis://:pAssw0rd@127.0.0.1:1']);

        self::assertSame(254, $process->getExitCode());
        self::assertMatchesRegularExpression(
            "~^spindle: The engine at 127\\.0\\.0\\.1:1 is not available: [^\n]+\n$~D",
            $process->getErrorOutput(),
        );
        self::assertStringNotContainsString('pAssw0rd', $process->getErrorOutput());
    }

    /** @return iterable<string, array{list<string>, string}> arguments, the message */
    public static function mistakes(): iterable
    {
        yield 'no queue' => [
            ['show'],
            'spindle queue show: give the name of a queue; spindle queue list prints the names',
        ];
        yield 'a queue to list' => [['list', 'q'], "argument 'q': spindle queue list accepts no queue"];
        yield 'an action' => [
            ['ls', 'q'],
            "argument 'ls': give list, show, cancel, retry, delete, purge,"
            . ' and then, except for list, the name of the queue',
        ];
        yield 'a queue' => [
            ['show', 'a}b'],
            "the name of the queue: 'a}b' is not allowed; give 1 to 64 letters, digits, dots, hyphens and underscores",
        ];
        yield 'an address for a queue' => [
            ['show', 'redis://:pAssw0rd@host'],
            "the name of the queue: 'redis://***@host' is not allowed;"
            . ' give 1 to 64 letters, digits, dots, hyphens and underscores',
        ];
        yield 'ids to show' => [
            ['show', 'q', 'x', 'y'],
            "argument 'y': spindle queue show accepts a queue, but only one id",
        ];
        yield 'ids to purge' => [
            ['purge', 'q', 'x', '--yes'],
            "argument 'x': spindle queue purge accepts a queue, but no ids",
        ];
        yield 'an id and a status' => [
            ['show', 'q', 'x', '--status', 'dead'],
            'spindle queue show: give the id of a job, or --status and --limit, but not both',
        ];
        yield 'an id and a limit' => [
            ['show', 'q', 'x', '--limit', '3'],
            'spindle queue show: give the id of a job, or --status and --limit, but not both',
        ];
        yield 'nothing to retry' => [['retry', 'q'], 'spindle queue retry: give the ids of dead letters, or --all'];
        yield 'nothing to cancel' => [['cancel', 'q'], 'spindle queue cancel: give the ids of jobs'];
        yield 'ids and all' => [
            ['delete', 'q', 'x', '--all'],
            'spindle queue delete: give the ids of dead letters, or --all',
        ];
        yield 'an id' => [
            ['retry', 'q', str_repeat('x', 129)],
            "argument '" . str_repeat('x', 129) . "': no job has an id of more than 128 characters",
        ];
        yield 'an address for an id' => [
            ['show', 'q', 'redis://:pAssw0rd@host' . str_repeat('x', 128)],
            "argument 'redis://***@host" . str_repeat('x', 128) . "': no job has an id of more than 128 characters",
        ];
        yield 'an address with a space for an id' => [
            ['show', 'q', 'redis://:pAssw0rd@host x'],
            'The id of a job must have 1 to 128 printable ASCII characters without spaces, not "redis://***@host x"',
        ];
        yield 'an id with a space' => [
            ['delete', 'q', ' 1'],
            'The id of a job must have 1 to 128 printable ASCII characters without spaces, not " 1"',
        ];
        yield 'a purge by accident' => [
            ['purge', 'q'],
            'spindle queue purge: this removes all waiting jobs for good; confirm it with --yes',
        ];
        yield 'an option of another' => [
            ['show', 'q', '--all'],
            'option --all: it is for spindle queue retry, not for spindle queue show',
        ];
        yield 'a status' => [
            ['show', 'q', '--status', 'done'],
            "option --status: 'done' is not allowed; give waiting, running, delayed, dead",
        ];
        yield 'none' => [
            ['show', 'q', '--limit', '0'],
            "option --limit: '0' is not allowed; give a number of jobs from 1 to 10000",
        ];
        yield 'a password' => [
            ['show', 'q', '--broker', 'redis://:pAssw0rd@host'],
            'option --broker: all users of this machine can read a password in a command line;'
            . " change the engine's password, and give the address in SPINDLE_BROKER or in the file of --broker-file",
        ];
    }

    /** @param list<string> $arguments */
    #[DataProvider('mistakes')]
    public function testAMistakeIsOneLine(array $arguments, string $message): void
    {
        $process = $this->ranRemote(['queue', ...$arguments]);

        self::assertOutcome(255, '', $process, "spindle: {$message}\n");
    }

    /** @return string a queue with 3 waiting, 1 running, 1 delayed and 2 dead jobs */
    private function filled(): string
    {
        $queue = self::newQueue();
        self::kill($queue, 2);
        self::submit($queue, 1, 'running');
        self::broker()->settleAndClaim($queue, self::OWNER, [], 1, 60.0);
        self::submit($queue, 3, 'waiting');
        self::broker()->submit($queue, [new Job('delayed-1', 'frame', delay: 600.0)], 10_000, '', false);

        return $queue;
    }

    private static function submit(string $queue, int $jobs, string $name): void
    {
        self::broker()->submit(
            $queue,
            array_map(static fn(int $number): Job => new Job("{$name}-{$number}", 'frame'), range(1, $jobs)),
            10_000,
            '',
            false,
        );
    }

    /** Creates dead jobs, and an agent. */
    private static function kill(string $queue, int $jobs): void
    {
        self::submit($queue, $jobs, 'dead');
        self::killSubmitted($queue, $jobs);
    }

    private static function killSubmitted(string $queue, int $jobs): void
    {
        self::broker()->renewLease($queue, self::OWNER, 60.0, true, '{}');
        $deliveries = self::broker()->settleAndClaim($queue, self::OWNER, [], $jobs, 60.0)->deliveries;
        $why = json_encode(
            ['reason' => "no\e[2J\u{9b} disk\n#0 trace", 'attempts' => 5, 'owner' => self::OWNER],
            \JSON_THROW_ON_ERROR,
        );
        self::broker()->settleAndClaim($queue, self::OWNER, array_map(
            static fn($delivery): Settlement
                => new Settlement(
                    $delivery->id,
                    $delivery->claimNumber,
                    SettlementKind::Dead,
                    frame: 'outcome',
                    reason: $why,
                ),
            $deliveries,
        ), 0, 60.0);
    }

    /** Returns the message with which the full queue refuses a task. */
    private static function refusal(RemoteExecutor $executor): string
    {
        try {
            $executor->dispatch(getmypid(...), 'job');
        } catch (QueueFullException $full) {
            return $full->getMessage();
        }
        self::fail('The queue is full');
    }

    private static function broker(): RedisBroker
    {
        return new RedisBroker(Redis::shared()->url());
    }

    /**
     * @param list<string> $arguments
     *
     * @return array<mixed>
     */
    private function json(array $arguments): array
    {
        $process = $this->ranRemote(['queue', ...$arguments, '--json']);

        self::assertSame([0, ''], [$process->getExitCode(), $process->getErrorOutput()]);
        self::assertSame(1, substr_count($process->getOutput(), "\n"));

        return (array) json_decode($process->getOutput(), true, flags: \JSON_THROW_ON_ERROR);
    }
}
