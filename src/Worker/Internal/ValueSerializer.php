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
    /** Matches an enum case in the output of serialize(), but also a string that happens to contain the same text. */
    private const ENUM_PATTERN = '/(?<![^;{])E:\d+:"([^":]+):([^":]+)";/';

    /** Levels of nesting for which any fiber's stack is large enough. Each level needs up to 2 KB of stack. */
    private const MAX_SHALLOW_DEPTH = 200;

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
     * @param int $deepest depth of the value, or a mark, from {@see SerializabilityCheck::$deepest}
     *
     * @throws UnserializableException
     */
    public static function serializeAtDepth(mixed $value, string $path, int $deepest): string
    {
        if ($deepest <= self::MAX_SHALLOW_DEPTH) {
            return self::serializeChecked($value, $path);
        }
        $serialize = static fn(): string => self::serializeChecked($value, $path);

        // MAY_SHARE means that an object with the old Serializable interface may call serialize() itself. PHP has to
        // number the objects of both calls together, but would not do so under the lock. So the lock is not used.
        return SerializabilityCheck::withoutSuspension(
            $deepest === SerializabilityCheck::MAY_SUSPEND
                ? static fn(): string => SerializeLock::hold($serialize)
                : $serialize,
            $path,
        );
    }

    /**
     * Unserializes a value. If a class does not exist, throws instead of creating an incomplete object.
     *
     * @param callable-string $missing receives the name of a missing class, enum or case (`Enum::Case`), and throws
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
        if ($value === false) { // false means an error here, because the bytes are those of an array or an object
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

    /** @param list<class-string> $classes classes that may occur; MAX_DEPTH replaces PHP's unserialize_max_depth */
    public static function unserializeData(string $bytes, array $classes = []): mixed
    {
        return unserialize($bytes, ['allowed_classes' => $classes, 'max_depth' => SerializabilityCheck::MAX_DEPTH]);
    }

    /** Returns ' for KEY', to append to a message about the input value with this key; '' if the key is no scalar. */
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
            // substr() may have cut the last character in the middle, unless it is ASCII.
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

    private static function isCompound(string $bytes): bool
    {
        return \in_array($bytes[0] ?? '', ['a', 'O', 'C', 'E'], true);
    }

    /**
     * Unserializes a value that may contain objects. If code of a class suspends the fiber, DetachedCall::start()
     * returns at once. So `unserialize_callback_func` is reset before other fibers run. A suspension in
     * `__unserialize()` or `__wakeup()` does no harm, because PHP calls them only after it has looked up all classes.
     * But an autoloader or Serializable::unserialize() can suspend the fiber earlier. PHP then looks up the remaining
     * classes without the callback, and creates an incomplete object if one of these classes is missing.
     *
     * @param callable-string $missing
     */
    private static function unserializeObjects(string $bytes, string $missing): mixed
    {
        $before = (string) \ini_get('unserialize_callback_func');
        if ($before === '') { // a callback of the application is kept, because that callback may load classes
            ini_set('unserialize_callback_func', $missing);
        }
        try {
            $result = DetachedCall::start(static fn(): mixed => str_contains($bytes, 'E:')
                ? self::unserializeEnums($bytes, $missing)
                : unserialize($bytes, ['max_depth' => SerializabilityCheck::MAX_DEPTH]));
        } finally {
            ini_set('unserialize_callback_func', $before);
        }

        return $result->await();
    }

    /**
     * Unserializes a value that may contain enums. PHP calls no callback for a missing enum or case: it only warns and
     * returns false. So this method then calls $missing.
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
        } catch (\Throwable $warning) { // an error handler may throw PHP's warning as an exception in spite of `@`
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
