<?php

declare(strict_types=1);

namespace Spindle\Worker\Internal;

use Spindle\Worker\UnserializableException;

/**
 * Callables as bytes: their name, their object, or for a closure its source and what it has captured.
 *
 * What can't be done right is refused: a closure that can't be told from another one on its line, a captured resource,
 * an anonymous class.
 */
final class TaskCode
{
    /** For {@see Portable::unserialize()}. */
    public const MISSING = self::class . '::missingClass';

    private const FUNCTION = 'f';
    private const METHOD = 'm';
    private const INVOKABLE = 'i';
    private const CLOSURE = 'c';

    private const PATH = 'The task';

    private const MAC = 'sha256';

    /** Closures whose code is kept. */
    private const KEPT = 256;

    /** @var array<string, string> of closures that have captured nothing, by place and key: the same each time */
    private static array $pure = [];

    /** @var \WeakMap<\Closure, array<string, string>>|null the same by the closure itself, which its file's change does not change, and by key */
    private static ?\WeakMap $same = null;

    /**
     * @param string $key    signs closures
     * @param bool   $isPure whether it is the same for each call, with no object or captured variable in it
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
            return Portable::serialize([self::INVOKABLE, $task], self::PATH);
        }
        if (\is_array($task)) {
            $isPure = \is_string($task[0]);

            return Portable::serialize([self::METHOD, $task[0], $task[1]], self::PATH);
        }
        $isPure = true;

        return serialize([self::FUNCTION, $task]);
    }

    /**
     * @param string $key that it was signed with
     *
     * @throws \UnexpectedValueException when there is no such function or method here
     */
    public static function decode(string $code, #[\SensitiveParameter] string $key): \Closure
    {
        /** @var array{string, string|object, 2?: string} $parts */
        $parts = Portable::unserialize($code, self::MISSING);
        [$kind, $task] = $parts;
        if ($kind === self::METHOD) {
            return self::method($task, $parts[2] ?? '');
        }
        if ($kind === self::CLOSURE && \is_string($task)) {
            return self::closure($task, $parts[2] ?? '', $key);
        }

        return \is_callable($task) ? $task(...) : throw self::missing(\is_string($task) ? "function {$task}()" : 'class ' . $task::class);
    }

    /**
     * For {@see Portable::unserialize()} in a worker.
     *
     * @throws \UnexpectedValueException
     */
    public static function missingClass(string $class): never
    {
        throw self::missing("class {$class}");
    }

    /** @throws UnserializableException */
    private static function encodeClosure(\Closure $task, #[\SensitiveParameter] string $key, bool &$isPure): string
    {
        $same = self::$same ??= new \WeakMap();
        $code = $same[$task][$key] ?? null;
        if ($code !== null) {
            $isPure = true;

            return $code;
        }
        $function = new \ReflectionFunction($task);
        if (!$function->isAnonymous()) {
            $isPure = $function->getClosureThis() === null;

            return self::encodeNamed($function);
        }
        $source = SourceFiles::closure($task);
        $isPure = $function->getClosureThis() === null && $function->getStaticVariables() === [];
        $scope = $function->getClosureScopeClass()?->getName();
        $place = $isPure ? "{$key}{$source->id}:{$scope}:{$function->getClosureCalledClass()?->getName()}" : '';
        if (isset(self::$pure[$place])) {
            $same[$task] = [$key => self::$pure[$place]];

            return self::$pure[$place];
        }
        $payload = ClosurePacker::serialize($task, self::PATH);
        $code = serialize([self::CLOSURE, $payload, hash_hmac(self::MAC, $payload, $key, true)]);
        if ($isPure) {
            self::$pure = \count(self::$pure) < self::KEPT ? self::$pure : [];
            self::$pure[$place] = $code;
            $same[$task] = [$key => $code];
        }

        return $code;
    }

    /** Of a first-class callable: strlen(...), $object->method(...), SomeClass::method(...). */
    private static function encodeNamed(\ReflectionFunction $function): string
    {
        $target = self::target($function, self::PATH);

        return $target === null
            ? serialize([self::FUNCTION, $function->getName()])
            : Portable::serialize([self::METHOD, $target, $function->getName()], self::PATH);
    }

    /**
     * The object or class that a first-class callable is called on; null for a function.
     *
     * @throws UnserializableException when its name means another method there
     */
    public static function target(\ReflectionFunction $function, string $path): object|string|null
    {
        $scope = $function->getClosureScopeClass();
        $class = $function->getClosureCalledClass() ?? $scope; // the first is what static:: means
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

    /**
     * A first-class callable by its name.
     *
     * @param object|string|null $class null for a function
     *
     * @throws \UnexpectedValueException when there is no such function or method here
     */
    public static function named(object|string|null $class, string $name): \Closure
    {
        if ($class !== null) {
            return self::method($class, $name);
        }

        return \is_callable($name) ? $name(...) : throw self::missing("function {$name}()");
    }

    /** @throws \UnexpectedValueException when it was not signed with this key */
    private static function closure(string $payload, string $mac, #[\SensitiveParameter] string $key): \Closure
    {
        if (!hash_equals(hash_hmac(self::MAC, $payload, $key, true), $mac)) {
            throw new \UnexpectedValueException('The closure was not signed with the key of this pool');
        }
        $sent = Portable::unserialize($payload, self::MISSING);
        \assert($sent instanceof SentClosure);

        return (new ClosureUnpacker())->unpack($sent);
    }

    /** Also a private one, which a class may have made a callable of with $this->method(...). */
    private static function method(string|object $class, string $name): \Closure
    {
        $task = [$class, $name];
        $method = method_exists($class, $name) ? new \ReflectionMethod($class, $name) : null; // or one of __call() or __callStatic()
        if (($method === null || $method->isPublic()) && \is_callable($task)) {
            return $task(...); // a closure of the method itself would not know which class was called
        }

        return $method?->getClosure(\is_object($class) ? $class : null) ?? throw self::missing('method ' . (\is_string($class) ? $class : $class::class) . "::{$name}()");
    }

    private static function missing(string $what): \UnexpectedValueException
    {
        return new \UnexpectedValueException("A worker has no {$what}: it loads what Composer autoloads, and the file that WorkerPoolOptions(bootstrap:) names");
    }
}
