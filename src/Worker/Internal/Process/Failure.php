<?php

declare(strict_types=1);

namespace Spindle\Worker\Internal\Process;

use Spindle\Worker\Internal\Packing;
use Spindle\Worker\Internal\Portable;
use Spindle\Worker\Internal\Protocol;
use Spindle\Worker\Thrown;
use Spindle\Worker\UnserializableException;

/** What a task has thrown, as bytes: as data, and the object itself if it can travel. */
final class Failure
{
    public static function pack(\Throwable $thrown): string
    {
        $packing = new Packing();
        $packing->add(Protocol::SERIALIZED, serialize(Thrown::of($thrown)));
        for ($part = $thrown; $part !== null; $part = $part->getPrevious()) {
            self::dropArguments($part);
        }
        try {
            $packing->add(Protocol::SERIALIZED, Portable::serialize($thrown, 'The exception'));
        } catch (UnserializableException) {
            // Its class, message, code, trace and previous ones have come through as data.
        }

        return $packing->head() . $packing->bytes();
    }

    /** A trace holds the arguments of each call, which are nobody's business elsewhere and often can't travel. */
    private static function dropArguments(\Throwable $thrown): void
    {
        $trace = new \ReflectionProperty($thrown instanceof \Error ? \Error::class : \Exception::class, 'trace');
        $frames = [];
        foreach ($thrown->getTrace() as $frame) {
            unset($frame['args'], $frame['object']);
            $frames[] = $frame;
        }
        $trace->setValue($thrown, $frames);
    }
}
