<?php

declare(strict_types=1);

namespace Spindle\Internal;

/** Finds how much memory this process can use: the machine's memory, or a smaller limit of the process's cgroups. */
final readonly class UsableMemory
{
    private Cgroups $cgroups;

    /** @param string $root folder with proc/ and the mount points of cgroups */
    public function __construct(string $root = '/')
    {
        $this->cgroups = new Cgroups($root);
    }

    public function bytes(): ?int
    {
        $limits = [];
        if (preg_match('/^MemTotal:\s*(\d+) kB$/m', $this->cgroups->read('/proc/meminfo'), $total) === 1) {
            $limits[] = (int) $total[1] * 1024;
        }
        foreach ($this->cgroups->folders('memory') as [$version, $folder]) {
            $limit = $this->cgroups->read($version === 2 ? "{$folder}/memory.max" : "{$folder}/memory.limit_in_bytes");
            if (preg_match('/^\d+$/D', $limit) === 1) { // without a limit: "max" in v2, a huge number in v1
                $limits[] = (int) $limit;
            }
        }

        return $limits === [] ? null : min($limits);
    }
}
