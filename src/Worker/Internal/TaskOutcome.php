<?php

declare(strict_types=1);

namespace Spindle\Worker\Internal;

use Spindle\Worker\TaskException;
use Spindle\Worker\TaskFailedException;
use Spindle\Worker\Thrown;
use Spindle\Worker\UnserializableException;
use Spindle\Worker\WorkerStartException;

/** Decodes the outcome of a task: its result or its failure. */
final class TaskOutcome
{
    private const MISSING = self::class . '::missing';

    /**
     * @param int $kind {@see WorkerProtocol::SERIALIZED} or {@see WorkerProtocol::STRING}
     *
     * @throws TaskFailedException when a class is missing in this process, or throws while its object is unserialized
     */
    public static function value(int $kind, string $bytes, int $attempts, mixed $key): mixed
    {
        if ($kind === WorkerProtocol::STRING) {
            return $bytes;
        }
        try {
            return ValueSerializer::unserialize($bytes, self::MISSING);
        } catch (\Throwable $refused) {
            throw TaskFailedException::unreadable($refused, $attempts, $key);
        }
    }

    /** @throws \UnexpectedValueException always, as the callback of {@see ValueSerializer::unserialize()} */
    public static function missing(string $class): never
    {
        if (str_contains($class, '::')) {
            throw new \UnexpectedValueException(
                "The pool's process has no enum case {$class}, but a worker has sent it. Load the same version"
                    . ' of the enum in both processes',
            );
        }

        throw new \UnexpectedValueException(
            "The pool's process has no class {$class}, but a worker has sent an object of it. Let Composer autoload the"
                . ' class, or load it in this process',
        );
    }

    public static function startFailure(string $bytes): WorkerStartException
    {
        /** @var array{string, Thrown} $failure */
        $failure = ValueSerializer::unserializeData($bytes, [Thrown::class]);

        return WorkerStartException::threw(...$failure);
    }

    /**
     * @param int  $kind         {@see WorkerProtocol::THROWN} or another kind of failure
     * @param bool $withOriginal whether to unserialize the original exception, which may run code of its class
     *
     * @return TaskException|UnserializableException
     */
    public static function failure(
        int $kind,
        string $bytes,
        int $attempts,
        mixed $key,
        bool $withOriginal = true,
    ): \Throwable {
        if ($kind === WorkerProtocol::UNSERIALIZABLE) {
            /** @var array{string, string, 2?: string} path, description, advice (none from older versions) */
            $where = ValueSerializer::unserializeData($bytes);

            [$path, $what] = $where;
            $name = ValueSerializer::keySuffix($key);

            return UnserializableException::at(
                (string) preg_replace_callback(
                    '/^The (result|item)/',
                    static fn(array $match): string => "{$match[0]}{$name}",
                    $path,
                ),
                $what,
                null,
                $where[2] ?? '',
            );
        }
        [, $parts] = ValuePacking::decode($bytes);
        /** @var Thrown $thrown */
        $thrown = ValueSerializer::unserializeData($parts[0], [Thrown::class]);
        $original = $withOriginal && isset($parts[1]) ? self::original($parts[1], $thrown) : null;

        return TaskFailedException::threw($thrown, $original, $attempts, $key, $kind === WorkerProtocol::TASK_MISSING);
    }

    /** Unserializes the exception. Returns null if PHP cannot unserialize it. Then `$thrown` alone describes it. */
    private static function original(string $bytes, Thrown $thrown): ?\Throwable
    {
        try { // an autoloader may throw
            $original = class_exists($thrown->class) ? ValueSerializer::unserialize($bytes, self::MISSING) : null;
        } catch (\Throwable) {
            return null;
        }
        if (!$original instanceof \Throwable) {
            return null;
        }
        $exception = $original;
        while ($exception !== null && $thrown !== null) {
            $class = $exception instanceof \Error ? \Error::class : \Exception::class;
            // Exception::__wakeup() unsets a message that is no string, and a code that is no integer. So this loop
            // restores both from $thrown.
            foreach (['message' => $thrown->message, 'code' => $thrown->code] as $name => $value) {
                $property = new \ReflectionProperty($class, $name);
                if (!$property->isInitialized($exception)) {
                    $property->setValue($exception, $value);
                }
            }
            [$exception, $thrown] = [$exception->getPrevious(), $thrown->previous];
        }

        return $original;
    }
}
