<?php

declare(strict_types=1);

namespace Spindle\Worker\Internal;

use Spindle\Worker\UnserializableException;

/**
 * Serializes values, or throws an exception that names the part of a value that cannot be serialized. PHP's serialize()
 * only names the class that it refuses, not its position in the value, and silently converts a resource to 0. So this
 * class also inspects every value that may contain others.
 */
final class ValueSerializer
{
    /** An enum case in the format of serialize(), or text that only looks like one. */
    private const ENUM_PATTERN = '/(?<![^;{])E:\d+:"([^":]+):(\w+)";/';

    /** Maximum levels of arrays and objects in a value: PHP's default for unserialize_max_depth. */
    private const MAX_DEPTH = 4096;

    /** Number of levels that fit on the stack of any fiber: serialize() needs up to 2 KB of stack for each. */
    private const MAX_SHALLOW_DEPTH = 200;

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
    private const SERIALIZE_METHOD = 1;
    private const SERIALIZE_METHOD_OF_PHP = 2;
    private const SLEEP_METHOD = 3;
    private const SERIALIZABLE = 4;
    private const DATE = 5;
    private const PROCESS_BOUND = 6;
    private const EMPTIED = 7;

    /** @var array<string, int> kind of objects, by class */
    private static array $kinds = [];

    /** @var array<string, \ReflectionMethod> methods that serialize() calls, by class */
    private static array $methods = [];

