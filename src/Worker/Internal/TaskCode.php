<?php

declare(strict_types=1);

namespace Spindle\Worker\Internal;

use Laravel\SerializableClosure\SerializableClosure;
use Laravel\SerializableClosure\Serializers\Signed;
use Laravel\SerializableClosure\Support\ReflectionClosure;
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

    /** Before the signature of a function that has a name. */
    private const NAMED = 'function ';

    /** Functions that ask for the class that static means. */
    private const LATE = ['get_called_class', 'forward_static_call', 'forward_static_call_array'];

    /** Closures whose code is kept, and files in which closures were looked for. */
    private const KEPT = 256;

    /** @var array<string, array<int, list<string>>> signatures of what begins on each line, by file and time of its change */
    private static array $closures = [];

    /** @var array<string, array{string, int}> file and line of closures that were decoded, by the file that PHP has them from */
    private static array $origins = [];

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
        // The library puts one line before the closure.
        return isset(self::$origins[$file]) ? [self::$origins[$file][0], self::$origins[$file][1] + $line - 2] : [$file, $line];
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
        $isPure = $function->getClosureThis() === null && $function->getStaticVariables() === [];
        $place = $isPure ? $key . self::source($function) : '';
        if (isset(self::$pure[$place])) {
            $same[$task] = [$key => self::$pure[$place]];

            return self::$pure[$place];
        }
        self::checkClosure($task, self::PATH);
        try {
            $code = self::signing($key, static fn(): string => serialize(new SerializableClosure($task)));
            $code = serialize([self::CLOSURE, $code, $function->getFileName(), $function->getStartLine(), $function->getClosureScopeClass()?->getName()]);
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

    /** What the code of a closure follows from that has captured nothing. */
    private static function source(\ReflectionFunction $function): string
    {
        $file = (string) $function->getFileName();
        $changed = is_file($file) ? filemtime($file) : 0;

        return "{$file}:{$changed}:{$function->getStartLine()}:{$function->getClosureScopeClass()?->getName()}:{$function->getClosureCalledClass()?->getName()}:" . self::signature($function);
    }

    /** Of a first-class callable: strlen(...), $object->method(...), SomeClass::method(...). */
    private static function encodeNamed(\ReflectionFunction $function): string
    {
        $object = $function->getClosureThis();
        $class = $function->getClosureCalledClass() ?? $function->getClosureScopeClass(); // the first is what static:: means
        if ($object !== null) {
            return Portable::serialize([self::METHOD, $object, $function->getName()], self::PATH);
        }

        return serialize($class === null ? [self::FUNCTION, $function->getName()] : [self::METHOD, $class->getName(), $function->getName()]);
    }

    /** @throws UnserializableException */
    private static function checkClosure(\Closure $closure, string $path): void
    {
        $function = new \ReflectionFunction($closure);
        if (!$function->isAnonymous()) {
            throw UnserializableException::at($path, 'a first-class callable inside of another closure');
        }
        $file = (string) $function->getFileName();
        $line = (int) $function->getStartLine();
        if (!is_file($file)) {
            throw UnserializableException::at($path, 'a closure whose source is in no file');
        }
        self::checkPosition($function, $file, $line, $path);
        $source = new ReflectionClosure($closure);
        $object = $source->isBindingRequired() ? $function->getClosureThis() : null;
        if ($object === null) {
            self::checkStatic($function, $source->getCode(), $path);
        }
        Portable::check($object, "{$path}'s \$this", self::checkClosure(...));
        foreach ($function->getClosureUsedVariables() as $name => $value) {
            Portable::check($value, "{$path}'s captured variable \${$name}", self::checkClosure(...));
        }
    }

    /**
     * PHP knows the line that a closure begins on, not the column: where several do, it must be the only one of its signature
     * there, and the one that the library takes.
     *
     * @throws UnserializableException
     */
    private static function checkPosition(\ReflectionFunction $function, string $file, int $line, string $path): void
    {
        $version = "{$file}\0" . filemtime($file);
        if (!isset(self::$closures[$version])) {
            self::$closures = \count(self::$closures) < self::KEPT ? self::$closures : [];
            self::$closures[$version] = self::signatures((string) file_get_contents($file));
            self::forget($file);
        }
        $beside = self::$closures[$version][$line] ?? [];
        $signature = self::signature($function);
        try {
            // Where a closure ends, the library guesses; an arrow function before the colon of `? :` it takes too much of.
            $code = (new ReflectionClosure($function->getClosure()))->getCode();
            $taken = self::signatures("<?php return {$code};")[1][0] ?? null;
        } catch (\ParseError $cut) {
            throw UnserializableException::at($path, "a closure that can't be cut out of line {$line} of {$file}", $cut, 'put it into parentheses');
        }
        $closures = array_filter($beside, static fn(string $one): bool => !str_starts_with($one, self::NAMED));
        // The library may take a method as a closure, without its name, but not as an arrow function.
        $isNamed = preg_match('/^(static\s+)?fn\b/i', $code) !== 1 && \in_array(self::NAMED . $signature, $beside, true);
        if ($taken === $signature && !$isNamed && \count(array_keys($closures, $signature, true)) === 1) {
            return;
        }

        throw \count($closures) < \count($beside)
            ? UnserializableException::at($path, "a closure that begins on line {$line} of {$file} as a function with a name does, and can't be told from what is beside it", null, 'put it on a line of its own')
            : UnserializableException::at($path, 'one of ' . \count($beside) . " closures that begin on line {$line} of {$file} and can't be told apart", null, 'put each on a line of its own');
    }

    /** The library keeps what it has read of a file, also when it has changed and is loaded again. */
    private static function forget(string $file): void
    {
        foreach (['files', 'classes', 'functions', 'constants', 'structures'] as $name) {
            $property = new \ReflectionProperty(ReflectionClosure::class, $name);
            /** @var array<string, mixed> $kept */
            $kept = $property->getValue();
            unset($kept[sha1($file)]);
            $property->setValue(null, $kept);
        }
    }

    /**
     * A closure without an object can be bound to the class that it stands in only, not to the heir that made it.
     *
     * @throws UnserializableException
     */
    private static function checkStatic(\ReflectionFunction $function, string $code, string $path): void
    {
        $scope = $function->getClosureScopeClass()?->getName();
        $called = $function->getClosureCalledClass()?->getName();
        if ($called !== null && $called !== $scope && self::isLate("<?php {$code};")) {
            throw UnserializableException::at($path, "a closure of {$scope} whose static is {$called}", null, 'let it capture static::class in a variable, and use that');
        }
    }

    /** Whether a source says static and means a class by it. */
    private static function isLate(string $source): bool
    {
        $tokens = self::tokens($source);
        foreach ($tokens as $i => $token) {
            if ($token->is(\T_STATIC) && !($tokens[$i + 1] ?? $token)->is([\T_FN, \T_FUNCTION, \T_VARIABLE])) {
                return true;
            }
            if ($token->is([\T_STRING, \T_NAME_FULLY_QUALIFIED]) && \in_array(strtolower(ltrim($token->text, '\\')), self::LATE, true)) {
                return true;
            }
        }

        return false;
    }

    /** What can be seen of a closure both in its source and in memory. */
    private static function signature(\ReflectionFunction $function): string
    {
        $parameters = array_map(static fn(\ReflectionParameter $parameter): string => "\${$parameter->getName()}", $function->getParameters());

        return ($function->isStatic() ? 'static ' : '') . implode(' ', $parameters);
    }

    /** @return array<int, list<string>> of the closures and functions in a source, by the line that they begin on */
    private static function signatures(string $source): array
    {
        $signatures = [];
        $tokens = self::tokens($source);
        foreach ($tokens as $i => $token) {
            $isNamed = ($tokens[$i + 1]->text ?? '') !== '(';
            if (!$token->is([\T_FN, \T_FUNCTION]) || ($isNamed && ($tokens[$i + 2]->text ?? '') !== '(')) {
                continue;
            }
            $isStatic = $i > 0 && $tokens[$i - 1]->is(\T_STATIC);
            $parameters = [];
            $depth = 0;
            for ($at = $i + ($isNamed ? 2 : 1); isset($tokens[$at]); ++$at) {
                $depth += match ($tokens[$at]->text) {
                    '(', '[', '{' => 1,
                    ')', ']', '}' => -1,
                    default => 0,
                };
                if ($depth === 0) {
                    break;
                }
                if ($depth === 1 && $tokens[$at]->is(\T_VARIABLE)) {
                    $parameters[] = $tokens[$at]->text;
                }
            }
            $signatures[$token->line][] = ($isNamed ? self::NAMED : '') . ($isStatic ? 'static ' : '') . implode(' ', $parameters);
        }

        return $signatures;
    }

    /** @return list<\PhpToken> but for spaces, comments and the sign of a reference */
    private static function tokens(string $source): array
    {
        return array_values(array_filter(
            \PhpToken::tokenize($source, \TOKEN_PARSE),
            static fn(\PhpToken $token): bool => !$token->isIgnorable() && $token->text !== '&',
        ));
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
        /** @var SerializableClosure $serializable */
        $serializable = self::signing($key, static fn(): mixed => Portable::unserialize($code, self::MISSING));
        $task = $serializable->getClosure();
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
