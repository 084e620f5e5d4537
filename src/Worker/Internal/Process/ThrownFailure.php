<?php

declare(strict_types=1);

namespace Spindle\Worker\Internal\Process;

use Spindle\Worker\Internal\ValuePacking;
use Spindle\Worker\Internal\ValueSerializer;
use Spindle\Worker\Internal\WorkerProtocol;
use Spindle\Worker\Thrown;
use Spindle\Worker\UnserializableException;

/** Serializes an exception of a task as data ({@see Thrown}), and also as an object if PHP can serialize it. */
final class ThrownFailure
{
    /**
     * Packs an exception. If the result would exceed $maxBytes, leaves out the object and shortens the texts. Then the
     * result has less than 64 KiB, unless class or file names are very long.
     */
    public static function pack(\Throwable $thrown, int $maxBytes = \PHP_INT_MAX): string
    {
        $data = Thrown::of($thrown);
        // A message that is too large is not encoded, because the worker's memory may not suffice for further copies.
        $packed = \strlen($data->message) > $maxBytes ? null : self::whole($thrown, $data);
        if ($packed !== null && \strlen($packed) <= $maxBytes) {
            return $packed;
        }
        $packing = new ValuePacking();
        $packing->add(WorkerProtocol::SERIALIZED, serialize($data->shortened()));

        return $packing->head() . $packing->bytes;
    }

    private static function whole(\Throwable $thrown, Thrown $data): string
    {
        $packing = new ValuePacking();
        $packing->add(WorkerProtocol::SERIALIZED, serialize($data));
        $part = $thrown;
        while ($part !== null && $data !== null) {
            self::replaceTrace($part, $data);
            [$part, $data] = [$part->getPrevious(), $data->previous];
        }
        if ($part !== null) {
            // Thrown keeps only a limited number of previous exceptions. The omitted exceptions still have traces with
            // arguments. So only the data is sent, and not the object.
            return $packing->head() . $packing->bytes;
        }
        try {
            $packing->add(WorkerProtocol::SERIALIZED, ValueSerializer::serialize($thrown, 'The exception'));
        } catch (UnserializableException) {
            // The data is sufficient: it has class, message, code, trace and previous exceptions.
        }

        return $packing->head() . $packing->bytes;
    }

    /**
     * Replaces the file, line and trace of an exception by those of `$data`. `$data` names the original files of
     * closures. The new trace has no arguments, because arguments may be secret and often cannot be serialized.
     */
    private static function replaceTrace(\Throwable $thrown, Thrown $data): void
    {
        $class = $thrown instanceof \Error ? \Error::class : \Exception::class;
        foreach (['trace' => $data->trace, 'file' => $data->file, 'line' => $data->line] as $name => $value) {
            (new \ReflectionProperty($class, $name))->setValue($thrown, $value);
        }
    }
}
