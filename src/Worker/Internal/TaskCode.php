<?php

declare(strict_types=1);

namespace Spindle\Worker\Internal;

use Spindle\Internal\Excerpt;
use Spindle\Worker\UnserializableException;

/**
 * Encodes a closure as its source and captured values, and other callables as a name or an object. Decodes tasks.
 * Refuses closures that PHP can't tell apart on one line, and values that can't be serialized, such as a resource.
 */
final class TaskCode
{
    /** Callback of {@see ValueSerializer::unserialize()} for a class that does not exist. */
    public const MISSING = self::class . '::missingClass';

    private const FUNCTION = 'f';
    private const METHOD = 'm';
    private const INVOKABLE = 'i';
    private const CLOSURE = 'c';

    private const ROOT_PATH = 'The task';
    private const MISSING_PREFIX = 'A worker has no ';

    public const AGENT_ADVICE = '. For an agent, deploy the code and reload the agent with SIGHUP, '
        . 'or load it in the file of spindle work --bootstrap';

    private const MAX_NAME_BYTES = 200;

    private const MAC_ALGORITHM = 'sha256';

    /** Formats of the names of encoded callables, by pattern. The groups match the name and no captured value. */
    private const NAME_PATTERNS = [
        '/^a:2:\{i:0;s:1:"f";i:1;s:\d+:"([^"]+)()";\}$/D' => '%s()',
        '/^a:\d:\{i:0;s:1:"m";i:1;[sOC]:\d+:"([^"]+)".*[;}]i:2;s:\d+:"([^"]+)";(?:i:3;b:[01];)?\}$/Ds' => '%s::%s()',
        '/^a:2:\{i:0;s:1:"i";i:1;[OCE]:\d+:"([^"]+)()"/' => '%s',
        '/^a:4:\{i:0;s:1:"c";.*;i:3;s:\d+:"([^"]+)()";\}$/Ds' => 'closure at %s',
    ];

    private const MAX_CACHED_CLOSURES = 256;

    /** @var array<string, string> pure closures (see encode()) in encoded form, by key, source, scope and class */
    private static array $codeOfSource = [];

    /** @var \WeakMap<\Closure, array<string, string>>|null encoded pure closures, by key; kept if the file changes */
    private static ?\WeakMap $codeOfClosure = null;

