<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run\Output;

use Spindle\Internal\Warnings;

final class MachineLoad
{
    private const MEMORY_FILE = '/proc/meminfo';

    public static function now(): string
    {
        $load = sys_getloadavg();
        $memory = (string) Warnings::suppressed(static fn(): string|false => file_get_contents(self::MEMORY_FILE));
        $kilobytes = static fn(string $name): float
            => preg_match("/^{$name}: *(\\d+) kB$/m", $memory, $match) === 1 ? (float) $match[1] : 0.0;
        $total = $kilobytes('MemTotal');
        $parts = $load === false ? [] : [\sprintf('load %.1F', $load[0])];
        if ($total > 0) {
            $used = 100 * (1 - $kilobytes('MemAvailable') / $total);
            $parts[] = \sprintf('memory %.0F%% of %.1F GiB', $used, $total / (1 << 20));
        }

        return implode('  ', $parts);
    }
}
