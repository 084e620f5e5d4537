<?php

declare(strict_types=1);

namespace Spindle\Bench\Postgres;

use Spindle\Bench\Support\ProcessStatus;

/** CPU time of a local server: of all processes that its first process has started, including ended ones. */
final readonly class ServerTime
{
    /** Fields in /proc/PID/stat, counted from after the name. */
    private const PARENT_FIELD = 2;
    private const CHILD_TICKS_FIELDS = [14, 15];
    private const TICKS_PER_SECOND = 100;

    /** @param int|null $postmaster id of the first process; null when it is not on this machine */
    public function __construct(private ?int $postmaster) {}

    /** @return float|null user and system seconds; null when they are not available */
    public function seconds(): ?float
    {
        $own = $this->postmaster === null ? [] : self::stat("/proc/{$this->postmaster}/stat");
        if ($own === []) {
            return null;
        }
        $seconds = array_sum(array_map(
            static fn(int $field): int => (int) ($own[$field] ?? 0),
            self::CHILD_TICKS_FIELDS,
        )) / self::TICKS_PER_SECOND;
        foreach ((array) glob('/proc/[0-9]*/stat') as $file) {
            if ((int) (self::stat((string) $file)[self::PARENT_FIELD] ?? 0) === $this->postmaster) {
                $seconds += (new ProcessStatus((int) basename(\dirname((string) $file))))->cpu();
            }
        }

        return $seconds;
    }

    /** @return list<string> empty when the process does not exist */
    private static function stat(string $file): array
    {
        $stat = (string) @file_get_contents($file);

        return $stat === '' ? [] : explode(' ', substr($stat, (int) strrpos($stat, ')')));
    }
}