    /**
     * @param string $key    key that signs closures
     * @param bool   $isPure set to true if the code contains no object and, for a closure, no captured value and no
     *                       static variable; a worker may then reuse the decoded task
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

    /** @throws \UnexpectedValueException if this process lacks the task's code, or `$key` did not sign the closure */
    public static function decode(string $code, #[\SensitiveParameter] string $key): \Closure
    {
        /** @var array{string, string|object, 2?: string, 3?: bool|string} $parts */
        $parts = ValueSerializer::unserialize($code, self::MISSING);
        [$kind, $task] = $parts;
        if ($kind === self::METHOD) {
            return self::method($task, $parts[2] ?? '', ($parts[3] ?? false) === true);
        }
        if ($kind === self::CLOSURE && \is_string($task)) {
            return self::closure($task, $parts[2] ?? '', $key);
        }

        return \is_callable($task)
            ? $task(...)
            : throw self::missing(\is_string($task) ? "function {$task}()" : 'class ' . $task::class);
    }

    /** Returns the name of the encoded callable, or the file and line of a closure. Decodes no value. */
    public static function name(string $code): string
    {
        foreach (self::NAME_PATTERNS as $pattern => $format) {
            if (preg_match($pattern, $code, $match) === 1) {
                return Excerpt::of(\sprintf($format, $match[1], $match[2]), self::MAX_NAME_BYTES);
            }
        }

        return 'task';
    }

    /** Calls a task without arguments. If the task returns a generator, runs the generator to its end. */
    public static function run(string $code, #[\SensitiveParameter] string $key): void
    {
        $result = self::decode($code, $key)();
        while ($result instanceof \Generator && $result->valid()) {
            $result->next();
        }
    }

    /** @throws \UnexpectedValueException always, as the callback of {@see ValueSerializer::unserialize()} */
    public static function missingClass(string $class): never
    {
        throw self::missing("class {$class}");
    }

    /** Returns whether {@see missing()} created the exception with this class and message, so a worker lacks code. */
    public static function isMissing(string $class, string $message): bool
    {
        return $class === \UnexpectedValueException::class && str_starts_with($message, self::MISSING_PREFIX);
    }

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
        $mac = hash_hmac(self::MAC_ALGORITHM, $payload, $key, true);
        $file = ClosureStream::originalFile((string) $function->getFileName());
        $code = serialize([self::CLOSURE, $payload, $mac, "{$file}:{$source->line}"]);
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
        $sent = self::sentCallable($function, self::ROOT_PATH);
        $code = [self::METHOD, $sent->target, $sent->name, $sent->ignoresVisibility];

        return $sent->target === null
            ? serialize([self::FUNCTION, $sent->name])
            : ValueSerializer::serialize($code, self::ROOT_PATH);
    }

    /** @throws UnserializableException if a subclass overrides the method: a worker would call the override instead */
    public static function sentCallable(\ReflectionFunction $function, string $path): SentCallable
    {
        $scope = $function->getClosureScopeClass();
        $class = $function->getClosureCalledClass() ?? $scope; // the called class is the class that static:: means
        $target = $function->getClosureThis() ?? $class?->getName();
        $name = $function->getName();
        // For a method that __call() or __callStatic() handles, PHP creates an internal function.
        $isMagic = $function->isInternal() && $scope?->isInternal() === false;
        $meant = $target === null || $isMagic ? null : self::reflect($target, $name);
        if ($meant === null) {
            return new SentCallable($target, $name, false);
        }
        if ($scope !== null && $meant->class !== $scope->getName()) {
            throw UnserializableException::at(
                $path,
                "a first-class callable of {$scope->getName()}::{$name}(), which {$meant->class} overrides",
                null,
                'call it in a closure',
            );
        }

        return new SentCallable($target, $name, !$meant->isPublic());
    }

    /** @throws \UnexpectedValueException when the function or method does not exist in this process */
    public static function named(SentCallable $sent): \Closure
    {
        if ($sent->target !== null) {
            return self::method($sent->target, $sent->name, $sent->ignoresVisibility);
        }

        return \is_callable($sent->name) ? ($sent->name)(...) : throw self::missing("function {$sent->name}()");
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

    /** @param bool $ignoresVisibility true for a private or protected method, which code of its class has submitted */
    private static function method(string|object $class, string $name, bool $ignoresVisibility): \Closure
    {
        $task = [$class, $name];
        // $task(...) keeps the called class of a static method; ReflectionMethod::getClosure() would lose it.
        $create = static fn(): ?\Closure => \is_callable($task) ? $task(...) : null;
        $method = $ignoresVisibility ? self::reflect($class, $name) : null;
        if ($method !== null) {
            $scope = $method->isPrivate() ? $method->class : $class;
            $create = \Closure::bind($create, null, $scope); // @phpstan-ignore argument.type (the class exists)
        }

        return $create()
            ?? throw self::missing('method ' . (\is_string($class) ? $class : $class::class) . "::{$name}()");
    }

    /** Finds a method, even a private one of a parent class, which method_exists() finds only if it gets an object. */
    private static function reflect(string|object $class, string $name): ?\ReflectionMethod
    {
        try {
            return new \ReflectionMethod($class, $name);
        } catch (\ReflectionException) {
            return null;
        }
    }

    private static function missing(string $what): \UnexpectedValueException
    {
        return new \UnexpectedValueException(
            self::MISSING_PREFIX . "{$what}. A worker does not run the main script. Let Composer autoload it, or load "
                . 'it in the file of WorkerPoolOptions(bootstrap:)',
        );
    }
}
