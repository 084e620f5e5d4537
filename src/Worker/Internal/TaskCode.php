<?php

declare(strict_types=1);

namespace Spindle\Worker\Internal;

use Spindle\Worker\UnserializableException;

/**
 * Encodes a callable as its name or its object. Encodes a closure as its source and captured values. Refuses a closure
 * that could be one of several on its line, and values that cannot be serialized, such as a captured resource.
 */
final class TaskCode
{
    /** Callback for {@see ValueSerializer::unserialize()}. */
    public const MISSING = self::class . '::missingClass';

    private const FUNCTION = 'f';
    private const METHOD = 'm';
    private const INVOKABLE = 'i';
    private const CLOSURE = 'c';

    private const ROOT_PATH = 'The task';

    private const MAC_ALGORITHM = 'sha256';

    private const MAX_CACHED_CLOSURES = 256;

    /** @var array<string, string> code of closures without captured values, by source and key */
    private static array $codeOfSource = [];

    /** @var \WeakMap<\Closure, array<string, string>>|null code by closure and key; also used after the file changes */
    private static ?\WeakMap $codeOfClosure = null;

    /**
     * @param string $key    key that signs closures
     * @param bool   $isPure set to true if the callable has no object, captured values or static variables of a closure
     *
     * @throws UnserializableException
     *
     * @param-out bool $isPure
     */
    public static function encode(callable $task, #[\SensitiveParameter] string $key, ?bool &$isPure = null): string
    {
        $isPure = false;
        if ($task instanceof \Closure) {
            return self::encodeClosure($task, $key, $isPure);
        }
        if (\is_object($task)) {
            return ValueSerializer::serialize([self::INVOKABLE, $task], self::ROOT_PATH);
        }
        if (\is_array($task)) {
            $isPure = \is_string($task[0]);
            $code = [self::METHOD, $task[0], $task[1]];

            return $isPure ? serialize($code) : ValueSerializer::serialize($code, self::ROOT_PATH);
        }
        $isPure = true;

        return serialize([self::FUNCTION, $task]);
    }

    /** @throws \UnexpectedValueException when the function or method does not exist in this process */
    public static function decode(string $code, #[\SensitiveParameter] string $key): \Closure
    {
        /** @var array{string, string|object, 2?: string} $parts */
        $parts = ValueSerializer::unserialize($code, self::MISSING);
        [$kind, $task] = $parts;
        if ($kind === self::METHOD) {
            return self::method($task, $parts[2] ?? '');
        }
        if ($kind === self::CLOSURE && \is_string($task)) {
            return self::closure($task, $parts[2] ?? '', $key);
        }

        return \is_callable($task)
            ? $task(...)
            : throw self::missing(\is_string($task) ? "function {$task}()" : 'class ' . $task::class);
    }

    /** @throws \UnexpectedValueException always, as the callback of {@see ValueSerializer::unserialize()} */
    public static function missingClass(string $class): never
    {
        throw self::missing("class {$class}");
    }

    /** @throws UnserializableException */
    private static function encodeClosure(\Closure $task, #[\SensitiveParameter] string $key, bool &$isPure): string
    {
        $codeOfClosure = self::$codeOfClosure ??= new \WeakMap();
        $code = $codeOfClosure[$task][$key] ?? null;
        if ($code !== null) {
            $isPure = true;

            return $code;
        }
        $function = new \ReflectionFunction($task);
        if (!$function->isAnonymous()) {
            $isPure = $function->getClosureThis() === null;

            return self::encodeNamed($function);
        }
        $source = SourceFiles::sourceOf($task);
        $isPure = $function->getClosureThis() === null
            && !$source->declaresStatic
            && $source->captured($function) === [];
        $scope = $function->getClosureScopeClass()?->getName();
        $cacheKey = $isPure ? "{$key}{$source->id}:{$scope}:{$function->getClosureCalledClass()?->getName()}" : '';
        if (isset(self::$codeOfSource[$cacheKey])) {
            $codeOfClosure[$task] = [$key => self::$codeOfSource[$cacheKey]];

            return self::$codeOfSource[$cacheKey];
        }
        $payload = ClosurePacker::serialize($task, self::ROOT_PATH);
        $code = serialize([self::CLOSURE, $payload, hash_hmac(self::MAC_ALGORITHM, $payload, $key, true)]);
        if ($isPure) {
            self::$codeOfSource = \count(self::$codeOfSource) < self::MAX_CACHED_CLOSURES ? self::$codeOfSource : [];
            self::$codeOfSource[$cacheKey] = $code;
            $codeOfClosure[$task] = [$key => $code];
        }

        return $code;
    }

    /** Encodes a first-class callable: strlen(...), $object->method(...), SomeClass::method(...). */
    private static function encodeNamed(\ReflectionFunction $function): string
    {
        $target = self::target($function, self::ROOT_PATH);

        return $target === null
            ? serialize([self::FUNCTION, $function->getName()])
            : ValueSerializer::serialize([self::METHOD, $target, $function->getName()], self::ROOT_PATH);
    }

    /**
     * Returns the object or class on which a first-class callable is called; null for a function.
     *
     * @throws UnserializableException when the name means another method, because a subclass overrides the method
     */
    public static function target(\ReflectionFunction $function, string $path): object|string|null
    {
        $scope = $function->getClosureScopeClass();
        $class = $function->getClosureCalledClass() ?? $scope; // the called class is what static:: means
        $target = $function->getClosureThis() ?? $class?->getName();
        $name = $function->getName();
        $meant = $target !== null && method_exists($target, $name) ? new \ReflectionMethod($target, $name) : null;
        if ($meant !== null && $scope !== null && $meant->getDeclaringClass()->getName() !== $scope->getName()) {
            throw UnserializableException::at(
                $path,
                "a first-class callable of {$scope->getName()}::{$name}(), which {$meant->class} overrides",
                null,
                'call it in a closure',
            );
        }

        return $target;
    }

    /** @throws \UnexpectedValueException when the function or method does not exist in this process */
    public static function named(object|string|null $class, string $name): \Closure
    {
        if ($class !== null) {
            return self::method($class, $name);
        }

        return \is_callable($name) ? $name(...) : throw self::missing("function {$name}()");
    }

    /** @throws \UnexpectedValueException when the closure was not signed with this key */
    private static function closure(string $payload, string $mac, #[\SensitiveParameter] string $key): \Closure
    {
        if (!hash_equals(hash_hmac(self::MAC_ALGORITHM, $payload, $key, true), $mac)) {
            throw new \UnexpectedValueException('The closure was not signed with the key of this pool');
        }
        $sent = ValueSerializer::unserialize($payload, self::MISSING);
        \assert($sent instanceof SentClosure);

        return (new ClosureUnpacker())->unpack($sent);
    }

    /** Creates a closure of a method. The method may be private: a class can submit its own $this->method(...). */
    private static function method(string|object $class, string $name): \Closure
    {
        $task = [$class, $name];
        // null for a method that __call() or __callStatic() handles
        $method = method_exists($class, $name) ? new \ReflectionMethod($class, $name) : null;
        if (($method === null || $method->isPublic()) && \is_callable($task)) {
            return $task(...); // getClosure() would lose the called class
        }

        return $method?->getClosure(\is_object($class) ? $class : null)
            ?? throw self::missing('method ' . (\is_string($class) ? $class : $class::class) . "::{$name}()");
    }

    private static function missing(string $what): \UnexpectedValueException
    {
        return new \UnexpectedValueException(
            "A worker has no {$what}. Let Composer autoload it, or load it in the file of "
                . 'WorkerPoolOptions(bootstrap:)',
        );
    }
}
