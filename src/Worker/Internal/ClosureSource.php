<?php

declare(strict_types=1);

namespace Spindle\Worker\Internal;

/** Source code of a closure. If several closures begin on one line, {@see matches()} is true for the right source. */
final class ClosureSource
{
    private static int $count = 0;

    public readonly int $id;

    private ?string $signature = null;

    /** Number of captured and static variables, including undefined variables that an arrow function mentions. */
    private int $boundCount = 0;

    /**
     * @param string            $code          PHP code that returns the closure, without the opening tag
     * @param int               $start         offset of the return statement in $code, after declarations and imports
     * @param list<string>      $parameters
     * @param list<string>|null $uses          names of captured variables; null for an arrow function
     * @param bool              $usesThis      whether the code uses $this, or includes or evaluates code that may do so
     * @param list<array{string, string, bool}> $calls {@see StaticCalls::of()}
     * @param bool              $isLate        whether the code depends on the class that `static` means
     * @param bool              $usesItsClass  whether the code contains self, static, parent or __CLASS__
     * @param bool              $declaresStatic whether the code, or a closure in it, declares static variables
     */
    public function __construct(
        public readonly int $line,
        private readonly int $lastLine,
        public readonly string $code,
        public readonly int $start,
        private readonly bool $isStatic,
        private readonly array $parameters,
        private readonly ?array $uses,
        private readonly bool $usesThis,
        private readonly array $calls,
        private readonly bool $isLate,
        public readonly bool $usesItsClass,
        public readonly bool $declaresStatic,
    ) {
        $this->id = ++self::$count;
    }

    public function needsThis(\ReflectionFunction $closure): bool
    {
        $object = $closure->getClosureThis();
        $scope = $closure->getClosureScopeClass();
        if ($this->usesThis || $object === null || $scope === null) {
            return $this->usesThis;
        }
        foreach ($this->calls as [$class, $method, $passesClassOfThis]) {
            $called = $this->classOf($object, $scope, $class);
            if ($called === null) {
                continue;
            }
            // parent::run() and Job::run() call run() on $this, unless run() is static.
            $isOfObject = $called->hasMethod($method)
                ? !$called->getMethod($method)->isStatic()
                : $method === StaticCalls::COMPUTED || $called->hasMethod('__call');
            $name = $class === StaticCalls::COMPUTED ? null : $called->getName();
            if ($isOfObject || ($passesClassOfThis && self::callableNeedsThis($object, $scope, $name, $method))) {
                return true;
            }
        }

        return false;
    }

    /**
     * Returns whether a callable such as ['Job', 'run'], which names a static method, needs $this. If Job is the
     * closure's scope or an ancestor of the scope, `static` in run() means the class of $this. In a closure without
     * $this, `static` in run() would mean Job.
     *
     * @param \ReflectionClass<object> $scope
     * @param string|null              $name  class in the callable; null if the code computes the class
     */
    private static function callableNeedsThis(
        object $object,
        \ReflectionClass $scope,
        ?string $name,
        string $method,
    ): bool {
        for ($class = $scope; $class !== false; $class = $class->getParentClass()) {
            $mayBeNamed = \in_array($name, [null, $class->getName()], true);
            if ($mayBeNamed && $class->getName() !== $object::class && LateBinding::isLateMethod($class, $method)) {
                return true;
            }
        }

        return false;
    }

    /** Returns whether the closure, or a method that it calls, depends on the class that `static` means. */
    public function needsCalledClass(\ReflectionFunction $closure): bool
    {
        $scope = $closure->getClosureScopeClass();
        if ($scope === null || $this->isLate) {
            return $this->isLate;
        }
        foreach ($this->calls as [$class, $method, $passesClassOfThis]) {
            if (!$passesClassOfThis && LateBinding::isForwarded($scope, $class, $method)) {
                return true;
            }
        }

        return false;
    }

    /**
     * @param \ReflectionClass<object> $scope
     * @param string                   $name  class name, as written in the source
     *
     * @return \ReflectionClass<object>|null the class that the name means; null if $object is no instance of that class
     */
    private function classOf(object $object, \ReflectionClass $scope, string $name): ?\ReflectionClass
    {
        $keyword = strtolower($name);
        if ($keyword === 'parent') {
            $parent = $scope->getParentClass();

            return $parent === false ? null : $parent;
        }
        $class = match ($keyword) {
            'self' => $scope->getName(),
            'static', StaticCalls::COMPUTED => $object::class,
            default => $this->fullName($name),
        };

        /** @var class-string $class */
        return $object instanceof $class ? new \ReflectionClass($class) : null;
    }

