<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Process;

use Spindle\Http\SupervisorException;
use Spindle\Http\SupervisorOptions;
use Spindle\Internal\DefaultMemoryLimit;
use Spindle\Internal\UsableMemory;

/** Determines memory_limit for the processes of a server. */
final readonly class MemoryLimit
{
    /** Minimum memory_limit as a multiple of --max-memory: a process above --max-memory serves until it is replaced. */
    private const MAX_MEMORY_FACTOR = 2;

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

        return $canBeSet ? DefaultMemoryLimit::of(
            $processes,
            self::MAX_MEMORY_FACTOR * min($options->maxMemoryBytes ?? 0, intdiv(\PHP_INT_MAX, self::MAX_MEMORY_FACTOR)),
            $memory,
        ) : null;
    }
}
