<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Worker;

use Amp\CancelledException;
use PHPUnit\Framework\Attributes\TestWith;
use Revolt\EventLoop\Driver\StreamSelectDriver;
use Spindle\Tests\Host;
use Spindle\Worker\TaskFailedException;
use Spindle\Worker\WorkerContext;
use Spindle\Worker\WorkerStartException;
use Symfony\Component\Process\Process;

/** Tests the lack of descriptors and of processes. */
trait ExhaustionFaults
{
    #[TestWith([1024])]
    #[TestWith([256])]
    #[TestWith([64])]
    public function testThePoolNeedsNoMoreThanTheUsualDescriptors(int $limit): void
    {
        $outcomes = Host::call(
            HostPrograms::class . '::useFewDescriptors',
            [$this->context()->name, 4],
            self::withDescriptors($limit),
        );

        self::assertSame(['done', 'done', 'done', 'done'], $outcomes);
    }

    public function testATaskFailsWithTooFewDescriptorsForAnyWorker(): void
    {
        $outcomes = Host::call(
            HostPrograms::class . '::useFewDescriptors',
            [$this->context()->name, 1],
            self::withDescriptors(20),
        );
        self::assertIsArray($outcomes);
        self::assertIsString($outcomes[0]);

        self::assertStringStartsWith(WorkerStartException::class, $outcomes[0]);
        self::assertStringContainsString('descriptors', $outcomes[0]);
        self::assertStringNotContainsString('WorkerPoolOptions(', $outcomes[0]);
        self::assertStringNotContainsString('signal 9', $outcomes[0]);
    }

    #[TestWith([true])]
    #[TestWith([false])]
    public function testAProcessWithoutAFreeDescriptorGetsAnErrorAndThePoolWorksLater(bool $beforeTheFirst): void
    {
        $answer = Host::call(
            HostPrograms::class . '::useUpDescriptors',
            [$this->context()->name, $beforeTheFirst],
            self::withDescriptors(100),
        );
        self::assertIsArray($answer);
        [$without, $with] = $answer;
        self::assertIsArray($without);
        self::assertIsString($without[0]);

        self::assertStringStartsWith(WorkerStartException::class, $without[0]);
        self::assertSame(['done', 'done', 'done'], $with);
    }

    public function testATaskThatThrowsIsRetriedWithoutAFreeDescriptor(): void
    {
        $program = HostPrograms::class . '::failWithoutDescriptors';
        $outcome = Host::call($program, [$this->context()->name], self::withDescriptors(100));
        self::assertIsString($outcome);

        self::assertStringStartsWith(TaskFailedException::class . ', TypeError: ', $outcome);
    }

    /** Opens many files: stream_select() fails for descriptors above 1023, and the event loop with it. */
    public function testAProcessWhoseLoopCanWatchNoOtherDescriptorIsToldSoAndTheWorkersThatItHasGoOn(): void
    {
        $limit = posix_getrlimit()['hard openfiles'] ?? 0;
        if ($limit !== 'unlimited' && $limit < 4096) {
            self::markTestSkipped('So many descriptors are not to be had here');
        }
        $arguments = [$this->context()->name, $this->path('begun')];
        $outcomes = Host::call(
            HostPrograms::class . '::useHighDescriptors',
            $arguments,
            self::withDescriptors(4096),
            ['REVOLT_DRIVER' => StreamSelectDriver::class],
        );
        self::assertIsArray($outcomes);
        self::assertIsString($outcomes[0]);

        self::assertStringStartsWith(WorkerStartException::class, $outcomes[0]);
        self::assertStringContainsString('https://revolt.run/extensions', $outcomes[0]);
        self::assertSame(['done', 'done'], \array_slice($outcomes, 1));
    }

    public function testWithoutAWorkingDirectoryNoWorkerIsStartedAndThoseThatWorkGoOn(): void
    {
        $outcomes = Host::call(
            HostPrograms::class . '::loseDirectory',
            [$this->context()->name, $this->path('directory')],
        );
        self::assertIsArray($outcomes);
        self::assertIsString($outcomes[0]);

        self::assertStringStartsWith(WorkerStartException::class, $outcomes[0]);
        self::assertStringContainsString('Change to another one with chdir()', $outcomes[0]);
        self::assertSame(['done', 'done'], \array_slice($outcomes, 1));
    }

    #[TestWith(['/not/there'])]
    #[TestWith(['/proc'])]
    #[TestWith([null])]
    public function testTheTemporaryDirectoryDoesNotMatter(?string $directory): void
    {
        if ($directory === null) {
            $directory = $this->path(str_repeat('x', 200)); // longer than the path of a socket may be
            mkdir($directory);
        }
        $outcomes = Host::call(
            HostPrograms::class . '::useFewDescriptors',
            [$this->context()->name, 3],
            environment: ['TMPDIR' => $directory],
        );

        self::assertSame(['done', 'done', 'done'], $outcomes);
    }

    public function testARunningTaskIsEndedOnASystemWithoutProc(): void
    {
        if ($this->context() === WorkerContext::Thread) {
            self::markTestSkipped('A thread ends without /proc');
        }
        $within = ['unshare', '-m', 'sh', '-c', 'mount -t tmpfs none /proc && exec "$@"', 'sh'];
        if ((new Process([...$within, 'true']))->run() !== 0) {
            self::markTestSkipped('A file system can not be mounted here');
        }
        $answer = Host::call(
            HostPrograms::class . '::cancelRunningTask',
            [$this->context()->name, $this->path('begun')],
            $within,
        );

        self::assertSame([CancelledException::class, ['done']], $answer);
    }

    public function testATaskFailsWhileNoProcessCanBeCreatedAndThePoolWorksLater(): void
    {
        $cgroup = self::newCgroup(20);
        try {
            $within = ['sh', '-c', 'echo $$ > "$0/cgroup.procs" && exec "$@"', $cgroup];
            $answer = Host::call(HostPrograms::class . '::needProcesses', [$this->context()->name, $cgroup], $within);
        } finally {
            rmdir($cgroup);
        }
        self::assertIsArray($answer);
        [$without, $with] = $answer;
        self::assertIsArray($without);
        self::assertIsString($without[0]);

        self::assertStringStartsWith(WorkerStartException::class, $without[0]);
        self::assertMatchesRegularExpression('/processes are allowed|could not be (forked|started)/', $without[0]);
        self::assertSame(['done', 'done', 'done'], $with);
    }

    /** @return list<string> */
    private static function withDescriptors(int $limit): array
    {
        return ['sh', '-c', "ulimit -n {$limit} && exec \"\$@\"", 'sh'];
    }

    /** @return string directory of the control group */
    private static function newCgroup(int $processes): string
    {
        foreach (['/sys/fs/cgroup/pids', '/sys/fs/cgroup'] as $root) {
            $group = "{$root}/spindle-test-" . bin2hex(random_bytes(6));
            if (!is_writable($root) || !@mkdir($group)) {
                continue;
            }
            if (is_file("{$group}/pids.max")) {
                file_put_contents("{$group}/pids.max", (string) $processes);

                return $group;
            }
            rmdir($group);
        }
        self::markTestSkipped('There is no pids cgroup to be had here');
    }
}
