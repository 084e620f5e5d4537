<?php

declare(strict_types=1);

namespace Spindle\Internal;

use Spindle\Internal\Launcher\Process\Files;

/**
 * Finds the folders of this process's cgroup and of the cgroups above it, as far as they are mounted.
 * Sources: the kernel's admin-guide/cgroup-v2 and -v1, cgroups(7) and proc_pid_mountinfo(5).
 */
final readonly class Cgroups
{
    /** @param string $root the folder with proc/ and the mount points */
    public function __construct(private string $root = '/') {}

    /**
     * @param string $controller "cpu" or "memory"
     *
     * @return list<array{1|2, string}> version of the cgroup and path of its folder
     */
    public function folders(string $controller): array
    {
        $folders = [];
        foreach ($this->mounts($controller) as [$version, $root, $mountPoint]) {
            $own = $this->ownGroup($version, $controller);
            foreach ($own === null ? [] : self::below($root, $mountPoint, $own) as $folder) {
                $folders[] = [$version, $folder];
            }
        }

        return $folders;
    }

    public function read(string $path): string
    {
        $file = rtrim($this->root, '/') . $path;

        return trim((string) Files::read($file));
    }

    /** @return list<array{1|2, string, string}> version, cgroup at the root of the mount, and mount point */
    private function mounts(string $controller): array
    {
        $mounts = [];
        foreach (explode("\n", $this->read('/proc/self/mountinfo')) as $line) {
            [$fields, $source] = explode(' - ', $line, 2) + [1 => ''];
            $fields = explode(' ', $fields);
            [$type, , $options] = explode(' ', $source) + ['', '', ''];
            $version = match (true) {
                $type === 'cgroup2' => 2,
                $type === 'cgroup' && \in_array($controller, explode(',', $options), true) => 1,
                default => null,
            };
            if ($version !== null && isset($fields[4])) {
                // The kernel writes spaces and backslashes in paths as octal escapes.
                $mounts[] = [$version, stripcslashes($fields[3]), stripcslashes($fields[4])];
            }
        }

        return $mounts;
    }

    /** @param 1|2 $version */
    private function ownGroup(int $version, string $controller): ?string
    {
        $pattern = $version === 2 ? '~^0::(/.*)$~m' : "~^\\d+:(?:[^:\n]*,)?{$controller}(?:,[^:\n]*)?:(/.*)$~m";

        return preg_match($pattern, $this->read('/proc/self/cgroup'), $match) === 1 ? $match[1] : null;
    }

    /**
     * Returns the folders of `$own` and of its ancestors that are visible in this mount. A path with ".." is outside
     * of the cgroup namespace, so not visible. In a container without a cgroup namespace, `$own` is the path on the
     * host. If the container can't see that path below `$root`, the mount point is used as the process's own cgroup.
     *
     * @param string $root the cgroup at the root of the mount
     * @param string $own  the process's own cgroup by /proc/self/cgroup
     *
     * @return list<string>
     */
    private static function below(string $root, string $mountPoint, string $own): array
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
}
