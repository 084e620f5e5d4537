<?php

declare(strict_types=1);

namespace Spindle\Internal;

use Spindle\Internal\Launcher\Process\Files;

/** Determines memory_limit for processes. Debian's CLI php.ini sets no limit, so one process could use all memory. */
final readonly class DefaultMemoryLimit
{
    private const MIN_BYTES = 128 << 20;

    /** Share of the memory for all processes. Other programs, and memory that PHP does not count, get the rest. */
    private const MEMORY_SHARE = 0.75;

    /**
     * Returns the limit in PHP's notation; null to keep PHP's setting.
     *
     * @param int $processes number of processes that share the memory
     * @param int $minBytes  minimum of the limit; has no effect below 128 MiB, which is always a minimum
     */
    public static function of(int $processes, int $minBytes = 0, UsableMemory $memory = new UsableMemory()): ?string
    {
        $bytes = self::isGiven() ? null : $memory->bytes();
        if ($bytes === null) {
            return null;
        }
        $limit = max(self::MIN_BYTES, (int) ($bytes * self::MEMORY_SHARE / $processes), $minBytes);
        $max = ini_parse_quantity((string) \ini_get('max_memory_limit')); // a setting of PHP 8.5

        return intdiv($max > 0 ? min($limit, $max) : $limit, 1 << 20) . 'M';
    }

    /** Returns whether php.ini, the command line or code sets a limit. Ignores -1 in php.ini, which Debian sets. */
    private static function isGiven(): bool
    {
        $configured = get_cfg_var('memory_limit');
        $isChanged = \ini_get('memory_limit') !== ($configured === false ? '128M' : $configured);

        return $isChanged || !\in_array($configured, [false, '-1'], true) || self::isOnTheCommandLine();
    }

    private static function isOnTheCommandLine(): bool
    {
        $line = explode("\0", (string) Files::read('/proc/self/cmdline'), -1);
        /** @var list<string> $argv */
        $argv = $_SERVER['argv'] ?? [];
        $options = \array_slice($line, 0, max(0, \count($line) - \count($argv)));

        return preg_grep('/^(?:-d|--define=)?memory_limit(?:=|$)/', $options) !== [];
    }
}
