<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Process;

use Spindle\Http\SupervisorException;
use Spindle\Http\SupervisorOptions;
use Spindle\Internal\Launcher\Process\Files;
use Spindle\Internal\UsableMemory;

/** Determines memory_limit for processes. Debian's CLI php.ini sets no limit, so one request could use all memory. */
final readonly class MemoryLimit
{
    private const MIN_BYTES = 128 << 20;

    /** Share of the memory for all processes. Other programs, and memory that PHP does not count, get the rest. */
    private const MEMORY_SHARE = 0.75;

    /** Minimum memory_limit as a multiple of --max-memory. A process above --max-memory serves until it is replaced. */
    private const MAX_MEMORY_FACTOR = 2;

    private function __construct() {}

    /**
     * Returns the limit in PHP's notation; null to keep PHP's setting.
     *
     * @throws SupervisorException when the options have a limit that can't be set
     */
    public static function of(
        SupervisorOptions $options,
        int $processes,
        UsableMemory $memory = new UsableMemory(),
    ): ?string {
        $canBeSet = \function_exists('ini_set');
        if ($options->memoryLimit !== null) {
            return $canBeSet ? $options->memoryLimit : throw SupervisorException::withoutMemoryLimit();
        }
        if (!$canBeSet || self::isGiven()) {
            return null;
        }
        $bytes = $memory->bytes();
        if ($bytes === null) {
            return null;
        }
        $limit = max(
            self::MIN_BYTES,
            (int) ($bytes * self::MEMORY_SHARE / $processes),
            self::MAX_MEMORY_FACTOR * min($options->maxMemoryBytes ?? 0, intdiv(\PHP_INT_MAX, self::MAX_MEMORY_FACTOR)),
        );

        return intdiv($limit, 1 << 20) . 'M';
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
