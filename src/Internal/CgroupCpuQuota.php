<?php

declare(strict_types=1);

namespace Spindle\Internal;

/**
 * The smallest CPU quota on the path from the process's own cgroup up to the root, as far as it is mounted here.
 *
 * Documented in the kernel's admin-guide/cgroup-v2 ("cpu.max"), scheduler/sched-bwc (v1), and in cgroups(7) and
 * proc_pid_mountinfo(5).
 */
final readonly class CgroupCpuQuota
{
    /** @param string $root the folder that holds proc/, and that the mount points are below */
    public function __construct(private string $root = '/') {}

    /** In CPUs, such as 1.5; null without a quota. */
    public function cpus(): ?float
    {
        $quotas = [];
        foreach ($this->mounts() as [$version, $root, $mountPoint]) {
            $own = $this->ownGroup($version);
            if ($own === null) {
                continue;
            }
            foreach (self::folders($root, $mountPoint, $own) as $folder) {
                $quotas[] = $version === 2 ? $this->quotaV2($folder) : $this->quotaV1($folder);
            }
        }
        $quotas = array_filter($quotas, is_float(...));

        return $quotas === [] ? null : min($quotas);
    }

    /**
     * Every mount of the v2 hierarchy and of the v1 hierarchy that has the cpu controller.
     *
     * @return list<array{1|2, string, string}> the version, the cgroup that is the mount's root, the mount point
     */
    private function mounts(): array
    {
        $mounts = [];
        foreach (explode("\n", $this->read('/proc/self/mountinfo')) as $line) {
            [$fields, $source] = explode(' - ', $line, 2) + [1 => ''];
            $fields = explode(' ', $fields);
            [$type, , $options] = explode(' ', $source) + ['', '', ''];
            $version = match (true) {
                $type === 'cgroup2' => 2,
                $type === 'cgroup' && \in_array('cpu', explode(',', $options), true) => 1,
                default => null,
            };
            if ($version !== null && isset($fields[4])) {
                // Spaces and backslashes in paths are written as octal escapes.
                $mounts[] = [$version, stripcslashes($fields[3]), stripcslashes($fields[4])];
            }
        }

        return $mounts;
    }

    /** @param 1|2 $version */
    private function ownGroup(int $version): ?string
    {
        $pattern = $version === 2 ? '~^0::(/.*)$~m' : '~^\d+:(?:[^:\n]*,)?cpu(?:,[^:\n]*)?:(/.*)$~m';

        return preg_match($pattern, $this->read('/proc/self/cgroup'), $match) === 1 ? $match[1] : null;
    }

    /**
     * The folders of the process's own cgroup and of its ancestors that this mount shows.
     *
     * A container without a cgroup namespace sees its cgroup's path on the host, while what is mounted is that cgroup
     * itself, or one that the path doesn't name: then the mount point stands for the process's own cgroup. A path with
     * ".." is outside the namespace's root, and nothing of it is visible.
     *
     * @return list<string>
     */
    private static function folders(string $root, string $mountPoint, string $own): array
    {
        if (\in_array('..', explode('/', $own), true)) {
            return [];
        }
        $root = rtrim($root, '/');
        $below = str_starts_with($own . '/', $root . '/') ? substr($own, \strlen($root)) : '';
        $folders = [];
        for ($folder = trim($below, '/'); $folder !== '' && $folder !== '.'; $folder = \dirname($folder)) {
            $folders[] = "{$mountPoint}/{$folder}";
        }

        return [...$folders, $mountPoint];
    }

    private function quotaV2(string $folder): ?float
    {
        return preg_match('/^(\d+) (\d+)$/', trim($this->read("{$folder}/cpu.max")), $max) === 1
            ? self::ratio((int) $max[1], (int) $max[2])
            : null;
    }

    private function quotaV1(string $folder): ?float
    {
        return self::ratio(
            (int) $this->read("{$folder}/cpu.cfs_quota_us"),
            (int) $this->read("{$folder}/cpu.cfs_period_us"),
        );
    }

    /** Both in microseconds; -1 is v1's word for no quota. */
    private static function ratio(int $quota, int $period): ?float
    {
        return $quota > 0 && $period > 0 ? $quota / $period : null;
    }

    private function read(string $path): string
    {
        return (string) @file_get_contents(rtrim($this->root, '/') . $path);
    }
}
