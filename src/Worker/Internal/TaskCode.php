<?php

declare(strict_types=1);

namespace Spindle\Worker\Internal;

use Laravel\SerializableClosure\Exceptions\InvalidSignatureException;
use Laravel\SerializableClosure\SerializableClosure;
use Laravel\SerializableClosure\Serializers\Signed;
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

    /** Closures whose code is kept. */
    private const KEPT = 256;

    /** @var array<string, array{string, int}> file and line of closures that were decoded, by the file that PHP has them from */
    private static array $origins = [];

    /** @var array<string, string> of closures that have captured nothing, by place and key: the same each time */
    private static array $pure = [];

    /** @var \WeakMap<\Closure, array<string, string>>|null the same by the closure itself, which its file's change does not change, and by key */
    private static ?\WeakMap $same = null;

    /** @var array<int, true> ids of closures that are being looked through: one may capture itself */
    private static array $checked = [];

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
        /** @var array{string, string|object, 2?: string, 3?: int, 4?: class-string|null} $parts */
        $parts = Portable::unserialize($code, self::MISSING);
        [$kind, $task] = $parts;
        if ($kind === self::METHOD) {
            return self::method($task, $parts[2] ?? '');
        }
        if ($kind === self::CLOSURE && \is_string($task)) {
            return self::closure($task, $key, $parts[2] ?? '', $parts[3] ?? 0, $parts[4] ?? null);
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

    /**
     * Where a line of a closure stands that was decoded here: its own file is one of the library's.
     *
     * @return array{string, int} file and line, the same for any other file
     */
    public static function place(string $file, int $line): array
    {
        return isset(self::$origins[$file]) ? [self::$origins[$file][0], self::$origins[$file][1] + $line - 1] : [$file, $line];
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
        self::checkClosure($task, self::PATH);
        try {
            $code = self::signing($key, static fn(): string => serialize(new SignedClosure($task)));
            $isScopeless = !$source->usesThis && !$source->usesItsClass && str_contains((string) $scope, "@anonymous\0");
            $code = serialize([self::CLOSURE, $code, $function->getFileName(), $source->line, $isScopeless ? null : $scope]);
            if ($isPure) {
                self::$pure = \count(self::$pure) < self::KEPT ? self::$pure : [];
                self::$pure[$place] = $code;
                $same[$task] = [$key => $code];
            }

            return $code;
        } catch (\Throwable $refused) {
            throw UnserializableException::at(self::PATH, "a closure that can't be serialized ({$refused->getMessage()})", $refused);
        }
    }

    /** Of a first-class callable: strlen(...), $object->method(...), SomeClass::method(...). */
    private static function encodeNamed(\ReflectionFunction $function): string
    {
        $object = $function->getClosureThis();
        if ($object !== null) {
            return Portable::serialize([self::METHOD, $object, $function->getName()], self::PATH);
        }
        $class = self::calledClass($function);

        return serialize($class === null ? [self::FUNCTION, $function->getName()] : [self::METHOD, $class, $function->getName()]);
    }

    /**
     * What static:: means in a function; null outside of classes.
     *
     * @return class-string|null
     */
    public static function calledClass(\ReflectionFunction $function): ?string
    {
        return ($function->getClosureCalledClass() ?? $function->getClosureScopeClass())?->getName();
    }

    /**
     * A first-class callable by its name.
     *
     * @param object|class-string|null $class null for a function
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

    /** @throws UnserializableException */
    private static function checkClosure(\Closure $closure, string $path): void
    {
        $function = new \ReflectionFunction($closure);
        $source = $function->isAnonymous() ? SourceFiles::closure($closure, $path) : null;
        $object = $source?->usesThis === false ? null : $function->getClosureThis();
        if ($object === null && $source?->isLate === true) {
            self::checkStatic($function, $path);
        }
        $id = spl_object_id($closure);
        if (isset(self::$checked[$id])) {
            return;
        }
        self::$checked[$id] = true;
        try {
            Portable::check($object, "{$path}'s \$this", self::checkClosure(...));
            foreach ($source?->captured($function) ?? [] as $name => $value) {
                Portable::check($value, "{$path}'s captured variable \${$name}", self::checkClosure(...));
            }
        } finally {
            unset(self::$checked[$id]);
        }
    }

    /**
     * A closure without an object can be bound to the class that it stands in only, not to the heir that made it.
     *
     * @throws UnserializableException
     */
    private static function checkStatic(\ReflectionFunction $function, string $path): void
    {
        $scope = $function->getClosureScopeClass()?->getName();
        $called = $function->getClosureCalledClass()?->getName();
        if ($called !== null && $called !== $scope) {
            throw UnserializableException::at($path, "a closure of {$scope} whose static is {$called}", null, 'let it capture static::class in a variable, and use that');
        }
    }

    /**
     * The library's signer is a setting of the whole process, which the application may use for itself.
     *
     * @template T
     *
     * @param \Closure(): T $work
     *
     * @return T
     */
    private static function signing(#[\SensitiveParameter] string $key, \Closure $work): mixed
    {
        $signer = Signed::$signer;
        SerializableClosure::setSecretKey($key);
        try {
            return $work();
        } finally {
            Signed::$signer = $signer;
        }
    }

    /**
     * @param string            $file  where it stands
     * @param class-string|null $scope whose private parts it may use
     */
    private static function closure(string $code, #[\SensitiveParameter] string $key, string $file, int $line, ?string $scope): \Closure
    {
        if ($scope !== null && !class_exists($scope)) {
            self::missingClass($scope);
        }
        $signed = self::signing($key, static fn(): mixed => Portable::unserialize($code, self::MISSING));
        $task = $signed instanceof SignedClosure ? $signed->getClosure() : throw new InvalidSignatureException();
        self::$origins = \count(self::$origins) < self::KEPT ? self::$origins : [];
        self::$origins[(string) (new \ReflectionFunction($task))->getFileName()] = [$file, $line];

        return $task;
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
