<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run;

use Spindle\Cli\Internal\GivenOptions;
use Spindle\Cli\Internal\Run\Input\InputWait;
use Spindle\Cli\Internal\UsageException;

/**
 * The options --load, --memfree and --noswap: whether the machine has room for another job. They need Linux, because
 * the values are read from files of its /proc.
 */
final class MachineLimits
{
    /** Nanoseconds between two checks while jobs wait. */
    private const PAUSE = 200_000_000;

    /** Nanoseconds from one read of the load to the next. Until then, started jobs are added to it. */
    private const LOAD_INTERVAL = 100_000_000;

    /** Nanoseconds in which swapping is measured. */
    private const SWAP_INTERVAL = 1_000_000_000;

    private float $load = 0.0;
    private int $loadTime = \PHP_INT_MIN;

    /** Jobs that were started after the load was read. */
    private int $started = 0;

    /** @var array{int, int}|null pages that were swapped in and out until $swapTime */
    private ?array $swapped = null;
    private int $swapTime = 0;
    private bool $isSwapping = true;

    /**
     * @param LoadLimit|null $loadLimit null for no limit
     * @param float          $freeBytes memory that must be available; 0 for none
     * @param string         $proc      the folder /proc
     */
    public function __construct(
        private readonly ?LoadLimit $loadLimit,
        private readonly float $freeBytes,
        private readonly bool $avoidsSwapping,
        private readonly string $proc = '/proc',
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
        $bytes = $memory === null ? 0.0 : ByteSize::parse($memory);
        if ($bytes === null) {
            throw UsageException::option('--memfree', (string) $memory, 'a number of bytes; ' . ByteSize::UNITS);
        }
        $limits = new self($load === null ? null : LoadLimit::parse($load), $bytes, $given->flag('noswap'));
        foreach (['load' => 'stat', 'memfree' => 'meminfo', 'noswap' => 'vmstat'] as $name => $file) {
            if ($given->isGiven($name) && $limits->read($file) === '') {
                throw new UsageException("option --{$name}: needs /proc/{$file} of Linux; limit the jobs with -j");
            }
        }

        return $limits;
    }

    /** Waits until another job may start, and counts it. */
    public function awaitRoom(InputWait $wait): void
    {
        while (!$wait->isStopped() && !$this->haveRoom(hrtime(true))) {
            $wait->untilTime(hrtime(true) + self::PAUSE);
        }
        ++$this->started;
    }

    /** @param int $now nanoseconds of a clock */
    public function haveRoom(int $now): bool
    {
        return ($this->loadLimit === null || $this->load($now) < $this->loadLimit->current())
            && ($this->freeBytes === 0.0 || 1024 * $this->number('meminfo', 'MemAvailable:') >= $this->freeBytes)
            && (!$this->avoidsSwapping || !$this->isSwapping($now));
    }

    /** Returns how many other processes ran or waited for a disk at the last read, plus the jobs started since. */
    private function load(int $now): float
    {
        if ($now - self::LOAD_INTERVAL >= $this->loadTime) {
            $this->load = $this->number('stat', 'procs_running') + $this->number('stat', 'procs_blocked') - 1;
            $this->loadTime = $now;
            $this->started = 0;
        }

        return $this->load + $this->started;
    }

    /** Returns whether pages are swapped both in and out. Returns true for the first second, which is measured. */
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
