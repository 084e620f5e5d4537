<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Internal;

use Fidry\CpuCoreCounter\CpuCoreCounter;
use Fidry\CpuCoreCounter\Finder\DummyCpuCoreFinder;
use Fidry\CpuCoreCounter\Finder\NullCpuCoreFinder;
use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Spindle\Internal\CpuCount;

final class CpuCountTest extends TestCase
{
    private const V2_MOUNT = "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";
    private const V1_MOUNT = "33 25 0:28 / /sys/fs/cgroup/cpu,cpuacct rw shared:9 - cgroup cgroup rw,cpu,cpuacct\n";

    private string $root;

    protected function setUp(): void
    {
        $this->root = sys_get_temp_dir() . '/spindle-cpus-' . bin2hex(random_bytes(6));
        mkdir($this->root);
    }

    protected function tearDown(): void
    {
        $files = new \RecursiveIteratorIterator(
            new \RecursiveDirectoryIterator($this->root, \FilesystemIterator::SKIP_DOTS),
            \RecursiveIteratorIterator::CHILD_FIRST,
        );
        foreach ($files as $file) {
            \assert($file instanceof \SplFileInfo);
            $file->isDir() ? rmdir($file->getPathname()) : unlink($file->getPathname());
        }
        rmdir($this->root);
    }

    /** @return iterable<string, array{string, string, int}> */
    public static function affinities(): iterable
    {
        yield 'one range' => ['0-7', '0-7', 8];
        yield 'one CPU' => ['5', '0-7', 1];
        yield 'ranges and single CPUs' => ['0-2,5,8-9', '0-15', 6];
        yield 'room for CPUs that are not there' => ['0-127', '0-3', 4];
        yield 'a CPU taken offline' => ['0-7', '0-2,4-7', 7];
        yield 'a kernel that does not say what is online' => ['0-3', '', 4];
    }

    #[DataProvider('affinities')]
    public function testTheAffinityMaskLimitsToWhatIsOnline(string $allowed, string $online, int $expected): void
    {
        self::assertSame($expected, $this->usable([
            'proc/self/status' => "Name:\tphp\nCpus_allowed:\tff\nCpus_allowed_list:\t{$allowed}\nMems_allowed:\t1\n",
            'sys/devices/system/cpu/online' => "{$online}\n",
        ]));
    }

    /** @return iterable<string, array{array<string, string>, int}> */
    public static function quotas(): iterable
    {
        yield 'v2, a whole number' => [self::v2('/', '/app', ['app' => '300000 100000']), 3];
        yield 'v2, rounded up' => [self::v2('/', '/app', ['app' => '150000 100000']), 2];
        yield 'v2, less than one' => [self::v2('/', '/app', ['app' => '5000 100000']), 1];
        yield 'v2, another period' => [self::v2('/', '/app', ['app' => '100000 25000']), 4];
        yield 'v2, none' => [self::v2('/', '/app', ['app' => 'max 100000']), 8];
        yield 'v2, more than the affinity mask' => [self::v2('/', '/app', ['app' => '6400000 100000']), 8];
        yield 'v2, the smallest on the path is in the middle' => [
            self::v2('/', '/a/b/c', ['a' => '500000 100000', 'a/b' => '200000 100000', 'a/b/c' => '400000 100000']),
            2,
        ];
        yield 'v2, the smallest on the path is at the top' => [
            self::v2('/', '/a/b', ['a' => '300000 100000', 'a/b' => 'max 100000']),
            3,
        ];
        yield 'v2, a sibling does not count' => [
            self::v2('/', '/app', ['app' => '500000 100000', 'app2' => '100000 100000']),
            5,
        ];
        yield 'v2, in a container with its own namespace' => [self::v2('/', '/', ['' => '250000 100000']), 3];
        yield 'v2, in a container without one' => [self::v2('/docker/1f', '/docker/1f', ['' => '200000 100000']), 2];
        yield 'v2, below the root of a container without one' => [
            self::v2('/docker/1f', '/docker/1f/sub', ['' => '400000 100000', 'sub' => '300000 100000']),
            3,
        ];
        yield 'v2, a mount whose root only begins alike' => [
            self::v2('/docker/1', '/docker/1f', ['' => '200000 100000', 'f' => '100000 100000']),
            2,
        ];
        yield 'v2, outside the namespace' => [self::v2('/', '/../other', ['' => '100000 100000']), 8];
        yield 'v1' => [self::v1('/', '/app', ['app' => ['250000', '100000']]), 3];
        yield 'v1, none' => [self::v1('/', '/app', ['app' => ['-1', '100000']]), 8];
        yield 'v1, nested' => [
            self::v1('/', '/a/b', ['' => ['-1', '100000'], 'a' => ['200000', '100000'], 'a/b' => ['300000', '100000']]),
            2,
        ];
        yield 'v1, in a container' => [self::v1('/docker/1f', '/docker/1f', ['' => ['400000', '100000']]), 4];
        yield 'v1 has the cpu controller, v2 is there without it' => [[
            'proc/self/cgroup' => "4:cpuset:/other\n3:cpu,cpuacct:/app\n0::/app\n",
            'proc/self/mountinfo' => "31 25 0:27 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n"
                . self::V1_MOUNT . str_replace('/sys/fs/cgroup ', '/sys/fs/cgroup/unified ', self::V2_MOUNT),
            'sys/fs/cgroup/cpu,cpuacct/app/cpu.cfs_quota_us' => "300000\n",
            'sys/fs/cgroup/cpu,cpuacct/app/cpu.cfs_period_us' => "100000\n",
            'sys/fs/cgroup/cpuset/app/cpu.cfs_quota_us' => "100000\n",
            'sys/fs/cgroup/cpuset/app/cpu.cfs_period_us' => "100000\n",
        ], 3];
        yield 'a mount point with a space' => [[
            'proc/self/cgroup' => "0::/app\n",
            'proc/self/mountinfo' => "30 23 0:26 / /mnt/c\\040g rw - cgroup2 none rw\n",
            'mnt/c g/app/cpu.max' => "200000 100000\n",
        ], 2];
        yield 'files that are not what they should be' => [self::v2('/', '/app', ['app' => 'nonsense']), 8];
        yield 'no cgroups' => [['proc/self/mountinfo' => "22 27 0:21 / /proc rw - proc proc rw\n"], 8];
    }

