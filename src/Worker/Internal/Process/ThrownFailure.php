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
    public static function pack(\Throwable $thrown): string
    {
        $packing = new ValuePacking();
        $data = Thrown::of($thrown);
        $packing->add(WorkerProtocol::SERIALIZED, serialize($data));
        $part = $thrown;
        while ($part !== null && $data !== null) {
            self::replaceTrace($part, $data);
            [$part, $data] = [$part->getPrevious(), $data->previous];
        }
        if ($part !== null) {
            // Thrown keeps only a limited number of previous exceptions. The omitted exceptions still have traces with
            // arguments. So only the data is sent, and not the object.
            return $packing->head() . $packing->bytes();
        }
        try {
            $packing->add(WorkerProtocol::SERIALIZED, ValueSerializer::serialize($thrown, 'The exception'));
        } catch (UnserializableException) {
            // The data is sufficient: it has class, message, code, trace and previous exceptions.
        }

        return $packing->head() . $packing->bytes();
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
