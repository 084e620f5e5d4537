<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Internal;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Spindle\Internal\UsableMemory;
use Spindle\Tests\OwnDirectory;

final class UsableMemoryTest extends TestCase
{
    use OwnDirectory;

    private const MACHINE = ['proc/meminfo' => "MemTotal:        8388608 kB\nMemFree:          100000 kB\n"];
    private const V2 = ['proc/self/mountinfo' => "30 23 0:26 / /sys/fs/cgroup rw shared:4 - cgroup2 cgroup2 rw\n"];
    private const V1 = [
        'proc/self/mountinfo' => "34 25 0:29 / /sys/fs/cgroup/memory rw shared:9 - cgroup cgroup rw,memory\n"
            . "33 25 0:28 / /sys/fs/cgroup/cpu rw shared:9 - cgroup cgroup rw,cpu\n",
    ];

    /** @return iterable<string, array{array<string, string>, int|null}> files and expected bytes */
    public static function machines(): iterable
    {
        yield 'no cgroups' => [self::MACHINE, 8 << 30];
        yield 'v2' => [
            self::MACHINE + self::V2 + [
                'proc/self/cgroup' => "0::/app\n",
                'sys/fs/cgroup/app/memory.max' => "536870912\n",
            ],
            512 << 20,
        ];
        yield 'v2 without a limit' => [
            self::MACHINE + self::V2 + ['proc/self/cgroup' => "0::/app\n", 'sys/fs/cgroup/app/memory.max' => "max\n"],
            8 << 30,
        ];
        yield 'v2, above' => [
            self::MACHINE + self::V2 + [
                'proc/self/cgroup' => "0::/a/b\n",
                'sys/fs/cgroup/a/memory.max' => "1073741824\n",
                'sys/fs/cgroup/a/b/memory.max' => "2147483648\n",
            ],
            1 << 30,
        ];
        yield 'v2, in a container' => [
            self::MACHINE + self::V2 + ['proc/self/cgroup' => "0::/\n", 'sys/fs/cgroup/memory.max' => "268435456\n"],
            256 << 20,
        ];
        yield 'v2, more than the machine has' => [
            self::MACHINE + self::V2 + ['proc/self/cgroup' => "0::/\n", 'sys/fs/cgroup/memory.max' => "99999999999\n"],
            8 << 30,
        ];
        yield 'v1' => [
            self::MACHINE + self::V1 + [
                'proc/self/cgroup' => "5:memory:/app\n4:cpu:/other\n",
                'sys/fs/cgroup/memory/app/memory.limit_in_bytes' => "536870912\n",
                'sys/fs/cgroup/memory/other/memory.limit_in_bytes' => "1\n",
            ],
            512 << 20,
        ];
        yield 'v1 without a limit' => [
            self::MACHINE + self::V1 + [
                'proc/self/cgroup' => "5:memory:/\n",
                'sys/fs/cgroup/memory/memory.limit_in_bytes' => "9223372036854771712\n",
            ],
            8 << 30,
        ];
        yield 'nothing is known' => [[], null];
    }

    /** @param array<string, string> $files */
    #[DataProvider('machines')]
    public function testItIsWhatTheMachineHasOrTheSmallestLimit(array $files, ?int $expected): void
    {
        foreach ($files as $name => $content) {
            is_dir(\dirname($this->path($name))) || mkdir(\dirname($this->path($name)), recursive: true);
            $this->file($name, $content);
        }

        self::assertSame($expected, (new UsableMemory($this->path()))->bytes());
    }

    public function testThisMachineHasSome(): void
    {
        self::assertGreaterThan(1 << 26, (new UsableMemory())->bytes());
    }
}