    private function fullName(string $name): string
    {
        $imports = substr($this->code, 0, $this->start);
        $namespace = preg_match('/\bnamespace ([^;]+);/', $imports, $match) === 1 ? "{$match[1]}\\" : '';
        $parts = explode('\\', $name, 2);
        $first = $parts[0];
        $rest = $parts[1] ?? null;
        $isImported = preg_match('/\buse (\S+) as ' . preg_quote($first, '/') . ';/i', $imports, $match) === 1;

        return match (true) {
            $first === '' => (string) $rest,
            strtolower($first) === 'namespace' => "{$namespace}{$rest}",
            $isImported => $match[1] . ($rest === null ? '' : "\\{$rest}"),
            default => "{$namespace}{$name}",
        };
    }

    /** Returns whether this can be the closure's source. The check suffices if only one closure begins on the line. */
    public function couldBe(\ReflectionFunction $closure): bool
    {
        return $closure->isStatic() === $this->isStatic
            && $closure->getNumberOfParameters() === \count($this->parameters);
    }

    /** Returns whether the closure and this source are the same in all properties that are quick to compare. */
    public function resembles(\ReflectionFunction $closure): bool
    {
        $name = static fn(\ReflectionParameter $parameter): string => $parameter->getName();
        $parameters = array_map($name, $closure->getParameters());

        return $closure->isStatic() === $this->isStatic
            && $parameters === $this->parameters
            && ($this->uses === null || $closure->getEndLine() === $this->lastLine)
            && ($this->uses === null || array_keys($this->captured($closure)) === $this->uses);
    }

    /** @return array<string, mixed> captured variables by name */
    public function captured(\ReflectionFunction $closure): array
    {
        /** @var array<string, mixed> $captured */
        $captured = $closure->getClosureUsedVariables();
        if ($captured !== [] || $this->uses === [] || !$closure->isGenerator()) {
            return $captured;
        }
        // For a generator, getClosureUsedVariables() of PHP 8.2 returns nothing. getStaticVariables() is called only in
        // this case, because it also evaluates the initial values of static variables, which may run other code.
        /** @var array<string, mixed> $variables */
        $variables = $closure->getStaticVariables();

        return $this->uses === null ? $variables : array_intersect_key($variables, array_flip($this->uses));
    }

    /** Returns whether PHP reports the same properties for the closure as for a closure made from this source. */
    public function matches(\ReflectionFunction $closure): bool
    {
        if ($this->signature === null) {
            $names = array_diff($this->names(), ['this', 'GLOBALS']);
            $own = new \ReflectionFunction(self::evaluate($this->code, array_fill_keys($names, null)));
            $this->signature = self::signature($own);
            $this->boundCount = self::boundCount($own);
        }

        return self::signature($closure) === $this->signature
            && self::boundCount($closure) === $this->boundCount
            && ($this->uses !== null || $this->mentionsAllCaptured($closure));
    }

    /** Returns whether the source mentions every captured variable. An arrow function captures no other variables. */
    private function mentionsAllCaptured(\ReflectionFunction $closure): bool
    {
        return array_diff(array_keys($this->captured($closure)), $this->names()) === [];
    }

    /** @return list<string> names of the variables in the source */
    private function names(): array
    {
        $names = [];
        foreach (\PhpToken::tokenize("<?php {$this->code}") as $token) {
            if ($token->is([\T_VARIABLE, \T_STRING_VARNAME])) {
                $names[] = ltrim($token->text, '$');
            } elseif ($token->is(\T_CONSTANT_ENCAPSED_STRING)) {
                $names[] = substr($token->text, 1, -1); // any string may name a variable: ${'name'}
            }
        }

        return $names;
    }

    /** @param array<string, null> $variables variables that the closure may capture */
    private static function evaluate(string $code, array $variables): \Closure
    {
        // Warnings of the compiler are ignored, because PHP has already reported them when it loaded the file.
        set_error_handler(static fn(): bool => true);
        try {
            $closure = (static function (mixed ...$ignored): mixed {
                extract((array) func_get_arg(1));

                return eval(func_get_arg(0));
            })($code, $variables);
            \assert($closure instanceof \Closure);

            return $closure;
        } finally {
            restore_error_handler();
        }
    }

    /** Returns the signature without default values, because PHP's optimizer may change how these are stored. */
    private static function signature(\ReflectionFunction $closure): string
    {
        $signature = [$closure->isStatic(), $closure->returnsReference(), $closure->isGenerator()];
        $signature[] = (string) $closure->getReturnType();
        foreach ($closure->getParameters() as $parameter) {
            $signature[] = [(string) $parameter->getType(), $parameter->getName()];
            $signature[] = [$parameter->isPassedByReference(), $parameter->isVariadic(), $parameter->isOptional()];
        }
        foreach ($closure->getAttributes() as $attribute) {
            $signature[] = $attribute->getName();
        }

        return serialize($signature);
    }

    /** Reads $boundCount from the text of the reflection, because no reflection method counts undefined variables. */
    private static function boundCount(\ReflectionFunction $closure): int
    {
        preg_match_all('/^\s*- Bound Variables \[(\d+)\] {$/m', (string) $closure, $counts);

        return (int) end($counts[1]);
    }
}
