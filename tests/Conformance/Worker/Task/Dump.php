<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Worker\Task;

use Spindle\Worker\TaskContext;

/** Everything that a task can print, export or serialize about its surroundings. */
final class Dump
{
    public static function everything(): string
    {
        ini_set('zend.exception_ignore_args', '0');
        $callers = debug_backtrace(\DEBUG_BACKTRACE_PROVIDE_OBJECT);
        $parts = [
            'globals' => $GLOBALS,
            'context' => TaskContext::current(),
            'callers' => $callers,
            'trace' => (new \Exception())->getTrace(),
        ];
        foreach ([...array_values($GLOBALS), ...array_column($callers, 'object')] as $part) {
            $parts[] = $part;
            $parts[] = \is_object($part) ? (array) $part : null;
        }

        return implode("\n", array_map(self::of(...), $parts));
    }

    private static function of(mixed $value): string
    {
        ob_start();
        var_dump($value);
        print_r($value);
        @var_export($value); // warns of circular references
        try {
            echo serialize($value);
        } catch (\Throwable) {
            // The value cannot be serialized, so there is nothing to print.
        }

        return (string) ob_get_clean();
    }
}
