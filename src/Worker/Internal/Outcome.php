<?php

declare(strict_types=1);

namespace Spindle\Worker\Internal;

use Spindle\Worker\TaskException;
use Spindle\Worker\TaskFailedException;
use Spindle\Worker\Thrown;
use Spindle\Worker\UnserializableException;
use Spindle\Worker\WorkerStartException;

/** Decodes the outcome of a task: its result or its failure. */
final class Outcome
{
    private const MISSING = self::class . '::missing';

    /**
     * @param int $kind {@see Protocol::SERIALIZED} or {@see Protocol::STRING}
     *
     * @throws TaskFailedException when a class is missing in this process or refuses its data
     */
    public static function value(int $kind, string $bytes, int $attempts, mixed $key): mixed
    {
        if ($kind === Protocol::STRING) {
            return $bytes;
        }
        try {
            return Portable::unserialize($bytes, self::MISSING);
        } catch (\Throwable $refused) {
            throw TaskFailedException::threw(Thrown::of($refused), $refused, $attempts, $key);
        }
    }

    /** @throws \UnexpectedValueException always, as the callback of {@see Portable::unserialize()} */
    public static function missing(string $class): never
    {
        throw new \UnexpectedValueException("The process of the pool has no class {$class}, of which a worker has sent an object: load it there as well, or let Composer autoload it");
    }

    /** Decodes why a worker or its host could not be made ready. */
    public static function startFailure(string $bytes): WorkerStartException
    {
        /** @var Thrown $thrown */
        $thrown = unserialize($bytes, ['allowed_classes' => [Thrown::class]]);

        return WorkerStartException::threw($thrown);
    }

    /**
     * @param int $kind {@see Protocol::THROWN} or {@see Protocol::UNSERIALIZABLE}
     *
     * @return TaskException|UnserializableException
     */
    public static function failure(int $kind, string $bytes, int $attempts, mixed $key): \Throwable
    {
        if ($kind === Protocol::UNSERIALIZABLE) {
            /** @var array{string, string} $where */
            $where = unserialize($bytes, ['allowed_classes' => false]);

            [$path, $what] = $where;
            $name = Portable::forKey($key);

            return UnserializableException::at((string) preg_replace_callback('/^The (result|item)/', static fn(array $match): string => "{$match[0]}{$name}", $path), $what);
        }
        [, $parts] = Packing::split($bytes);
        /** @var Thrown $thrown */
        $thrown = unserialize($parts[0], ['allowed_classes' => [Thrown::class]]);
        $original = null;
        if (isset($parts[1]) && class_exists($thrown->class)) {
            try {
                $original = Portable::unserialize($parts[1], self::MISSING);
            } catch (\Throwable) {
                // The failure as data is already complete.
            }
        }

        return TaskFailedException::threw($thrown, $original instanceof \Throwable ? $original : null, $attempts, $key);
    }
}
