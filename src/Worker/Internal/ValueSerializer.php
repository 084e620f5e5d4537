<?php

declare(strict_types=1);

namespace Spindle\Worker\Internal;

use Spindle\Worker\UnserializableException;

/**
 * Serializes values, or throws an exception that names the part of a value that cannot be serialized.
 *
 * PHP's serialize() only names the class that it refuses, not its place, and silently converts a resource to 0. So
 * this class also inspects every value that may contain others.
 */
final class ValueSerializer
{
    /** An enum case in the format of serialize(), or text that only looks like one. */
    private const ENUM_PATTERN = '/(?<![^;{])E:\d+:"([^":]+):(\w+)";/';

    /** Maximum levels of arrays and objects in a value: PHP's default for unserialize_max_depth. */
    private const MAX_DEPTH = 4096;

    /** Number of levels that fit on the stack of any fiber: serialize() needs up to 2 KB of stack for each. */
    private const MAX_SHALLOW_DEPTH = 200;

    /** Bytes of stack for deeper values. The system only provides the pages that are used. */
    private const LARGE_STACK_BYTES = 16 << 20;

    /** Length at which a path is cut off. */
    private const MAX_PATH_BYTES = 1000;

    /** Namespace of this library, whose classes with __clone() own processes, connections or servers. */
    private const OWN_NAMESPACE = 'Spindle\\';

    /** PHP classes whose objects lose their contents in serialize() without an error. */
    private const EMPTIED_CLASSES = [
        'SplHeap', 'SplPriorityQueue', 'IteratorIterator', 'RecursiveIteratorIterator', 'MultipleIterator', 'XMLReader',
        'XMLWriter', 'XSLTProcessor', 'DOMNodeList', 'DOMNamedNodeMap', 'ZipArchive',
    ];

    // How serialize() reads the objects of a class.
    private const PROPERTIES = 0;
    private const OWN_METHOD = 1;
    private const METHOD_OF_PHP = 2;
    private const DATE = 3;
    private const OF_THIS_PROCESS = 4;
    private const EMPTY = 5;

    /** @var array<string, int> kind of objects, by class */
    private static array $kinds = [];

    /** @throws UnserializableException */
    public static function serialize(mixed $value, string $path): string
    {
        if (\is_scalar($value) || $value === null) {
            return self::bytes($value);
        }

        return self::serializeAtDepth($value, $path, self::check($value, $path));
    }

    /** Serializes without a check. Floats keep all digits: an application may have lowered serialize_precision. */
    public static function bytes(mixed $value): string
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
     * Serializes a value that was checked by {@see self::check()}.
     *
     * @param int $deepest result of that method
     *
     * @throws UnserializableException
     */
    public static function serializeAtDepth(mixed $value, string $path, int $deepest): string
    {
        return $deepest > self::MAX_SHALLOW_DEPTH && \Fiber::getCurrent() !== null
            ? self::serializeWithLargeStack($value, $path)
            : self::serializeChecked($value, $path);
    }

    /**
     * Unserializes a value, and fails if a class does not exist, instead of creating an incomplete object.
     *
     * @param callable-string $missing receives the name of a class or enum that does not exist, and throws
     *
     * @throws \UnexpectedValueException when PHP cannot read the bytes
     * @throws \Throwable from $missing, or from a class that refuses its data
     */
    public static function unserialize(string $bytes, string $missing): mixed
    {
        if (!\in_array($bytes[0] ?? '', ['a', 'O', 'C', 'E'], true)) {
            return unserialize($bytes); // contains no object
        }
        $before = (string) \ini_get('unserialize_callback_func');
        if ($before === '') { // otherwise the application loads classes by this setting
            ini_set('unserialize_callback_func', $missing);
        }
        try {
            $value = str_contains($bytes, 'E:')
                ? self::unserializeEnums($bytes, $missing)
                : unserialize($bytes, ['max_depth' => self::MAX_DEPTH]);
        } finally {
            ini_set('unserialize_callback_func', $before);
        }
        if ($value === false) { // the bytes are those of an array or an object
            $most = self::MAX_DEPTH;

            throw new \UnexpectedValueException(
                "PHP cannot read the value: it is damaged, or nested deeper than {$most} levels",
            );
        }

        return $value;
    }

