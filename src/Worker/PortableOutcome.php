<?php

declare(strict_types=1);

namespace Spindle\Worker;

use Spindle\Worker\Internal\Process\ThrownFailure;
use Spindle\Worker\Internal\TaskCode;
use Spindle\Worker\Internal\TaskOutcome;
use Spindle\Worker\Internal\ValuePacking;
use Spindle\Worker\Internal\ValueSerializer;
use Spindle\Worker\Internal\WorkerProtocol;

/** Encodes the outcome of a {@see PortableTask} where the task ran. Decodes the outcome in the caller's process. */
final class PortableOutcome
{
    private const CRASHED = 8;
    private const TIMED_OUT = 9;
    private const TOO_LARGE = 10;

    /** The task could not be decoded and has not run. A THROWN outcome with the exception follows this byte. */
    private const UNREADABLE = 11;

    public static function returned(mixed $value): string
    {
        if (\is_string($value)) {
            return \chr(WorkerProtocol::STRING) . $value;
        }
        try {
            return \chr(WorkerProtocol::SERIALIZED) . ValueSerializer::serialize($value, 'The result');
        } catch (UnserializableException $refused) {
            return self::refused($refused);
        }
    }

    /** Encodes an exception, which is shortened if it has more than `$maxBytes`: {@see ThrownFailure::pack()}. */
    public static function threw(\Throwable $thrown, int $maxBytes = \PHP_INT_MAX): string
    {
        return \chr(WorkerProtocol::THROWN) . ThrownFailure::pack($thrown, $maxBytes);
    }

    /** Encodes the failure to decode a task, for example because a class is missing. The task has not run. */
    public static function unreadable(\Throwable $why, int $maxBytes = \PHP_INT_MAX): string
    {
        $outcome = \chr(self::UNREADABLE) . self::threw($why, $maxBytes);
        $isMissing = TaskCode::isMissing($why::class, $why->getMessage());

        return $isMissing ? self::withNote($outcome, TaskCode::AGENT_ADVICE) : $outcome;
    }

    public static function isUnreadable(string $bytes): bool
    {
        return \ord($bytes[0] ?? "\0") === self::UNREADABLE;
    }

    /** Encodes the failure of a task whose result or item cannot be serialized. */
    public static function refused(UnserializableException $refused): string
    {
        return \chr(WorkerProtocol::UNSERIALIZABLE) . serialize([$refused->path, $refused->what, $refused->advice]);
    }

    /** Returns why a result or an item cannot be serialized, from bytes of {@see refused()}; null for other bytes. */
    public static function refusal(string $bytes): ?string
    {
        $kind = \ord($bytes[0] ?? "\0");

        return $kind === WorkerProtocol::UNSERIALIZABLE
            ? TaskOutcome::failure($kind, substr($bytes, 1), 1, null)->getMessage()
            : null;
    }

    /** Encodes the failure of a task whose outcome or item exceeds the size limit. `$size`: bytes of this value. */
    public static function tooLarge(int $size): string
    {
        return \chr(self::TOO_LARGE) . pack('P', $size);
    }

    /** Returns the size in bytes of the outcome or item that exceeded the size limit; null for any other outcome. */
    public static function excessSize(string $bytes): ?int
    {
        if (\ord($bytes[0] ?? "\0") !== self::TOO_LARGE) {
            return null;
        }
        /** @var array{1: int} $size */
        $size = unpack('P', $bytes, 1);

        return $size[1];
    }

    /** @param float|null $timeout time limit of the task in seconds; not used for a WorkerCrashedException */
    public static function failed(WorkerCrashedException|TaskTimeoutException $failure, ?float $timeout): string
    {
        return $failure instanceof WorkerCrashedException
            ? \chr(self::CRASHED) . serialize(
                [
                    $failure->exitCode,
                    $failure->signal,
                    $failure->error,
                    $failure->calledExit,
                    $failure->stderr,
                    $failure->memoryPeak,
                ],
            )
            : \chr(self::TIMED_OUT) . serialize($timeout);
    }

