<?php

declare(strict_types=1);

namespace Spindle\Worker\Internal;

use Spindle\Internal\NumberRange;
use Spindle\Worker\UnserializableException;

/**
 * Serializes values. If PHP cannot serialize a part of a value, the exception names this part. PHP's serialize() would
 * name only the class of the part, and silently convert a resource to 0. So this class first checks arrays and objects.
 */
final class ValueSerializer
{
    /** Matches an enum case in the format of serialize(). By chance, a string may contain the same text. */
    private const ENUM_PATTERN = '/(?<![^;{])E:\d+:"([^":]+):([^":]+)";/';

    /** Levels of nesting for which any fiber's stack is large enough. Each level needs up to 2 KB of stack. */
    private const MAX_SHALLOW_DEPTH = 200;

    /** Bytes of a key that messages show. */
    private const MAX_KEY_BYTES = 200;

    /** @throws UnserializableException */
    public static function serialize(mixed $value, string $path): string
    {
        if (\is_scalar($value) || $value === null) {
            return self::serializeUnchecked($value);
        }

        return self::serializeAtDepth($value, $path, SerializabilityCheck::depth($value, $path));
    }

    /** Serializes without a check. Floats keep all digits, even if the application has lowered serialize_precision. */
    public static function serializeUnchecked(mixed $value): string
    {
        $precision = (string) \ini_get('serialize_precision');
        if ($precision === '-1' || $precision === '17') {
            return serialize($value);
        }
        ini_set('serialize_precision', '-1');
        try {
            return serialize($value);
        } finally {
            ini_set('serialize_precision', $precision);
        }
    }

    /**
     * @param int $deepest {@see SerializabilityCheck::$deepest} of the value
     *
     * @throws UnserializableException
     */
    public static function serializeAtDepth(mixed $value, string $path, int $deepest): string
    {
        if ($deepest <= self::MAX_SHALLOW_DEPTH) {
            return self::serializeChecked($value, $path);
        }
        $serialize = static fn(): string => self::serializeChecked($value, $path);

        return SerializabilityCheck::withoutSuspension(
            $deepest === SerializabilityCheck::MAY_SUSPEND
                ? static fn(): string => SerializeLock::hold($serialize)
                : $serialize, // with the lock, a serialize() call in Serializable::serialize() would get its own table
            $path,
        );
    }

    /**
     * Unserializes a value. If a class does not exist, throws instead of creating an incomplete object.
     *
     * @param callable-string $missing receives the name of a class or enum that does not exist, and throws
     *
     * @throws \UnexpectedValueException when PHP cannot read the bytes
     * @throws \Throwable from $missing, or from a class whose object is unserialized
     */
    public static function unserialize(string $bytes, string $missing): mixed
    {
        if (!self::isCompound($bytes)) {
            return unserialize($bytes);
        }
        $value = self::mayRunCode($bytes)
            ? self::unserializeObjects($bytes, $missing)
            : unserialize($bytes, ['max_depth' => SerializabilityCheck::MAX_DEPTH]);
        if ($value === false) { // an error, because the bytes are not those of a boolean
            throw new \UnexpectedValueException(
                'PHP cannot read the value: it is damaged, or ' . SerializabilityCheck::TOO_DEEP,
            );
        }

        return $value;
    }

    /** Returns whether {@see self::unserialize()} may run code of classes or of autoloaders. */
    public static function mayRunCode(string $bytes): bool
    {
        return self::isCompound($bytes)
            && (str_contains($bytes, 'O:') || str_contains($bytes, 'C:') || str_contains($bytes, 'E:'));
    }

    /** @param list<class-string> $classes classes that the data may contain; php.ini's depth limit does not apply */
    public static function unserializeData(string $bytes, array $classes = []): mixed
    {
        return unserialize($bytes, ['allowed_classes' => $classes, 'max_depth' => SerializabilityCheck::MAX_DEPTH]);
    }

    /** Returns a suffix for messages, with the key of an input value; '' if the key is no scalar. */
    public static function keySuffix(mixed $key): string
    {
        return \is_scalar($key) ? ' for ' . self::keyText($key) : '';
    }

    /** Returns a key for messages. A long string ends with an ellipsis. */
    public static function keyText(bool|int|float|string $key): string
    {
        if (\is_float($key) && !is_finite($key)) {
            return NumberRange::text($key);
        }
        if (\is_string($key) && \strlen($key) > self::MAX_KEY_BYTES) {
            // without the last character, which may be incomplete
            $start = preg_replace('/[\xC0-\xFF][\x80-\xBF]*$/D', '', substr($key, 0, self::MAX_KEY_BYTES));
            $key = "{$start}…";
        }

        return (string) json_encode(
            $key,
            \JSON_INVALID_UTF8_SUBSTITUTE | \JSON_UNESCAPED_SLASHES | \JSON_UNESCAPED_UNICODE,
        );
    }

    private static function serializeChecked(mixed $value, string $path): string
    {
        try {
            return self::serializeUnchecked($value);
        } catch (\Throwable $refused) {
            throw SerializationFailure::succeedsWhenRepeated(static fn(): string => serialize($value))
                ? $refused
                : SerializationFailure::explain($value, $path, $refused);
        }
    }

    /** Returns whether the bytes are those of an array or an object. */
    private static function isCompound(string $bytes): bool
    {
        return \in_array($bytes[0] ?? '', ['a', 'O', 'C', 'E'], true);
    }

    /**
     * Unserializes a value that may contain objects. If a method of an object suspends the fiber, DetachedCall::start()
     * returns, and this method resets `unserialize_callback_func` before other fibers run. `__unserialize()` and
     * `__wakeup()` may suspend the fiber, because PHP calls them only after it has looked up all classes. But after a
     * suspension in an autoloader or in Serializable::unserialize(), a missing class gives an incomplete object.
     *
     * @param callable-string $missing
     */
    private static function unserializeObjects(string $bytes, string $missing): mixed
    {
        $before = (string) \ini_get('unserialize_callback_func');
        if ($before === '') { // a callback of the application is kept, because it may load classes
            ini_set('unserialize_callback_func', $missing);
        }
        try {
            $call = DetachedCall::start(static fn(): mixed => str_contains($bytes, 'E:')
                ? self::unserializeEnums($bytes, $missing)
                : unserialize($bytes, ['max_depth' => SerializabilityCheck::MAX_DEPTH]));
        } finally {
            ini_set('unserialize_callback_func', $before);
        }

        return $call->await();
    }

    /**
     * Unserializes a value that may contain enums. PHP only warns about a missing enum, so this method calls $missing.
     *
     * @param callable-string $missing
     */
    private static function unserializeEnums(string $bytes, string $missing): mixed
    {
        if (preg_match_all(self::ENUM_PATTERN, $bytes, $cases, \PREG_SET_ORDER) === 0) {
            return unserialize($bytes, ['max_depth' => SerializabilityCheck::MAX_DEPTH]);
        }
        $warning = null;
        try {
            $value = @unserialize($bytes, ['max_depth' => SerializabilityCheck::MAX_DEPTH]);
        } catch (\Throwable $warning) { // possibly from an error handler that throws in spite of `@`
            $value = false;
        }
        if ($value === false) {
            foreach ($cases as [, $enum, $case]) {
                if (!enum_exists($enum) || !\defined("{$enum}::{$case}")) {
                    $missing(enum_exists($enum) ? "{$enum}::{$case}" : $enum);
                }
            }
        }

        return $warning === null ? $value : throw $warning;
    }
}