    /**
     * Finds parts that serialize() would lose or that no other process could restore: resources, anonymous classes,
     * and levels too deep to be read again.
     *
     * @param (\Closure(): void)|null $closures called for each closure that is in no object; null refuses closures
     * @param array<int|string, true>  $seen     objects and references by id
     * @param int                      $depth    number of arrays and objects around the value
     *
     * @return int depth of the deepest part; PHP_INT_MAX if a class hides its contents
     *
     * @throws UnserializableException
     */
    public static function check(
        mixed $value,
        string $path,
        ?\Closure $closures = null,
        array &$seen = [],
        int $depth = 0,
    ): int {
        if ($depth >= self::MAX_DEPTH && (\is_array($value) || \is_object($value))) {
            $most = self::MAX_DEPTH;

            throw UnserializableException::at($path, "nested deeper than {$most} levels");
        }
        $deepest = $depth;
        if (\is_array($value)) {
            foreach ($value as $key => $item) {
                if (\is_scalar($item) || $item === null) {
                    continue;
                }
                $reference = \is_array($item) ? \ReflectionReference::fromArrayElement($value, $key)?->getId() : null;
                if ($reference !== null && isset($seen[$reference])) {
                    continue; // an array may contain itself
                }
                $seen[$reference ?? ''] = true;
                $deepest = max($deepest, self::check($item, self::inArray($path, $key), $closures, $seen, $depth + 1));
            }
        } elseif (\is_object($value)) {
            return self::checkObject($value, $path, $closures, $seen, $depth);
        } elseif (\is_resource($value)) {
            throw UnserializableException::at($path, 'an open ' . get_resource_type($value));
        } elseif (!\is_scalar($value) && $value !== null) {
            throw UnserializableException::at($path, 'a closed resource');
        }

        return $deepest;
    }

    /**
     * @param (\Closure(): void)|null $closures
     * @param array<int|string, true>  $seen
     */
    private static function checkObject(object $value, string $path, ?\Closure $closures, array &$seen, int $depth): int
    {
        if ($value instanceof \Closure) {
            $closures === null ? throw UnserializableException::at($path, 'a closure') : $closures();

            return $depth;
        }
        $id = spl_object_id($value);
        if (isset($seen[$id]) || $value instanceof \UnitEnum) {
            return $depth;
        }
        $seen[$id] = true;
        $class = $value::class;
        if (str_contains($class, "@anonymous\0")) {
            throw UnserializableException::at($path, 'an object of an anonymous class');
        }
        $kind = self::$kinds[$class] ??= self::kind($value);
        if ($kind === self::OF_THIS_PROCESS) {
            throw UnserializableException::at($path, "a {$class}, which belongs to this process");
        }
        if ($kind === self::EMPTY) {
            $advice = 'send its contents as an array';
            throw UnserializableException::at(
                $path,
                "of class {$class}, whose contents PHP does not serialize",
                null,
                $advice,
            );
        }
        if ($kind === self::OWN_METHOD || $kind === self::DATE) {
            return $kind === self::DATE ? $depth : \PHP_INT_MAX;
        }
        $parts = $kind === self::METHOD_OF_PHP ? self::partsOf($value) : (array) $value;
        $deepest = $depth;
        foreach ($parts as $name => $item) {
            if (!\is_scalar($item) && $item !== null) {
                $depthOfItem = self::check($item, self::inObject($path, $name), null, $seen, $depth + 1);
                $deepest = max($deepest, $depthOfItem);
            }
        }

        return $deepest;
    }

    /** Looks methods up by class name, because some objects stand in for others, or refuse method calls. */
    private static function kind(object $value): int
    {
        $class = $value::class;
        if (
            str_starts_with($class, self::OWN_NAMESPACE)
            && !$value instanceof \Throwable
            && method_exists($class, '__clone')
        ) {
            return self::OF_THIS_PROCESS;
        }
        if ($value instanceof \DateTimeInterface) {
            return self::DATE;
        }
        if (method_exists($class, '__serialize')) {
            $isOfPhp = (new \ReflectionMethod($class, '__serialize'))->isInternal();

            return $isOfPhp ? self::METHOD_OF_PHP : self::OWN_METHOD;
        }
        if (method_exists($class, '__sleep') || $value instanceof \Serializable) {
            return self::OWN_METHOD;
        }
        foreach (self::EMPTIED_CLASSES as $emptied) {
            if (is_a($value, $emptied)) {
                return self::EMPTY;
            }
        }

        return self::PROPERTIES;
    }

    /** @return array<mixed> values that serialize() gets from the __serialize() of a PHP class */
    private static function partsOf(object $value): array
    {
        $method = new \ReflectionMethod($value::class, '__serialize');
        if (str_starts_with($method->class, 'Random\\')) {
            return (array) $value; // the method returns values that PHP code cannot read, as of PHP 8.2
        }

        return (array) $method->invoke($value);
    }

