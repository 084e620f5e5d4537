<?php

declare(strict_types=1);

namespace Spindle\Internal;

/**
 * Keeps the output buffers (ob_start()) of fibers apart.
 *
 * PHP has one stack of buffers for all fibers, so that output of others would get into the buffer of a waiting fiber.
 * So the buffers of a fiber are closed while it waits, and restored after that.
 */
final class OutputBuffers
{
    private const DEFAULT_HANDLER = 'default output handler';

    /** The class that runs callbacks of the event loop in a fiber. */
    private const LOOP_DRIVER_CLASS = 'Revolt\EventLoop\Internal\AbstractDriver';

    /** Number of outermost buffers that all fibers share; null when nothing is kept apart. */
    public static ?int $shared = null;

    /**
     * Checks that the running fiber may wait.
     *
     * @throws \LogicException when it has a buffer that can't be closed while it waits
     */
    public static function check(): void
    {
        if (self::$shared === null || ob_get_level() <= self::$shared) {
            return;
        }
        /** @var list<array{name: string, flags: int}> $buffers */
        $buffers = ob_get_status(true);
        foreach (\array_slice($buffers, self::$shared) as $buffer) {
            if ($buffer['name'] !== self::DEFAULT_HANDLER || ($buffer['flags'] & \PHP_OUTPUT_HANDLER_REMOVABLE) === 0) {
                throw new \LogicException(
                    'This fiber cannot wait while its output buffer has a callback or cannot be removed: output of'
                    . ' other fibers would get into the buffer. Wait before ob_start(), or call ob_start() without'
                    . ' arguments',
                );
            }
        }
        if (!self::isOfTheLoop()) {
            throw new \LogicException(
                'This fiber cannot wait while an output buffer is open that may belong to the fiber that started it:'
                    . ' output of other fibers would get into the buffer. Wait before ob_start(), or start the fiber'
                    . ' with Amp\async()',
            );
        }
    }

    /** Whether the running fiber was started by the event loop or is {main}, so that all open buffers are its own. */
    private static function isOfTheLoop(): bool
    {
        $inner = [];
        foreach (debug_backtrace(\DEBUG_BACKTRACE_IGNORE_ARGS) as $frame) {
            if (($frame['class'] ?? '') === \Fiber::class) {
                return ($inner['class'] ?? '') === self::LOOP_DRIVER_CLASS; // the fiber's function
            }
            $inner = $frame;
        }

        return true;
    }

    /**
     * Closes the buffers of the running fiber before it waits.
     *
     * @return list<array{string, int}> content and chunk size of each buffer, the outermost first
     *
     * @throws \LogicException
     */
    public static function setAside(): array
    {
        if (self::$shared === null || ob_get_level() <= self::$shared) {
            return [];
        }
        self::check();
        $buffers = [];
        while (ob_get_level() > self::$shared) {
            /** @var array{chunk_size: int} $status */
            $status = ob_get_status();
            $buffers[] = [(string) ob_get_clean(), $status['chunk_size']];
        }

        return array_reverse($buffers);
    }

    /** @param list<array{string, int}> $buffers as {@see setAside()} returned them */
    public static function restore(array $buffers): void
    {
        foreach ($buffers as [$bytes, $chunkSize]) {
            ob_start(null, $chunkSize);
            echo $bytes;
        }
    }
}
