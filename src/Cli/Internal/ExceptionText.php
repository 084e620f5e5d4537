<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal;

use Revolt\EventLoop\Driver;
use Revolt\EventLoop\Internal\AbstractDriver;
use Spindle\Internal\ThrownText;

/** Formats exceptions for a log. Leaves out the trace frames of the code that called the application. */
final class ExceptionText
{
    private const MAX_EXCEPTIONS = 10;

    /**
     * Formats an exception and its previous exceptions, beginning with the first cause. If there are more than
     * MAX_EXCEPTIONS, the text has only the first cause and the latest exceptions. Such a chain is not converted by
     * (string), because the time of that conversion grows with the square of the number of exceptions. Clients may
     * influence this number.
     */
    public static function of(\Throwable $exception): string
    {
        $chain = [];
        $cause = $exception;
        for ($next = $exception; $next !== null; $next = $next->getPrevious()) {
            $chain[] = $cause = $next;
        }
        $surplus = \count($chain) - self::MAX_EXCEPTIONS;
        try {
            if ($surplus <= 0) {
                return self::shortened((string) $exception, $chain);
            }
        } catch (\Throwable) { // the conversion fails if a subclass has set the message to an object
            return self::describe($exception);
        }
        $latest = array_reverse(\array_slice($chain, 0, self::MAX_EXCEPTIONS - 1));

        return self::describe($cause)
            . "\n\n… {$surplus} exceptions are left out …\n\nNext "
            . implode("\n\nNext ", array_map(self::describe(...), $latest));
    }

    private static function describe(\Throwable $exception): string
    {
        return $exception::class
            . ': ' . ThrownText::message($exception) . " in {$exception->getFile()}:{$exception->getLine()}\n"
            . "Stack trace:\n" . self::trace($exception);
    }

    /**
     * Replaces each trace in the text of an exception chain with its shortened form, {@see trace()}.
     *
     * @param list<\Throwable> $chain
     */
    private static function shortened(string $text, array $chain): string
    {
        foreach ($chain as $exception) {
            $text = str_replace($exception->getTraceAsString(), self::trace($exception), $text);
        }

        return $text;
    }

    /** Returns a trace without the frames of the event loop and of Spindle that led to the call of the application. */
    private static function trace(\Throwable $exception): string
    {
        $text = $exception->getTraceAsString();
        $frames = $exception->getTrace();
        $kept = self::keptFrames($frames, $exception->getFile());
        $leftOut = \count($frames) - $kept;
        $start = strrpos($text, "\n#{$kept} ");
        $end = strrpos($text, "\n#" . \count($frames) . ' {main}');

        return $leftOut < 2 || $start === false || $end === false
            ? $text
            : substr($text, 0, $start) . "\n… {$leftOut} frames of Spindle and its event loop are left out …"
                . substr($text, $end);
    }

    /**
     * Returns how many frames to keep, from the top of the trace. The last kept frame names the application's function
     * that Spindle called. If Spindle has not called the application, all frames above the event loop are kept.
     *
     * @param list<array{file?: string, class?: string}> $frames
     * @param string $file file in which the exception was created
     */
    private static function keptFrames(array $frames, string $file): int
    {
        foreach ($frames as $index => $frame) {
            $isLoop = !isset($frame['file']) && is_subclass_of($frame['class'] ?? '', Driver::class);
            if ($isLoop) { // the fiber in which the event loop calls its callbacks starts here
                $kept = $index;
                while ($kept > 0 && self::isLibrary($frames[$kept - 1]['file'] ?? '')) {
                    --$kept;
                }

                return $kept === 0 && self::isLibrary($file) ? $index : min($kept + 1, $index);
            }
        }

        return \count($frames);
    }

    private static function isLibrary(string $file): bool
    {
        $loop = (new \ReflectionClass(AbstractDriver::class))->getFileName();

        return $file === '' || $file === $loop || str_starts_with($file, \dirname(__DIR__, 2) . '/');
    }
}
