<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Cli\Run;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Revolt\EventLoop;
use Spindle\Cli\Internal\Run\Input\InputWait;
use Spindle\Cli\Internal\Run\LoadLimit;
use Spindle\Cli\Internal\Run\MachineLimits;
use Spindle\Cli\Internal\Run\RunStatistics;
use Spindle\Cli\Internal\UsageException;
use Spindle\Internal\CpuCount;
use Spindle\Tests\EndsInTime;
use Spindle\Tests\OwnDirectory;
use Spindle\Tests\Unit\Cli\Run\Output\RecordedLines;

final class MachineLimitsTest extends TestCase
{
    use EndsInTime;
    use OwnDirectory;

    private const SECOND = 1_000_000_000;

    /** A process that reads the file is one of those that run. */
    public function testOtherProcessesAndStartedJobsCount(): void
    {
        $limits = new MachineLimits(LoadLimit::parse('3'), 0.0, false, $this->path());
        $wait = new InputWait();
        $this->file('stat', "cpu 1 2 3\nprocs_running 2\nprocs_blocked 1\n");
        self::assertTrue($limits->haveRoom(hrtime(true)));
        $limits->awaitRoom($wait, new RunStatistics(), new RecordedLines());
        self::assertFalse($limits->haveRoom(hrtime(true)));
        $this->file('stat', "procs_running 3\nprocs_blocked 0\n");
        self::assertTrue($limits->haveRoom(hrtime(true) + self::SECOND));
        $this->file('stat', "procs_running 3\nprocs_blocked 1\n");
        self::assertFalse($limits->haveRoom(hrtime(true) + 2 * self::SECOND));
    }

    public function testMemoryMustBeAvailable(): void
    {
        $limits = new MachineLimits(null, 2048.0, false, $this->path());
        $this->file('meminfo', "MemTotal:  9 kB\nMemFree:  9 kB\nMemAvailable:    1 kB\n");
        self::assertFalse($limits->haveRoom(0));
        $this->file('meminfo', "MemTotal:  9 kB\nMemFree:  0 kB\nMemAvailable:    2 kB\n");
        self::assertTrue($limits->haveRoom(0));
    }

    public function testPagesThatAreSwappedInAndOutDelayAStart(): void
    {
        $limits = new MachineLimits(null, 0.0, true, $this->path());
        $this->file('vmstat', "pswpin 5\npswpout 5\n");
        self::assertFalse($limits->haveRoom(0));
        $this->file('vmstat', "pswpin 6\npswpout 5\n");
        self::assertFalse($limits->haveRoom(self::SECOND - 1));
        self::assertTrue($limits->haveRoom(self::SECOND));
        $this->file('vmstat', "pswpin 7\npswpout 6\n");
        self::assertFalse($limits->haveRoom(2 * self::SECOND));
        self::assertTrue($limits->haveRoom(3 * self::SECOND));
    }

    public function testAStoppedRunWaitsForNoRoom(): void
    {
        $wait = new InputWait();
        $wait->stop();
        $this->file('meminfo', "MemAvailable: 0 kB\n");
        $console = new RecordedLines();
        (new MachineLimits(null, 1.0, false, $this->path(), 0.0))->awaitRoom($wait, new RunStatistics(), $console);

        self::assertSame([], $console->getArrayCopy());
    }

    /** @return iterable<string, array{array{string|null, float, bool}, string, string, string, string}> */
    public static function obstacles(): iterable
    {
        yield 'load' => [
            ['0', 0.0, false],
            'stat',
            "procs_running 3\nprocs_blocked 1\n",
            "procs_running 1\nprocs_blocked 0\n",
            'option --load: 3 other processes run or wait for a disk, and a job starts only below 1',
        ];
        yield 'memory' => [
            [null, 3.0 * (1 << 30), false],
            'meminfo',
            "MemTotal: 2097152 kB\nMemAvailable: 1048576 kB\n",
            "MemTotal: 9097152 kB\nMemAvailable: 9048576 kB\n",
            'option --memfree: 1,024 MiB of memory are available, and a job starts only with 3,072 MiB, more than the'
                . ' machine has',
        ];
        yield 'swapping' => [
            [null, 0.0, true],
            'vmstat',
            "pswpin 5\npswpout 5\n",
            "pswpin 5\npswpout 5\n",
            'option --noswap: the machine swaps memory in and out',
        ];
    }

    /**
     * @param array{string|null, float, bool} $limits of the load, the available memory, and for swapping
     * @param string                          $full   content of the file when there is no room for a job
     * @param string                          $free   content when there is room
     */
    #[DataProvider('obstacles')]
    public function testTheReasonOfALongWaitIsReportedOnce(
        array $limits,
        string $name,
        string $full,
        string $free,
        string $message,
    ): void {
        [$load, $bytes, $avoidsSwapping] = $limits;
        $load = $load === null ? null : LoadLimit::parse($load);
        $this->file($name, $full);
        $this->writeLater($name, $free);
        $console = new RecordedLines();
        $machine = new MachineLimits($load, $bytes, $avoidsSwapping, $this->path(), 0.0);
        $machine->awaitRoom(new InputWait(), new RunStatistics(), $console);

        self::assertSame(["spindle: no job is running, and none starts: {$message}"], $console->getArrayCopy());
    }

    public function testAWaitIsNotReportedWhileAJobRuns(): void
    {
        $this->file('meminfo', "MemAvailable: 0 kB\n");
        $statistics = new RunStatistics();
        ++$statistics->submitted;
        $console = new RecordedLines();
        $machine = new MachineLimits(null, 1024.0, false, $this->path(), 0.1);
        $this->writeLater('meminfo', "MemAvailable: 1 kB\n");
        $machine->awaitRoom(new InputWait(), $statistics, $console);

        self::assertSame([], $console->getArrayCopy());
    }

    public function testALimitIsANumberOrRelativeToTheCpus(): void
    {
        $cpus = (new CpuCount())->usable();
        $limits = array_map(
            static fn(string $value): float => LoadLimit::parse($value)->current(),
            ['2.5', '0', '50%', '+2', "-{$cpus}"],
        );

        self::assertSame([2.5, 0.01, $cpus / 2.0, $cpus + 2.0, 0.01], $limits);
    }

    public function testALimitIsReadAgainFromItsFile(): void
    {
        $this->file('load', "7\n");
        $limit = LoadLimit::parse($this->path('load'));
        self::assertSame(7.0, $limit->current());
        $this->file('load', '9');
        self::assertSame(9.0, $limit->current());
        $this->file('load', 'x');
        self::assertSame(9.0, $limit->current());

        $this->expectException(UsageException::class);
        LoadLimit::parse($this->path('load'));
    }

    private function writeLater(string $name, string $content): void
    {
        EventLoop::delay(0.5, function () use ($name, $content): void {
            $this->file($name, $content);
        });
    }
}
