<?php

declare(strict_types=1);

namespace Spindle\Worker\Internal;

use Spindle\Internal\Warnings;

/**
 * Finds code of a closure that depends on the class that `static` means (late static binding). A worker binds a closure
 * that it receives to the class whose code contains the closure. So in the worker, `static` means that class, even if
 * `static` meant a subclass in the pool's process. In a forwarding call, such as `self::run()` or
 * `parent::run()`, `static` in run() means the same class as in the caller. So the code of run() is read, too.
 */
final class LateBinding
{
    private const FUNCTIONS = ['get_called_class', 'forward_static_call', 'forward_static_call_array'];

    /** A callable string, such as `'parent::run'`, or the text before the variable in `"parent::{$name}"`. */
    private const CALLABLE_PATTERN = '/^([\'"]?)(?:self|parent|static)::[\w\x80-\xff]*\1$/iD';

    private const MAX_CACHED_ANSWERS = 256;

    /** @var array<string, bool> whether a method depends on the class of `static`, by class and method */
    private static array $answers = [];

    /** Returns whether a token matches CALLABLE_PATTERN, is one of the FUNCTIONS, or is `static` as a class name. */
    public static function isLate(\PhpToken $token, \PhpToken $next): bool
    {
        $isString = $token->is([\T_CONSTANT_ENCAPSED_STRING, \T_ENCAPSED_AND_WHITESPACE]);

        return ($isString && preg_match(self::CALLABLE_PATTERN, $token->text) === 1)
            || ($token->is(\T_STATIC) && !$next->is([\T_FN, \T_FUNCTION, \T_VARIABLE]))
            || ($token->is([\T_STRING, \T_NAME_FULLY_QUALIFIED])
                && \in_array(strtolower(ltrim($token->text, '\\')), self::FUNCTIONS, true));
    }

    /**
     * Returns whether the called method depends on the class of `static`, and this is the same class as in the caller.
     *
     * @param \ReflectionClass<object> $scope  class that contains the call
     * @param string                   $class  class name, as written in the source
     * @param string                   $method as in the source; begins with `$` or `{` if PHP computes the name
     * @param array<string, true>      $visited methods that are being read, by class and name
     */
    public static function isForwarded(
        \ReflectionClass $scope,
        string $class,
        string $method,
        array $visited = [],
    ): bool {
        $called = match (strtolower($class)) {
            'self' => $scope,
            'parent' => $scope->getParentClass(),
            default => false, // with another name, `static` means the named class; isLate() handles `static`
        };

        return $called !== false && self::isLateMethod($called, $method, $visited);
    }

    /**
     * Returns whether a method is static and depends on the class of `static`. If the class has no such method, returns
     * whether PHP computes the name of the method, or __callStatic() would handle the call.
     *
     * @param \ReflectionClass<object> $called
     * @param array<string, true>      $visited
     */
    public static function isLateMethod(\ReflectionClass $called, string $method, array $visited = []): bool
    {
        if (!$called->hasMethod($method)) {
            return \in_array($method[0] ?? '', ['$', '{'], true) || $called->hasMethod('__callStatic');
        }
        $found = $called->getMethod($method);

        return $found->isStatic() && self::dependsOnCalledClass($found, $visited);
    }

    /** @param array<string, true> $visited */
    private static function dependsOnCalledClass(\ReflectionMethod $method, array $visited): bool
    {
        $name = strtolower("{$method->class}::{$method->name}");
        if (isset(self::$answers[$name]) || isset($visited[$name])) {
            return self::$answers[$name] ?? false; // in a recursive call, the outer call finds the dependency
        }
        $depends = $method->isInternal() || self::bodyDependsOnCalledClass($method, $visited + [$name => true]);
        if ($visited === []) { // otherwise the answer may be incomplete, because methods in $visited were skipped
            self::$answers = \count(self::$answers) < self::MAX_CACHED_ANSWERS ? self::$answers : [];
            self::$answers[$name] = $depends;
        }

        return $depends;
    }

    /** @param array<string, true> $visited */
    private static function bodyDependsOnCalledClass(\ReflectionMethod $method, array $visited): bool
    {
        $tokens = self::body($method);
        $scope = $method->getDeclaringClass();
        foreach ($tokens as $at => $token) {
            $next = $tokens[$at + 1] ?? $token;
            if (self::isLate($token, $next)) {
                return true;
            }
            $isCall = $token->is(\T_DOUBLE_COLON) && $at > 0 && StaticCalls::isCall($tokens, $at);
            if ($isCall && self::isForwarded($scope, $tokens[$at - 1]->text, $next->text, $visited)) {
                return true;
            }
        }

        return $tokens === [];
    }

    /** @return list<\PhpToken> tokens from `function` on, without spaces and comments; none if there is no source */
    private static function body(\ReflectionMethod $method): array
    {
        $lines = Warnings::suppressed(static fn(): array|false => file((string) $method->getFileName()));
        if ($lines === false) {
            return [];
        }
        $first = (int) $method->getStartLine() - 1;
        $source = implode('', \array_slice($lines, $first, (int) $method->getEndLine() - $first));
        $tokens = array_values(array_filter(
            \PhpToken::tokenize("<?php {$source}"),
            static fn(\PhpToken $token): bool => !$token->isIgnorable(),
        ));
        foreach ($tokens as $at => $token) {
            if ($token->is(\T_FUNCTION)) {
                return \array_slice($tokens, $at);
            }
        }

        return [];
    }
}
