<?php

declare(strict_types=1);

namespace Spindle\Internal;

use Fidry\CpuCoreCounter\CpuCoreCounter;

/**
 * Counts the CPUs that this process can use: the CPUs in its affinity mask, limited by the quota of its cgroups.
 * A quota is rounded up: with a quota of 1.5, one process would leave a third of the quota unused. Each call reads
 * small files below /proc and /sys, so a caller should keep the result.
 */
final readonly class CpuCount
{
    private Cgroups $files;

    /**
     * @param string              $root    folder with proc/ and sys/
     * @param CpuCoreCounter|null $counter counter for systems whose affinity mask can't be read, such as macOS
     */
    public function __construct(string $root = '/', private ?CpuCoreCounter $counter = null)
    {
        $this->files = new Cgroups($root);
    }

    /** Returns the number of CPUs, at least 1. */
    public function usable(): int
    {
        $cpus = $this->affinity() ?? Warnings::suppressed(
            fn(): int => ($this->counter ?? new CpuCoreCounter())->getCountWithFallback(1),
        );
        $quota = $this->quota();

        return max(1, $quota === null ? $cpus : min($cpus, (int) ceil($quota)));
    }

    /** Returns the number of online CPUs in the affinity mask, which can contain offline CPUs too; null if unknown. */
    private function affinity(): ?int
    {
        if (preg_match('/^Cpus_allowed_list:\s*([\d,-]+)$/m', $this->files->read('/proc/self/status'), $match) !== 1) {
            return null;
        }
        $allowed = self::parseList($match[1]);
        $online = self::parseList($this->files->read('/sys/devices/system/cpu/online'));

        return \count($online === [] ? $allowed : array_intersect_key($allowed, $online));
    }

    /** @return array<int, true> by CPU number, from a CPU list of the kernel such as "0-3,8" */
    private static function parseList(string $list): array
    {
        preg_match_all('/(\d+)(?:-(\d+))?/', $list, $ranges, PREG_SET_ORDER);
        $cpus = [];
        foreach ($ranges as $range) {
            $cpus += array_fill_keys(range((int) $range[1], (int) ($range[2] ?? $range[1])), true);
        }

        return $cpus;
    }

    /**
     * Returns the smallest quota of this process's cgroups as a number of CPUs, such as 1.5; null without a quota.
     * The kernel documents quotas in admin-guide/cgroup-v2 ("cpu.max") and scheduler/sched-bwc (v1).
     */
    private function quota(): ?float
    {
        $quotas = [];
        foreach ($this->files->folders('cpu') as [$version, $folder]) {
            $quotas[] = $version === 2 ? $this->quotaV2($folder) : $this->quotaV1($folder);
        }
        $quotas = array_filter($quotas, is_float(...));

        return $quotas === [] ? null : min($quotas);
    }

    private function quotaV2(string $folder): ?float
    {
        return preg_match('/^(\d+) (\d+)$/', $this->files->read("{$folder}/cpu.max"), $max) === 1
            ? self::ratio((int) $max[1], (int) $max[2])
            : null;
    }

    private function quotaV1(string $folder): ?float
    {
        return self::ratio(
            (int) $this->files->read("{$folder}/cpu.cfs_quota_us"),
            (int) $this->files->read("{$folder}/cpu.cfs_period_us"),
        );
    }

    /** Returns the quota in CPUs. Both parameters are in microseconds. In v1, a quota of -1 means no quota. */
    private static function ratio(int $quota, int $period): ?float
    {
        return $quota > 0 && $period > 0 ? $quota / $period : null;
    }
}
