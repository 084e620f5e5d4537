<?php

declare(strict_types=1);

namespace Spindle\Internal;

/**
 * Keeps the output buffers (ob_start()) of fibers apart.
 * PHP has one stack of buffers for all fibers: output of other fibers would get into the buffers of a waiting fiber.
 * So the buffers of a fiber are closed before the fiber waits, and restored afterwards.
 */
final class OutputBuffers
{
    private const DEFAULT_HANDLER = 'default output handler';

    /** The class that runs callbacks of the event loop in a fiber. */
    private const LOOP_DRIVER_CLASS = 'Revolt\EventLoop\Internal\AbstractDriver';

    /** Number of outermost buffers that all fibers share; null when buffers of fibers are not kept apart. */
    public static ?int $sharedLevel = null;

    /** @throws \LogicException when the fiber has a buffer that can't be closed, or that may belong to another fiber */
    public static function check(): void
    {
        if (self::$sharedLevel === null || ob_get_level() <= self::$sharedLevel) {
            return;
        }
        /** @var list<array{name: string, flags: int}> $buffers */
        $buffers = ob_get_status(true);
        foreach (\array_slice($buffers, self::$sharedLevel) as $buffer) {
            if ($buffer['name'] !== self::DEFAULT_HANDLER || ($buffer['flags'] & \PHP_OUTPUT_HANDLER_REMOVABLE) === 0) {
                throw new \LogicException(
                    'This fiber cannot wait while its output buffer has a callback or cannot be removed: output of'
                    . ' other fibers would get into the buffer. Wait before ob_start(), or call ob_start() without'
                    . ' arguments. If a library calls ob_start(), use its mode without output buffers, such as'
                    . ' use_yield of Twig, or fetch all data before the call of the library',
                );
            }
        }
        if (!self::isOfTheLoop()) {
            throw new \LogicException(
                'This fiber cannot wait, because an open output buffer may belong to the fiber that started this fiber:'
                    . ' output of other fibers would get into the buffer. Wait before ob_start(), or start the fiber'
                    . ' with Amp\async()',
            );
        }
    }

    /** Returns whether the caller is {main} or a fiber of the loop. Other fibers may have buffers of their creators. */
    private static function isOfTheLoop(): bool
    {
        $inner = [];
        foreach (debug_backtrace(\DEBUG_BACKTRACE_IGNORE_ARGS) as $frame) {
            if (($frame['class'] ?? '') === \Fiber::class) {
                return ($inner['class'] ?? '') === self::LOOP_DRIVER_CLASS; // the fiber runs the function of $inner
            }
            $inner = $frame;
        }

        return true;
    }

    /**
     * Calls a function that suspends the fiber, with the fiber's own buffers set aside.
     *
     * @template T
     *
     * @param \Closure(): T $suspend
     *
     * @return T
     *
     * @throws \LogicException see {@see check()}
     */
    public static function keepApartDuring(\Closure $suspend): mixed
    {
        $buffers = self::setAside();
        // A finally block would also run when the fiber is destroyed. PHP can destroy a fiber while any other code
        // runs, whose output buffers must not be replaced.
        try {
            $value = $suspend();
        } catch (\Throwable $failure) {
            self::restore($buffers);
            throw $failure;
        }
        self::restore($buffers);

        return $value;
    }

    /**
     * @return list<array{string, int}> content and chunk size of each buffer, the outermost first
     *
     * @throws \LogicException see {@see check()}
     */
    public static function setAside(): array
    {
        if (self::$sharedLevel === null || ob_get_level() <= self::$sharedLevel) {
            return [];
        }
        self::check();
        $buffers = [];
        while (ob_get_level() > self::$sharedLevel) {
            /** @var array{chunk_size: int} $status */
            $status = ob_get_status();
            $buffers[] = [(string) ob_get_clean(), $status['chunk_size']];
        }

        return array_reverse($buffers);
    }

    /** @param list<array{string, int}> $buffers result of {@see setAside()} */
    public static function restore(array $buffers): void
    {
        foreach ($buffers as [$bytes, $chunkSize]) {
            ob_start(null, $chunkSize);
            echo $bytes;
        }
    }
}
