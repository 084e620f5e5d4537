<?php

declare(strict_types=1);

namespace Spindle\Worker\Internal;

use Spindle\Worker\UnserializableException;

/**
 * Refuses values with parts that serialize() would lose or that another process could not restore. Examples are
 * resources, objects of anonymous classes, and more nested levels than unserialize() can read.
 */
final class SerializabilityCheck
{
    /** Maximum levels of arrays and objects in a value: PHP's default for unserialize_max_depth. */
    public const MAX_DEPTH = 4096;

    public const TOO_DEEP = 'nested deeper than ' . self::MAX_DEPTH . ' levels';

    public const CREATE_IT_THERE
        = 'send what it is made from, such as a path or an array, and create it in the other process';

    private const INSTEAD_OF_CLOSURE = 'send an invokable object or the name of a function';

    /** Value of $deepest if serialize() calls a method that may suspend the fiber. */
    public const MAY_SUSPEND = \PHP_INT_MAX - 1;

    /**
     * Value of $deepest if serialize() calls a Serializable::serialize() method, which may call serialize() itself. PHP
     * numbers repeated objects (`r:2`) across both calls. Under {@see SerializeLock}, each call would have its own
     * numbers. So {@see ValueSerializer} does not hold the lock for such values.
     */
    public const MAY_SHARE = \PHP_INT_MAX;

    /** @var array<string, SerializationKind> kinds of checked objects, by class */
    private static array $kinds = [];

    /** @var array<class-string, \ReflectionClass<object>> by class; for lazy objects, which PHP has since 8.4 */
    private static array $classes = [];

    /** @var array<string, \ReflectionMethod> methods that serialize() calls, by class */
    private static array $methods = [];

    public bool $foundClosure = false;

    /** Depth of the deepest part, or {@see self::MAY_SUSPEND}, or {@see self::MAY_SHARE}. */
    public int $deepest = 0;

    /** @var array<int|string, mixed> objects and references that were checked, by id */
    private array $seen = [];

    /** @param bool $acceptsClosures whether to accept closures; closures inside objects are always refused */
    public function __construct(private readonly bool $acceptsClosures) {}

    /**
     * @return int {@see self::$deepest} of the value
     *
     * @throws UnserializableException
     */
    public static function depth(mixed $value, string $path): int
    {
        $check = new self(false);
        $check->check($value, $path);

        return $check->deepest;
    }

    /**
     * @param int $depth number of arrays and objects around the value
     *
     * @throws UnserializableException
     */
    public function check(mixed $value, string $path, int $depth = 0, bool $isInObject = false): void
    {
        if ($depth >= self::MAX_DEPTH && (\is_array($value) || \is_object($value))) {
            throw UnserializableException::at(ValuePath::beginning($path), self::TOO_DEEP);
        }
        $this->deepest = max($this->deepest, $depth);
        if (\is_array($value)) {
            foreach ($value as $key => $item) {
                if (\is_scalar($item) || $item === null) {
                    continue;
                }
                $reference = \is_array($item) ? \ReflectionReference::fromArrayElement($value, $key)?->getId() : null;
                if ($reference !== null && isset($this->seen[$reference])) {
                    continue; // an array may contain itself
                }
                $this->seen[$reference ?? ''] = true;
                $this->check($item, ValuePath::ofElement($path, $key), $depth + 1, $isInObject);
            }
        } elseif (\is_object($value)) {
            $this->checkObject($value, $path, $depth, $isInObject);
        } elseif (\is_resource($value)) {
            $what = 'an open ' . get_resource_type($value);
            throw UnserializableException::at($path, $what, null, self::CREATE_IT_THERE);
        } elseif (!\is_scalar($value) && $value !== null) {
            throw UnserializableException::at($path, 'a closed resource');
        }
    }

    private function checkObject(object $value, string $path, int $depth, bool $isInObject): void
    {
        if ($value instanceof \Closure) {
            $this->foundClosure = $this->acceptsClosures && !$isInObject
                ? true
                : throw UnserializableException::at($path, 'a closure', null, self::INSTEAD_OF_CLOSURE);

            return;
        }
        $id = spl_object_id($value);
        if (isset($this->seen[$id]) || $value instanceof \UnitEnum) {
            return;
        }
        $this->seen[$id] = true;
        $class = $value::class;
        if (str_contains($class, "@anonymous\0")) {
            throw UnserializableException::at($path, 'an object of an anonymous class', null, 'name the class');
        }
        $kind = self::$kinds[$class] ??= SerializationKind::of($value);
        $isRefused = $kind === SerializationKind::ProcessBound || $kind === SerializationKind::Emptied;
        $isUninitialized = \PHP_VERSION_ID >= 80400 && !$isRefused
            // @phpstan-ignore method.notFound (PHP 8.4)
            && (self::$classes[$class] ??= new \ReflectionClass($class))->isUninitializedLazyObject($value);
        if ($isUninitialized) {
            self::trySerialize($value, $path);
        }
        match ($kind) {
            SerializationKind::ProcessBound => throw UnserializableException::at(
                $path,
                "a {$class} that belongs to this process",
                null,
                'create another one where it is needed',
            ),
            SerializationKind::Emptied => throw UnserializableException::at(
                $path,
                "of class {$class}, whose contents PHP does not serialize",
                null,
                'send its contents as an array',
            ),
            SerializationKind::Date => null,
            SerializationKind::SerializableInterface => $this->checkDepth($value, $path, $depth),
            default => $this->checkParts($value, $kind, $path, $depth),
        };
        if ($kind->maySuspend()) {
            $isShared = $kind === SerializationKind::SerializableInterface;
            $this->deepest = max($this->deepest, $isShared ? self::MAY_SHARE : self::MAY_SUSPEND);
        }
    }

