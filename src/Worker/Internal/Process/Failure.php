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
        $data = Thrown::of($thrown);
        $packing->add(Protocol::SERIALIZED, serialize($data));
        $part = $thrown;
        while ($part !== null && $data !== null) {
            self::tidy($part, $data);
            [$part, $data] = [$part->getPrevious(), $data->previous];
        }
        if ($part !== null) {
            return $packing->head() . $packing->bytes(); // a long chain, of which only data is sent
        }
        try {
            $packing->add(Protocol::SERIALIZED, Portable::serialize($thrown, 'The exception'));
        } catch (UnserializableException) {
            // Its class, message, code, trace and previous ones have come through as data.
        }

        return $packing->head() . $packing->bytes();
    }

    /**
     * Gives it the trace that it has as data: without the arguments of each call, which are nobody's business elsewhere and
     * often can't travel, and with the places where closures stand.
     */
    private static function tidy(\Throwable $thrown, Thrown $data): void
    {
        $class = $thrown instanceof \Error ? \Error::class : \Exception::class;
        foreach (['trace' => $data->trace, 'file' => $data->file, 'line' => $data->line] as $name => $value) {
            (new \ReflectionProperty($class, $name))->setValue($thrown, $value);
        }
    }
}