    /**
     * Serializes in a fiber with a large stack. On the stack of most fibers, about 1,300 levels crash the process.
     *
     * @throws UnserializableException
     */
    private static function serializeWithLargeStack(mixed $value, string $path): string
    {
        $before = (string) ini_set('fiber.stack_size', (string) self::LARGE_STACK_BYTES);
        /** @var \Fiber<mixed, mixed, string, mixed> $fiber */
        $fiber = new \Fiber(static fn(): string => self::serializeChecked($value, $path));
        try {
            $fiber->start();
        } finally {
            $before === '' ? ini_restore('fiber.stack_size') : ini_set('fiber.stack_size', $before);
        }
        if (!$fiber->isTerminated()) {
            throw UnserializableException::at($path, 'of a class that suspends its fiber while it is serialized');
        }

        return $fiber->getReturn();
    }

    /** @throws UnserializableException */
    private static function serializeChecked(mixed $value, string $path): string
    {
        try {
            return self::bytes($value);
        } catch (\Throwable $refused) {
            throw self::explain($value, $path, $refused);
        }
    }

    /** Returns a suffix for messages that names the key of an input value; '' if the key is no scalar. */
    public static function forKey(mixed $key): string
    {
        return \is_scalar($key)
            ? ' for ' . json_encode($key, \JSON_PARTIAL_OUTPUT_ON_ERROR | \JSON_UNESCAPED_SLASHES)
            : '';
    }

    /**
     * Unserializes a value that may contain enums. A missing enum makes unserialize() fail with a warning.
     *
     * @param callable-string $missing
     */
    private static function unserializeEnums(string $bytes, string $missing): mixed
    {
        if (preg_match_all(self::ENUM_PATTERN, $bytes, $cases, \PREG_SET_ORDER) === 0) {
            return unserialize($bytes, ['max_depth' => self::MAX_DEPTH]);
        }
        $value = @unserialize($bytes, ['max_depth' => self::MAX_DEPTH]);
        if ($value === false) {
            foreach ($cases as [, $enum, $case]) {
                if (!enum_exists($enum) || !\defined("{$enum}::{$case}")) {
                    $missing(enum_exists($enum) ? "{$enum}::{$case}" : $enum);
                }
            }
        }

        return $value;
    }

    private static function explain(mixed $value, string $path, \Throwable $refused): UnserializableException
    {
        $seen = [];
        $cycle = null;

        return self::findRefusedPart($value, $path, $refused, $seen, $cycle)
            ?? $cycle
            ?? UnserializableException::at($path, self::describe($value, $refused), $refused);
    }

    /**
     * Returns the first refused part that contains no other refused part; null if all refused parts form a cycle.
     *
     * @param array<int|string, true>      $seen   objects and references by id
     * @param UnserializableException|null $cycle the first part whose refused parts were all seen before
     */
    private static function findRefusedPart(
        mixed $value,
        string $path,
        \Throwable $refused,
        array &$seen,
        ?UnserializableException &$cycle,
    ): ?UnserializableException {
        if (\is_object($value)) {
            $seen[spl_object_id($value)] = true;
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
            if ($id !== null && isset($seen[$id])) {
                continue;
            }
            $isCycle = false;
            $seen[$id ?? ''] = true;
            $refusal = self::findRefusedPart(
                $part,
                \is_array($value) ? self::inArray($path, $name) : self::inObject($path, $name),
                $refusedPart,
                $seen,
                $cycle,
            );
            if ($refusal !== null) {
                return $refusal;
            }
        }
        $failure = UnserializableException::at($path, self::describe($value, $refused), $refused);
        if ($isWhole) {
            return $failure;
        }
        $cycle ??= $isCycle ? $failure : null;

        return null;
    }

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

    private static function describe(mixed $value, \Throwable $refused): string
    {
        $what = 'of type ' . get_debug_type($value);

        return preg_match("/^Serialization of '.+' is not allowed$/", $refused->getMessage()) === 1
            ? $what
            : "{$what} and can't be serialized ({$refused->getMessage()})";
    }

    public static function inArray(string $path, int|string $key): string
    {
        return self::truncated($path) ?? $path . (\is_int($key) ? "[{$key}]" : "['" . addcslashes($key, "'\\") . "']");
    }

    /** @param int|string $name key of the object cast to an array: "\0class\0name" for a private property */
    private static function inObject(string $path, int|string $name): string
    {
        $name = (string) $name;
        $at = strrpos($name, "\0");

        return self::truncated($path) ?? "{$path}->" . ($at === false ? $name : substr($name, $at + 1));
    }

    /** @return string|null a path that is too long to extend, with an ellipsis; null for a shorter one */
    private static function truncated(string $path): ?string
    {
        return \strlen($path) < self::MAX_PATH_BYTES ? null : (str_ends_with($path, '…') ? $path : "{$path}…");
    }
}
