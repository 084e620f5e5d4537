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
    /**
     * @param string              $root    folder with proc/ and sys/
     * @param CpuCoreCounter|null $counter counter for systems whose affinity mask can't be read, such as macOS
     */
    public function __construct(
        private string $root = '/',
        private ?CpuCoreCounter $counter = null,
    ) {}

    /** Returns the number of CPUs, at least 1. */
    public function usable(): int
    {
        $cpus = $this->affinity() ?? Warnings::suppressed(
            fn(): int => ($this->counter ?? new CpuCoreCounter())->getCountWithFallback(1),
        );
        $quota = (new CgroupCpuQuota($this->root))->cpus();

        return max(1, $quota === null ? $cpus : min($cpus, (int) ceil($quota)));
    }

    /** Returns the number of online CPUs in the affinity mask, which can contain offline CPUs too; null if unknown. */
    private function affinity(): ?int
    {
        $files = new Cgroups($this->root);
        if (preg_match('/^Cpus_allowed_list:\s*([\d,-]+)$/m', $files->read('/proc/self/status'), $match) !== 1) {
            return null;
        }
        $allowed = self::parseList($match[1]);
        $online = self::parseList($files->read('/sys/devices/system/cpu/online'));

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
}