    /** @throws UnserializableException */
    public static function serialize(mixed $value, string $path): string
    {
        if (\is_scalar($value) || $value === null) {
            return self::serializeUnchecked($value);
        }

        return self::serializeAtDepth($value, $path, self::check($value, $path));
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
     * @param int $deepest result of {@see self::check()}
     *
     * @throws UnserializableException
     */
    public static function serializeAtDepth(mixed $value, string $path, int $deepest): string
    {
        return $deepest > self::MAX_SHALLOW_DEPTH
            ? self::withoutSuspension(static fn(): string => self::serializeChecked($value, $path), $path)
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
        if (!self::isCompound($bytes)) {
            return unserialize($bytes);
        }
        $value = self::mayRunCode($bytes)
            ? self::unserializeObjects($bytes, $missing)
            : unserialize($bytes, ['max_depth' => self::MAX_DEPTH]);
        if ($value === false) { // the bytes are those of an array or an object
            throw new \UnexpectedValueException(
                'PHP cannot read the value: it is damaged, or ' . self::tooDeepMessage(),
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

    /** @param list<class-string> $classes allowed classes. The depth limit of php.ini does not apply to this data. */
    public static function unserializeData(string $bytes, array $classes = []): mixed
    {
        return unserialize($bytes, ['allowed_classes' => $classes, 'max_depth' => self::MAX_DEPTH]);
    }

    /**
     * Checks that a value has no parts that serialize() would lose or that no other process could restore, such as
     * resources, objects of anonymous classes, and levels too deep to be read again.
     *
     * @param (\Closure(): void)|null $closures called for each closure that is in no object; null refuses closures
     * @param array<int|string, mixed> $seen     objects and references by id
     * @param int                      $depth    number of arrays and objects around the value
     *
     * @return int depth of the deepest part; PHP_INT_MAX if serialize() calls a method, which may suspend the fiber
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
            throw UnserializableException::at($path, self::tooDeepMessage());
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
                $itemPath = self::pathOfElement($path, $key);
                $deepest = max($deepest, self::check($item, $itemPath, $closures, $seen, $depth + 1));
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
     * @param array<int|string, mixed> $seen
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
        $kind = self::$kinds[$class] ??= self::serializationKind($value);
        if ($kind === self::PROCESS_BOUND) {
            throw UnserializableException::at($path, "a {$class}, which belongs to this process");
        }
        if ($kind === self::EMPTIED) {
            $advice = 'send its contents as an array';
            throw UnserializableException::at(
                $path,
                "of class {$class}, whose contents PHP does not serialize",
                null,
                $advice,
            );
        }
        if ($kind === self::DATE) {
            return $depth;
        }
        if ($kind === self::SERIALIZABLE) {
            self::checkDepth($value, $path, $seen, $depth);

            return \PHP_INT_MAX;
        }
        $parts = $kind === self::PROPERTIES ? (array) $value : self::partsOf($value, $kind, $path);
        // The method may have created the parts. They are kept, because PHP reuses the ids of destroyed objects.
        $seen[$id] = $kind === self::PROPERTIES ? true : $parts;
        $deepest = $kind === self::SERIALIZE_METHOD || $kind === self::SLEEP_METHOD ? \PHP_INT_MAX : $depth;
        foreach ($parts as $name => $item) {
            if (!\is_scalar($item) && $item !== null) {
                $pathOfItem = $kind === self::SERIALIZE_METHOD
                    ? self::pathOfElement("{$path}->__serialize()", $name)
                    : self::pathOfProperty($path, $name);
                $deepest = max($deepest, self::check($item, $pathOfItem, null, $seen, $depth + 1));
            }
        }

        return $deepest;
    }

    /**
     * Checks the depth of the properties of an object that implements Serializable. Nothing else is checked, because
     * the class itself decides what is serialized.
     *
     * @param array<int|string, mixed> $seen
     *
     * @throws UnserializableException
     */
    private static function checkDepth(object $value, string $path, array &$seen, int $depth): void
    {
        foreach ((array) $value as $name => $item) {
            try {
                self::check($item, self::pathOfProperty($path, $name), null, $seen, $depth + 1);
            } catch (UnserializableException $refused) {
                if ($refused->what === self::tooDeepMessage()) {
                    throw $refused;
                }
            }
        }
    }

    private static function tooDeepMessage(): string
    {
        return 'nested deeper than ' . self::MAX_DEPTH . ' levels';
    }

    /** Returns how serialize() reads an object. Examines only its class: the object may be a proxy or refuse calls. */
    private static function serializationKind(object $value): int
    {
        $class = $value::class;
        if (
            str_starts_with($class, self::OWN_NAMESPACE)
            && !$value instanceof \Throwable
            && method_exists($class, '__clone')
        ) {
            return self::PROCESS_BOUND;
        }
        if ($class === \DateTimeImmutable::class || $class === \DateTime::class) {
            return self::DATE;
        }
        if (method_exists($class, '__serialize')) {
            $isOfPhp = (new \ReflectionMethod($class, '__serialize'))->isInternal();

            return $isOfPhp ? self::SERIALIZE_METHOD_OF_PHP : self::SERIALIZE_METHOD;
        }
        if ($value instanceof \Serializable) {
            return self::SERIALIZABLE;
        }
        if (method_exists($class, '__sleep')) {
            return self::SLEEP_METHOD;
        }
        foreach (self::EMPTIED_CLASSES as $emptied) {
            if (is_a($value, $emptied)) {
                return self::EMPTIED;
            }
        }

        return self::PROPERTIES;
    }

    /**
     * @return array<mixed> values selected by the method of the class that serialize() calls
     *
     * @throws UnserializableException when the method throws, or suspends its fiber
     */
    private static function partsOf(object $value, int $kind, string $path): array
    {
        $method = self::$methods[$value::class]
            ??= new \ReflectionMethod($value::class, $kind === self::SLEEP_METHOD ? '__sleep' : '__serialize');
        if (str_starts_with($method->class, 'Random\\')) {
            return (array) $value; // the method returns values that PHP code cannot read, as of PHP 8.2
        }
        $maySuspend = $kind !== self::SERIALIZE_METHOD_OF_PHP && \Fiber::getCurrent() !== null;
        $call = static fn(): mixed => $maySuspend
            ? self::withoutSuspension(static fn(): mixed => $method->invoke($value), $path)
            : $method->invoke($value);
        try {
            $parts = (array) ($maySuspend ? $call() : $method->invoke($value));
        } catch (UnserializableException $refused) {
            throw $refused;
        } catch (\Throwable $refused) {
            throw self::succeedsWhenRepeated($call)
                ? $refused
                : UnserializableException::at($path, self::describe($value, $refused), $refused);
        }

        return $kind === self::SLEEP_METHOD ? self::sleepProperties($value, $parts) : $parts;
    }

    /**
     * @param array<mixed> $names from __sleep()
     *
     * @return array<mixed> the properties that serialize() finds by these names
     */
    private static function sleepProperties(object $value, array $names): array
    {
        $all = (array) $value;
        $class = $value::class;
        $properties = [];
        foreach ($names as $name) {
            foreach (\is_string($name) ? [$name, "\0{$class}\0{$name}", "\0*\0{$name}"] : [] as $key) {
                if (\array_key_exists($key, $all)) {
                    $properties[$key] = $all[$key];
                    break;
                }
            }
        }

        return $properties;
    }

    /**
     * Calls code of a class, which must not suspend the current fiber: the caller may be in the middle of an operation.
     *
     * @template T
     *
     * @param \Closure(): T $work
     *
     * @return T
     *
     * @throws UnserializableException when the code suspends its fiber
     */
    private static function withoutSuspension(\Closure $work, string $path): mixed
    {
        if (\Fiber::getCurrent() === null) {
            return $work();
        }
        $call = DetachedCall::start($work);
        if (!$call->isOver()) {
            throw UnserializableException::at($path, 'of a class that suspends its fiber while it is serialized');
        }

        return $call->await();
    }

    /**
     * Returns whether a failed call succeeds when it is repeated. Then its exception did not come from the value, but
     * for example from a signal handler.
     *
     * @param \Closure(): mixed $call
     */
    private static function succeedsWhenRepeated(\Closure $call): bool
    {
        try {
            $call();

            return true;
        } catch (\Throwable) {
            return false;
        }
    }

    /** @throws UnserializableException */
    private static function serializeChecked(mixed $value, string $path): string
    {
        try {
            return self::serializeUnchecked($value);
        } catch (\Throwable $refused) {
            throw self::succeedsWhenRepeated(static fn(): string => serialize($value))
                ? $refused
                : self::explain($value, $path, $refused);
        }
    }

    /** Returns a suffix for messages that names the key of an input value; '' if the key is no scalar. */
    public static function keySuffix(mixed $key): string
    {
        return \is_scalar($key)
            ? ' for ' . json_encode($key, \JSON_PARTIAL_OUTPUT_ON_ERROR | \JSON_UNESCAPED_SLASHES)
            : '';
    }

    /** Returns whether the bytes are those of an array or an object. */
    private static function isCompound(string $bytes): bool
    {
        return \in_array($bytes[0] ?? '', ['a', 'O', 'C', 'E'], true);
    }

    /**
     * Unserializes a value that may contain objects. Classes may suspend the fiber while they restore objects. The
     * setting for missing classes is reset at the first suspension, so that it does not apply to other fibers. By then
     * PHP has looked up all classes, because it calls `__unserialize()` and `__wakeup()` last.
     *
     * @param callable-string $missing
     */
    private static function unserializeObjects(string $bytes, string $missing): mixed
    {
        $before = (string) \ini_get('unserialize_callback_func');
        if ($before === '') { // otherwise the application has a callback that loads classes
            ini_set('unserialize_callback_func', $missing);
        }
        try {
            $call = DetachedCall::start(static fn(): mixed => str_contains($bytes, 'E:')
                ? self::unserializeEnums($bytes, $missing)
                : unserialize($bytes, ['max_depth' => self::MAX_DEPTH]));
        } finally {
            ini_set('unserialize_callback_func', $before);
        }

        return $call->await();
    }

    /**
     * Unserializes a value that may contain enums. PHP only warns about a missing enum, so this method finds the name.
     *
     * @param callable-string $missing
     */
    private static function unserializeEnums(string $bytes, string $missing): mixed
    {
        if (preg_match_all(self::ENUM_PATTERN, $bytes, $cases, \PREG_SET_ORDER) === 0) {
            return unserialize($bytes, ['max_depth' => self::MAX_DEPTH]);
        }
        $warning = null;
        try {
            $value = @unserialize($bytes, ['max_depth' => self::MAX_DEPTH]);
        } catch (\Throwable $warning) { // possibly of an error handler that throws in spite of `@`
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

    private static function explain(mixed $value, string $path, \Throwable $refused): UnserializableException
    {
        $seen = [];
        $cycle = null;

        return self::findRefusedPart($value, $path, $refused, $seen, $cycle)
            ?? $cycle
            ?? UnserializableException::at($path, self::describe($value, $refused), $refused);
    }

    /**
     * Returns an exception for the first refused part without refused parts inside; null if each is part of a cycle.
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
                \is_array($value) ? self::pathOfElement($path, $name) : self::pathOfProperty($path, $name),
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

    private static function describe(mixed $value, \Throwable $refused): string
    {
        $what = $value instanceof SentClosure || $value instanceof SentCallable
            ? 'a closure'
            : 'of type ' . get_debug_type($value);
        $reason = $refused->getMessage() === '' ? $refused::class : $refused->getMessage();

        return preg_match("/^Serialization of '.+' is not allowed$/", $reason) === 1
            ? $what
            : "{$what} and can't be serialized ({$reason})";
    }

    public static function pathOfElement(string $path, int|string $key): string
    {
        return self::truncatedPath($path)
            ?? $path . (\is_int($key) ? "[{$key}]" : "['" . addcslashes($key, "'\\") . "']");
    }

    /** @param int|string $name key of the object cast to an array: "\0class\0name" for a private property */
    private static function pathOfProperty(string $path, int|string $name): string
    {
        $name = (string) $name;
        $at = strrpos($name, "\0");

        return self::truncatedPath($path) ?? "{$path}->" . ($at === false ? $name : substr($name, $at + 1));
    }

    /** @return string|null the path with an ellipsis if it is too long to extend; otherwise null */
    private static function truncatedPath(string $path): ?string
    {
        return \strlen($path) < self::MAX_PATH_BYTES ? null : (str_ends_with($path, '…') ? $path : "{$path}…");
    }
}
