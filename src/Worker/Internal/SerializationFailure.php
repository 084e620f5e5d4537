<?php

declare(strict_types=1);

namespace Spindle\Worker\Internal;

use Spindle\Worker\UnserializableException;

/** Finds the part of a value that serialize() has refused. PHP's exception names only the class of the part. */
final class SerializationFailure
{
    /** @var array<int|string, true> examined objects and references, by id */
    private array $seen = [];

    /** Exception for the first part all of whose refused parts were examined before: such parts form a cycle. */
    private ?UnserializableException $cycle = null;

    private function __construct() {}

    /** @param \Throwable $refused thrown by serialize() for the value */
    public static function explain(mixed $value, string $path, \Throwable $refused): UnserializableException
    {
        $failure = new self();

        return $failure->find($value, $path, $refused)
            ?? $failure->cycle
            ?? self::exceptionFor($value, $path, $refused);
    }

    /** Returns an exception that names the value itself, and not a part of it. */
    public static function exceptionFor(mixed $value, string $path, \Throwable $refused): UnserializableException
    {
        $what = $value instanceof SentClosure || $value instanceof SentCallable
            ? 'a closure'
            : 'of type ' . get_debug_type($value);
        $reason = $refused->getMessage() === '' ? $refused::class : $refused->getMessage();
        $isRefusedByPhp = preg_match("/^Serialization of '.+' is not allowed$/", $reason) === 1;

        return UnserializableException::at(
            $path,
            $isRefusedByPhp ? $what : "{$what} and can't be serialized ({$reason})",
            $refused,
            $isRefusedByPhp ? SerializabilityCheck::CREATE_IT_THERE : '',
        );
    }

    /**
     * Repeats a failed call, and returns whether the call succeeds now. If so, the value did not cause the failure. For
     * example, a signal handler may have thrown.
     *
     * @param \Closure(): mixed $call
     */
    public static function succeedsWhenRepeated(\Closure $call): bool
    {
        try {
            $call();

            return true;
        } catch (\Throwable) {
            return false;
        }
    }

    /** Returns an exception for the first refused part whose own parts are accepted; null if all are in a cycle. */
    private function find(mixed $value, string $path, \Throwable $refused): ?UnserializableException
    {
        if (\is_object($value)) {
            $this->seen[spl_object_id($value)] = true;
        }
        $parts = \is_array($value) ? $value : (array) $value;
        $isWhole = $isCycle = true;
        foreach ($parts as $name => $part) {
            $refusedPart = self::refusal($part);
            if ($refusedPart === null) {
                continue;
            }
            $isWhole = false;
            $id = \is_object($part)
                ? spl_object_id($part)
                : \ReflectionReference::fromArrayElement($parts, $name)?->getId();
            if ($id !== null && isset($this->seen[$id])) {
                continue;
            }
            $isCycle = false;
            $this->seen[$id ?? ''] = true;
            $partPath = \is_array($value) ? ValuePath::ofElement($path, $name) : ValuePath::ofProperty($path, $name);
            $found = $this->find($part, $partPath, $refusedPart);
            if ($found !== null) {
                return $found;
            }
        }
        if ($isWhole) {
            return self::exceptionFor($value, $path, $refused);
        }
        $this->cycle ??= $isCycle ? self::exceptionFor($value, $path, $refused) : null;

        return null;
    }

    /** Returns the exception with which serialize() refuses a value; null if the value is accepted. */
    private static function refusal(mixed $value): ?\Throwable
    {
        if (\is_scalar($value) || $value === null) {
            return null;
        }
        try {
            serialize($value);

            return null;
        } catch (\Throwable $refused) {
            return $refused;
        }
    }
}
