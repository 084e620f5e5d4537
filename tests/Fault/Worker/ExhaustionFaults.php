<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Worker;

use PHPUnit\Framework\Attributes\TestWith;
use Spindle\Tests\Host;
use Spindle\Worker\WorkerStartException;

/** No descriptors, no processes. */
trait ExhaustionFaults
{
    #[TestWith([1024])]
    #[TestWith([256])]
    #[TestWith([64])]
    public function testThePoolNeedsNoMoreThanTheUsualDescriptors(int $limit): void
    {
        $outcomes = Host::call(HostPrograms::class . '::useFewDescriptors', [$this->context()->name, 4], self::withDescriptors($limit));

        self::assertSame(['done', 'done', 'done', 'done'], $outcomes);
    }

    public function testWithTooFewDescriptorsForAnyWorkerTheTaskIsToldSo(): void
    {
        $outcomes = Host::call(HostPrograms::class . '::useFewDescriptors', [$this->context()->name, 1], self::withDescriptors(20));
        self::assertIsArray($outcomes);
        self::assertIsString($outcomes[0]);

        self::assertStringStartsWith(WorkerStartException::class, $outcomes[0]);
        self::assertStringContainsString('descriptors', $outcomes[0]);
    }

    #[TestWith([true])]
    #[TestWith([false])]
    public function testAProcessWithoutAFreeDescriptorIsToldSoAndThePoolIsUsableOnceThereAreSome(bool $beforeTheFirst): void
    {
        $answer = Host::call(HostPrograms::class . '::useUpDescriptors', [$this->context()->name, $beforeTheFirst], self::withDescriptors(100));
        self::assertIsArray($answer);
        [$without, $with] = $answer;
        self::assertIsArray($without);
        self::assertIsString($without[0]);

        self::assertStringStartsWith(WorkerStartException::class, $without[0]);
        self::assertSame(['done', 'done', 'done'], $with);
    }

    public function testWhereNoProcessIsAllowedTheTaskIsToldSoAndThePoolIsUsableOnceSomeAre(): void
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

    /** @return string its folder */
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
