<?php

declare(strict_types=1);

namespace Spindle\Internal\Async;

final class FiberTrace
{
    private const LOOP = 'Revolt\EventLoop\Internal\\';

    /**
     * Removes the frames of the event loop, and all outer frames. The loop resumes fibers in nested calls. So the outer
     * frames belong to fibers that were resumed earlier in the same turn. If N fibers fail in one turn, the number of
     * these frames in all traces together grows with the square of N.
     */
    public static function shorten(\Exception $exception): void
    {
        $trace = $exception->getTrace();
        foreach ($trace as $i => $frame) {
            if (str_starts_with($frame['class'] ?? '', self::LOOP)) {
                self::replace($exception, \array_slice($trace, 0, $i));

                return;
            }
        }
    }

    public static function remove(\Exception $exception): void
    {
        self::replace($exception, []);
    }

    /** @param list<array<string, mixed>> $trace */
    private static function replace(\Exception $exception, array $trace): void
    {
        (new \ReflectionProperty(\Exception::class, 'trace'))->setValue($exception, $trace);
    }
}