    /**
     * Calls serialize() for an object that is lazy or implements Serializable. The call initializes a lazy object,
     * unless the object has the option ReflectionClass::SKIP_INITIALIZATION_ON_SERIALIZE. The check needs the
     * initialization: an (array) cast of an uninitialized object would be incomplete.
     *
     * @throws UnserializableException when the initializer throws, or when the call suspends its fiber
     */
    private static function trySerialize(object $value, string $path): void
    {
        $serialize = static fn(): string => serialize($value);
        $call = static fn() => self::withoutSuspension(static fn() => SerializeLock::hold($serialize), $path);
        try {
            $call();
        } catch (UnserializableException $refused) {
            throw $refused;
        } catch (\Throwable $refused) {
            if (SerializationFailure::succeedsWhenRepeated($call)) {
                throw $refused;
            }
            // @phpstan-ignore method.notFound (PHP 8.4)
            if (\PHP_VERSION_ID >= 80400 && self::$classes[$value::class]->isUninitializedLazyObject($value)) {
                throw SerializationFailure::exceptionFor($value, $path, $refused);
            } // otherwise PHP has refused a part, which the caller, or ValueSerializer, finds and names later
        }
    }

    /** Checks only the depth of a Serializable object's parts, because its class may omit parts. Calls serialize(). */
    private function checkDepth(object $value, string $path, int $depth): void
    {
        foreach ((array) $value as $name => $item) {
            try {
                $this->check($item, ValuePath::ofProperty($path, $name), $depth + 1, true);
            } catch (UnserializableException $refused) {
                if ($refused->what === self::TOO_DEEP) {
                    throw $refused;
                }
            }
        }
        self::trySerialize($value, $path); // last, because serialize() may crash the process if the value is too deep
    }

    private function checkParts(object $value, SerializationKind $kind, string $path, int $depth): void
    {
        if ($kind === SerializationKind::Properties) {
            $parts = (array) $value;
        } else {
            $parts = self::partsOf($value, $kind, $path);
            // The parts that the method has created are kept, because PHP would reuse the ids of destroyed objects.
            $this->seen[spl_object_id($value)] = $parts;
        }
        foreach ($parts as $name => $item) {
            if (!\is_scalar($item) && $item !== null) {
                $itemPath = $kind === SerializationKind::SerializeMethod
                    ? ValuePath::ofElement("{$path}->__serialize()", $name)
                    : ValuePath::ofProperty($path, $name);
                $this->check($item, $itemPath, $depth + 1, true);
            }
        }
    }

    /**
     * @return array<mixed> values that serialize() would store: those that __serialize() returns or __sleep() names
     *
     * @throws UnserializableException when the method throws, or suspends its fiber
     */
    private static function partsOf(object $value, SerializationKind $kind, string $path): array
    {
        $isSleep = $kind === SerializationKind::SleepMethod;
        $method = self::$methods[$value::class]
            ??= new \ReflectionMethod($value::class, $isSleep ? '__sleep' : '__serialize');
        if (str_starts_with($method->class, 'Random\\')) {
            return (array) $value; // Randomizer::__serialize() returns a value of unknown type
        }
        $invoke = static fn(): mixed => $method->invoke($value);
        $call = $kind->maySuspend()
            ? static fn(): mixed => self::withoutSuspension(static fn() => SerializeLock::hold($invoke), $path)
            : $invoke;
        try {
            $parts = (array) $call();
        } catch (UnserializableException $refused) {
            throw $refused;
        } catch (\Throwable $refused) {
            throw SerializationFailure::succeedsWhenRepeated($call)
                ? $refused
                : SerializationFailure::exceptionFor($value, $path, $refused);
        }

        return $isSleep ? self::sleepProperties($value, $parts) : $parts;
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
     * Calls code of a class. The code must not suspend the current fiber, which may be in the middle of an operation.
     *
     * @template T
     *
     * @param \Closure(): T $work
     *
     * @return T
     *
     * @throws UnserializableException when the code suspends its fiber
     */
    public static function withoutSuspension(\Closure $work, string $path): mixed
    {
        if (\Fiber::getCurrent() === null) {
            return $work();
        }
        $result = DetachedCall::start($work);
        if (!$result->isCompleted) {
            throw UnserializableException::at($path, 'of a class that suspends its fiber while it is serialized');
        }

        return $result->await();
    }
}