    /** Returns the exception if the task threw or was unreadable, or null. Unserializes only {@see Thrown} objects. */
    public static function thrown(string $bytes): ?Thrown
    {
        $bytes = self::isUnreadable($bytes) ? substr($bytes, 1) : $bytes;
        if (\ord($bytes[0] ?? "\0") !== WorkerProtocol::THROWN) {
            return null;
        }
        [, $parts] = ValuePacking::decode($bytes, 1);
        $thrown = ValueSerializer::unserializeData($parts[0], [Thrown::class]);

        return $thrown instanceof Thrown ? $thrown : null;
    }

    /** Appends text to the message of the exception in an outcome. Returns an outcome without exception unchanged. */
    public static function withNote(string $bytes, string $text): string
    {
        $thrown = self::thrown($bytes);
        if ($thrown === null) {
            return $bytes;
        }
        $headBytes = self::isUnreadable($bytes) ? 2 : 1;
        [$kinds, $parts] = ValuePacking::decode($bytes, $headBytes);
        $parts[0] = serialize($thrown->withMessage("{$thrown->message}{$text}"));
        $packing = new ValuePacking();
        foreach ($parts as $i => $part) {
            $packing->add(\ord($kinds[$i]), $part);
        }

        return substr($bytes, 0, $headBytes) . $packing->head() . $packing->bytes;
    }

    public static function isSuccess(string $bytes): bool
    {
        return \in_array(\ord($bytes[0] ?? "\xFF"), [WorkerProtocol::STRING, WorkerProtocol::SERIALIZED], true);
    }

    /**
     * Returns the task's result, or throws its failure.
     *
     * @param mixed $key key of the task's value in the input of map(); null for a submitted task
     *
     * @throws TaskException
     * @throws UnserializableException
     */
    public static function read(string $bytes, int $attempts, mixed $key): mixed
    {
        $bytes = self::isUnreadable($bytes) ? substr($bytes, 1) : $bytes;
        $kind = \ord($bytes[0]);
        $rest = substr($bytes, 1);
        if ($kind === self::CRASHED) {
            /** @var array{int|null, int|null, string|null, bool, string, int} $how */
            $how = ValueSerializer::unserializeData($rest);
            [$exitCode, $signal, $error, $calledExit, $stderr, $memoryPeak] = $how;

            throw WorkerCrashedException::died(
                $exitCode,
                $signal,
                $error,
                $calledExit,
                $stderr,
                $memoryPeak,
                $attempts,
                $key,
            );
        }
        if ($kind === self::TIMED_OUT) {
            /** @var float $timeout */
            $timeout = ValueSerializer::unserializeData($rest);

            throw TaskTimeoutException::after($timeout, $attempts, $key);
        }

        return match ($kind) {
            WorkerProtocol::STRING, WorkerProtocol::SERIALIZED => TaskOutcome::value($kind, $rest, $attempts, $key),
            default => throw TaskOutcome::failure($kind, $rest, $attempts, $key),
        };
    }

    /**
     * Decodes a value that a task reported with {@see TaskContext::report()}.
     *
     * @throws TaskFailedException when a class is missing in this process, or throws while its object is unserialized
     */
    public static function report(string $bytes): mixed
    {
        return TaskOutcome::value(WorkerProtocol::SERIALIZED, $bytes, 1, null);
    }

    /**
     * Decodes one item of a generator task.
     *
     * @return array{mixed, mixed} key and item
     *
     * @throws TaskFailedException when a class is missing in this process, or throws while its object is unserialized
     */
    public static function item(string $bytes, int $attempts, mixed $key): array
    {
        /** @var array{mixed, mixed} $item */
        $item = TaskOutcome::value(WorkerProtocol::SERIALIZED, $bytes, $attempts, $key);

        return $item;
    }
}
