<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run;

use Spindle\Cli\Internal\GivenOptions;
use Spindle\Cli\Internal\Run\Input\InputWait;
use Spindle\Cli\Internal\Run\Output\ProgressConsole;
use Spindle\Cli\Internal\UsageException;
use Spindle\Internal\Clock;

/** The options --load, --memfree and --noswap, which delay the start of jobs. They read /proc, so they need Linux. */
final class MachineLimits
{
    /** Nanoseconds between two checks while jobs wait. */
    private const PAUSE = 200_000_000;

    /** Nanoseconds between two reads of the load. Jobs that start between two reads are added to the load. */
    private const LOAD_INTERVAL = 100_000_000;

    private const SWAP_INTERVAL = 1_000_000_000;

    /** If no job runs for this number of seconds, a report says why no job starts. */
    private const REPORT_DELAY = 5.0;

    private const REPORT_INTERVAL = 60.0;

    private const NO_START = 'spindle: no job is running, and none starts: ';

    private float $load = 0.0;
    private int $loadTime = \PHP_INT_MIN;

    private int $started = 0;

    /** @var array{int, int}|null numbers of pages swapped in and out since the boot, read at $swapTime */
    private ?array $swapped = null;
    private int $swapTime = 0;
    private bool $isSwapping = true;

    /** Earliest time of the next report, in seconds of Clock::now(). */
    private float $nextReport = -\INF;

    /**
     * @param float          $freeBytes bytes of memory that must be available when a job starts; 0 for no minimum
     * @param string         $proc      the folder /proc, or in tests another folder
     * @param float          $reportDelay  seconds, see {@see REPORT_DELAY}
     */
    public function __construct(
        private readonly ?LoadLimit $loadLimit,
        private readonly float $freeBytes,
        private readonly bool $avoidsSwapping,
        private readonly string $proc = '/proc',
        private readonly float $reportDelay = self::REPORT_DELAY,
    ) {}

    /**
     * @return self|null null when none of the options is given
     *
     * @throws UsageException
     */
    public static function of(GivenOptions $given): ?self
    {
        $load = $given->text('load');
        $memory = $given->text('memfree');
        if ($load === null && $memory === null && !$given->flag('noswap')) {
            return null;
        }
        $bytes = ByteSize::parse($memory ?? '0')
            ?? throw UsageException::option('--memfree', (string) $memory, 'a number of bytes; ' . ByteSize::UNITS);
        $limits = new self($load === null ? null : LoadLimit::parse($load), $bytes, $given->flag('noswap'));
        foreach (['load' => 'stat', 'memfree' => 'meminfo', 'noswap' => 'vmstat'] as $name => $file) {
            if ($given->isGiven($name) && $limits->read($file) === '') {
                throw new UsageException("option --{$name}: needs /proc/{$file} of Linux; limit the jobs with -j");
            }
        }

        return $limits;
    }

    /** Waits until a job may start, and counts the job. If no job runs for $reportDelay, reports the reason once. */
    public function awaitRoom(InputWait $wait, RunStatistics $statistics, ProgressConsole $console): void
    {
        $idleSince = Clock::now();
        $isReported = false;
        while (!$wait->isStopped() && !$this->haveRoom(hrtime(true))) {
            $now = Clock::now();
            $idleSince = $statistics->runningCount() === 0 ? $idleSince : $now;
            if (!$isReported && $now >= max($idleSince + $this->reportDelay, $this->nextReport)) {
                $isReported = true;
                $this->nextReport = $now + self::REPORT_INTERVAL;
                $console->writeLine(self::NO_START . $this->obstacle());
            }
            $wait->untilTime(hrtime(true) + self::PAUSE);
        }
        ++$this->started;
    }

    /** @param int $now nanoseconds of hrtime() */
    public function haveRoom(int $now): bool
    {
        return ($this->loadLimit === null || $this->load($now) < $this->loadLimit->current())
            && ($this->freeBytes === 0.0 || 1024 * $this->number('meminfo', 'MemAvailable:') >= $this->freeBytes)
            && (!$this->avoidsSwapping || !$this->isSwapping($now));
    }

    private function obstacle(): string
    {
        $limit = $this->loadLimit?->current() ?? \INF;
        if ($this->load + $this->started >= $limit) {
            return \sprintf(
                'option --load: %d other processes run or wait for a disk, and a job starts only below %s',
                $this->load + $this->started,
                max(1.0, $limit), // a limit below 1 has the effect of 1, because the load is an integer
            );
        }
        $available = 1024 * $this->number('meminfo', 'MemAvailable:');
        if ($available < $this->freeBytes) {
            return \sprintf(
                'option --memfree: %s MiB of memory are available, and a job starts only with %s MiB%s',
                number_format($available >> 20),
                number_format($this->freeBytes / (1 << 20)),
                $this->freeBytes > 1024 * $this->number('meminfo', 'MemTotal:') ? ', more than the machine has' : '',
            );
        }

        return 'option --noswap: the machine swaps memory in and out';
    }

    /** Returns how many other processes ran or waited for a disk at the last read, plus the jobs started since then. */
    private function load(int $now): float
    {
        if ($now - self::LOAD_INTERVAL >= $this->loadTime) {
            $this->load = $this->number('stat', 'procs_running') + $this->number('stat', 'procs_blocked') - 1;
            $this->loadTime = $now;
            $this->started = 0;
        }

        return $this->load + $this->started;
    }

    /** Returns whether pages are swapped both in and out. Returns true until the first measurement is complete. */
    private function isSwapping(int $now): bool
    {
        if ($this->swapped === null || $now - self::SWAP_INTERVAL >= $this->swapTime) {
            [$in, $out] = [$this->number('vmstat', 'pswpin'), $this->number('vmstat', 'pswpout')];
            $this->isSwapping = $this->swapped === null || ($in > $this->swapped[0] && $out > $this->swapped[1]);
            $this->swapped = [$in, $out];
            $this->swapTime = $now;
        }

        return $this->isSwapping;
    }

    private function number(string $file, string $name): int
    {
        return preg_match("/^{$name} +(\\d+)/m", $this->read($file), $match) === 1 ? (int) $match[1] : 0;
    }

    private function read(string $file): string
    {
        return (string) @file_get_contents("{$this->proc}/{$file}");
    }
}
