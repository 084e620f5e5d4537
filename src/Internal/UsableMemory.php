<?php

declare(strict_types=1);

namespace Spindle\Internal;

/**
 * The memory that this process and others beside it can use: that of the machine, or the smallest limit of its cgroups.
 *
 * Documented in the kernel's admin-guide/cgroup-v2 ("memory.max") and admin-guide/cgroup-v1/memory, and in proc_meminfo(5).
 */
final readonly class UsableMemory
{
    private Cgroups $cgroups;

    /** @param string $root the folder that holds proc/, and that the mount points of cgroups are below */
    public function __construct(string $root = '/')
    {
        $this->cgroups = new Cgroups($root);
    }

    /** Returns bytes; null where the system does not tell. */
    public function bytes(): ?int
    {
        $limits = [];
        if (preg_match('/^MemTotal:\s*(\d+) kB$/m', $this->cgroups->read('/proc/meminfo'), $total) === 1) {
            $limits[] = (int) $total[1] * 1024;
        }
        foreach ($this->cgroups->folders('memory') as [$version, $folder]) {
            $limit = $this->cgroups->read($version === 2 ? "{$folder}/memory.max" : "{$folder}/memory.limit_in_bytes");
            if (preg_match('/^\d+$/D', $limit) === 1) { // v2 has "max" for none, v1 a number beyond all memory
                $limits[] = (int) $limit;
            }
        }

        return $limits === [] ? null : min($limits);
    }
}