    /** @param array<string, string> $files */
    #[DataProvider('quotas')]
    public function testTheCpuQuotaOfTheCgroupsLimits(array $files, int $expected): void
    {
        self::assertSame($expected, $this->usable($files + ['proc/self/status' => "Cpus_allowed_list:\t0-7\n"]));
    }

    public function testTheCoreCounterAnswersWhereTheMaskCannotBeRead(): void
    {
        self::assertSame(6, $this->usable([], new CpuCoreCounter([new DummyCpuCoreFinder(6)])));
    }

    public function testTheQuotaAlsoLimitsWhatTheCoreCounterSays(): void
    {
        $files = self::v2('/', '/app', ['app' => '200000 100000']);

        self::assertSame(2, $this->usable($files, new CpuCoreCounter([new DummyCpuCoreFinder(6)])));
    }

    public function testNothingToGoByIsOneCpu(): void
    {
        self::assertSame(1, $this->usable([], new CpuCoreCounter([new NullCpuCoreFinder()])));
    }

    public function testThisMachineHasAtLeastOneAndNoMoreThanItsCores(): void
    {
        $usable = (new CpuCount())->usable();

        self::assertGreaterThanOrEqual(1, $usable);
        self::assertLessThanOrEqual((new CpuCoreCounter())->getCount(), $usable);
    }

    /** @param array<string, string> $files */
    private function usable(array $files, ?CpuCoreCounter $counter = null): int
    {
        foreach ($files as $path => $content) {
            $folder = \dirname("{$this->root}/{$path}");
            is_dir($folder) || mkdir($folder, recursive: true);
            file_put_contents("{$this->root}/{$path}", $content);
        }

        return (new CpuCount($this->root, $counter))->usable();
    }

    /**
     * @param array<string, string> $max cpu.max by the folder below the mount point
     * @return array<string, string>
     */
    private static function v2(string $mountRoot, string $own, array $max): array
    {
        $files = [
            'proc/self/cgroup' => "0::{$own}\n",
            'proc/self/mountinfo' => "22 27 0:21 / /proc rw - proc proc rw\n"
                . str_replace(' / ', " {$mountRoot} ", self::V2_MOUNT),
        ];
        foreach ($max as $folder => $content) {
            $files["sys/fs/cgroup/{$folder}/cpu.max"] = "{$content}\n";
        }

        return $files;
    }

    /**
     * @param array<string, array{string, string}> $limits quota and period by the folder below the mount point
     * @return array<string, string>
     */
    private static function v1(string $mountRoot, string $own, array $limits): array
    {
        $files = [
            'proc/self/cgroup' => "5:memory:/elsewhere\n3:cpu,cpuacct:{$own}\n",
            'proc/self/mountinfo' => str_replace(' / ', " {$mountRoot} ", self::V1_MOUNT),
        ];
        foreach ($limits as $folder => [$quota, $period]) {
            $files["sys/fs/cgroup/cpu,cpuacct/{$folder}/cpu.cfs_quota_us"] = "{$quota}\n";
            $files["sys/fs/cgroup/cpu,cpuacct/{$folder}/cpu.cfs_period_us"] = "{$period}\n";
        }

        return $files;
    }
}
