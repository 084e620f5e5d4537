<?php

declare(strict_types=1);

namespace Spindle\Internal;

/**
 * Finds the smallest CPU quota of this process's cgroups.
 * The kernel documents quotas in admin-guide/cgroup-v2 ("cpu.max") and scheduler/sched-bwc (v1).
 */
final readonly class CgroupCpuQuota
{
    private Cgroups $cgroups;

    public function __construct(string $root = '/')
    {
        $this->cgroups = new Cgroups($root);
    }

    /** Returns the quota as a number of CPUs, such as 1.5; null without a quota. */
    public function cpus(): ?float
    {
        $quotas = [];
        foreach ($this->cgroups->folders('cpu') as [$version, $folder]) {
            $quotas[] = $version === 2 ? $this->quotaV2($folder) : $this->quotaV1($folder);
        }
        $quotas = array_filter($quotas, is_float(...));

        return $quotas === [] ? null : min($quotas);
    }

    private function quotaV2(string $folder): ?float
    {
        return preg_match('/^(\d+) (\d+)$/', $this->cgroups->read("{$folder}/cpu.max"), $max) === 1
            ? self::ratio((int) $max[1], (int) $max[2])
            : null;
    }

    private function quotaV1(string $folder): ?float
    {
        return self::ratio(
            (int) $this->cgroups->read("{$folder}/cpu.cfs_quota_us"),
            (int) $this->cgroups->read("{$folder}/cpu.cfs_period_us"),
        );
    }

    /** Returns the quota in CPUs. Both parameters are in microseconds. In v1, a quota of -1 means no quota. */
    private static function ratio(int $quota, int $period): ?float
    {
        return $quota > 0 && $period > 0 ? $quota / $period : null;
    }
}
