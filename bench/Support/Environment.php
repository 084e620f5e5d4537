<?php

declare(strict_types=1);

namespace Spindle\Bench\Support;

use Spindle\Internal\CpuCount;

/** The machine and software of a measurement. */
final class Environment
{
    /** @return array<string, string> */
    public static function describe(): array
    {
        return [
            'PHP' => \PHP_VERSION
                . ' '
                . ((bool) \PHP_ZTS ? 'ZTS' : 'NTS')
                . ((bool) \PHP_DEBUG ? ', debug build' : ''),
            'FFI' => self::hasFfi() ? 'yes' : 'no',
            'System' => php_uname('s') . ' ' . php_uname('r') . ' ' . php_uname('m'),
            'CPU' => self::cpu(),
            'Cores' => (string) (new CpuCount())->usable(),
            'Memory' => self::memory(),
            'Shell' => (string) realpath('/bin/sh'),
            'Load' => \sprintf('%.2f', self::load()),
        ];
    }

    public static function print(): void
    {
        foreach (self::describe() as $name => $value) {
            printf("%-8s %s\n", $name, $value);
        }
    }

    /** Returns whether the launcher can use FFI: built in, loaded here, or available as an extension file. */
    public static function hasFfi(): bool
    {
        return \extension_loaded('FFI') || is_file(\ini_get('extension_dir') . '/ffi.so');
    }

    /** @return string|null a reason why figures from this machine are doubtful at the moment */
    public static function warning(): ?string
    {
        return self::load() > 0.5 * (new CpuCount())->usable()
            ? \sprintf('the machine was busy before the start, at a load of %.1f', self::load())
            : null;
    }

    private static function cpu(): string
    {
        $info = (string) @file_get_contents('/proc/cpuinfo');

        return preg_match('/^(?:model name|Model)\s*:\s*(.+)$/m', $info, $match) === 1 ? $match[1] : php_uname('m');
    }

    private static function memory(): string
    {
        $info = (string) @file_get_contents('/proc/meminfo');

        return preg_match('/^MemTotal:\s*(\d+) kB$/m', $info, $match) === 1
            ? round((int) $match[1] / 1024 / 1024, 1) . ' GiB'
            : 'unknown';
    }

    /** Returns the load of the last minute. */
    private static function load(): float
    {
        $loads = sys_getloadavg();

        return $loads === false ? 0.0 : $loads[0];
    }
}
