<?php

declare(strict_types=1);

namespace Spindle\Worker\Internal;

/** Finds calls that name a class, such as `Job::run()`. PHP calls a non-static run() on $this if $this is a Job. */
final class StaticCalls
{
    /** Placeholder for the name of a class or method that the code computes when it runs. */
    public const COMPUTED = '{';

    private const KEYWORDS = ['self', 'parent', 'static'];
    private const STRINGS = [\T_CONSTANT_ENCAPSED_STRING, \T_ENCAPSED_AND_WHITESPACE];

    /** A callable as a string, such as `self::run`, or a part of a concatenated one, such as `self::` or `::run`. */
    private const CALLABLE_PATTERN = '/^([\w\\\\\x80-\xff]*)::([\w\x80-\xff]*)$/';

    /**
     * @param array<int, \PhpToken> $own tokens of the code by their index in the source
     *
     * @return list<array{string, string, bool}> an entry for each call and callable: the class, as written or fully
     *     qualified; the method; and whether `static` in the method may mean another class if the closure has no $this.
     *     The third value is false for calls, and for callables with the string 'self', 'parent' or 'static' as class
     */
    public static function of(SourceTokens $source, array $own): array
    {
        $calls = [];
        foreach ($own as $at => $token) {
            $call = match (true) {
                $token->is(\T_DOUBLE_COLON) => self::call($source, $at),
                $token->is(self::STRINGS) => self::stringCallable($source, $at),
                $source->singleCharacter($at) === ',' => self::arrayCallable($source, $at),
                default => null,
            };
            if ($call !== null) {
                $calls[] = $call;
            }
        }

        return $calls;
    }

    /**
     * Returns whether the `::` at this index is part of a method call. `A::{$name}` and `A::$$name` are no calls.
     *
     * @param list<\PhpToken> $tokens without spaces and comments
     */
    public static function isCall(array $tokens, int $at): bool
    {
        do {
            $text = ($tokens[++$at] ?? null)?->text;
        } while ($text === '$');
        for ($depth = 0; isset($tokens[$at]); ++$at) { // skips the name, which may be an expression in braces
            $depth += match ($tokens[$at]->text) {
                '{', '${' => 1,
                '}' => -1,
                default => 0,
            };
            if ($depth === 0) {
                break;
            }
        }

        return ($tokens[$at + 1] ?? null)?->text === '(';
    }

    /** @return array{string, string, false}|null null if the `::` at this index is not part of a call */
    private static function call(SourceTokens $source, int $at): ?array
    {
        if (!self::isCall($source->tokens, $at)) {
            return null;
        }
        $name = $source->tokens[$at + 1];
        $isComputed = $name->is(['{', '$', \T_VARIABLE]);

        return [self::classBefore($source, $at), $isComputed ? self::COMPUTED : $name->text, false];
    }

    private static function classBefore(SourceTokens $source, int $at): string
    {
        $class = $source->tokens[$at - 1];
        $isPlain = $class->is([...SourceTokens::NAMES, \T_NAME_RELATIVE, \T_STATIC])
            && !$source->tokens[$at - 2]->is([\T_OBJECT_OPERATOR, \T_NULLSAFE_OBJECT_OPERATOR, \T_DOUBLE_COLON]);

        return $isPlain ? $class->text : self::COMPUTED;
    }

    /** @return array{string, string, bool}|null */
    private static function stringCallable(SourceTokens $source, int $at): ?array
    {
        if (preg_match(self::CALLABLE_PATTERN, self::content($source->tokens[$at]), $match) !== 1) {
            return null;
        }
        [, $class, $method] = $match;
        if ($class === '' || $source->singleCharacter($at - 1) === '.') { // the string has no complete class name
            return $method === '' ? null : [self::COMPUTED, $method, true];
        }

        $class = self::qualified($class);

        return [$class, $method === '' ? self::COMPUTED : $method, $class[0] === '\\'];
    }

    /** @return array{string, string, bool}|null null if the comma at this index is not in a callable */
    private static function arrayCallable(SourceTokens $source, int $at): ?array
    {
        $last = $source->tokens[$at - 1]; // the token before the comma: `class` of `self::class`, or `'self'`
        $isConstant = strtolower($last->text) === 'class' && $source->tokens[$at - 2]->is(\T_DOUBLE_COLON);
        $open = $at - ($isConstant ? 4 : 2);
        $isArray = $source->singleCharacter($open) === '['
            || ($source->singleCharacter($open) === '(' && $source->tokens[$open - 1]->is(\T_ARRAY));
        $method = $source->tokens[$at + 1];
        $isLiteral = $method->is(\T_CONSTANT_ENCAPSED_STRING);
        $isCallable = $isArray && $source->partner($open) <= $at + 3 // a comma may follow the method
            && ($isConstant || $last->is([\T_CONSTANT_ENCAPSED_STRING, \T_CLASS_C]))
            && ($isLiteral || $method->is(\T_VARIABLE));
        if (!$isCallable) {
            return null;
        }
        $class = match (true) {
            $last->is(\T_CLASS_C) => 'self',
            $isConstant => self::classBefore($source, $at - 2),
            default => self::qualified(self::content($last)),
        };
        // If a closure without $this calls ['self', 'run'], `static` in run() means the same class as in the closure.
        // If it calls [self::class, 'run'], `static` in run() means the named class.
        $isKeyword = $last->is(\T_CONSTANT_ENCAPSED_STRING) && $class[0] !== '\\';

        return [$class, $isLiteral ? self::content($method) : self::COMPUTED, !$isKeyword];
    }

    private static function content(\PhpToken $string): string
    {
        return str_replace('\\\\', '\\', trim($string->text, '\'"'));
    }

    /** Adds a leading backslash to a class name from a string, because PHP reads such a name as fully qualified. */
    private static function qualified(string $class): string
    {
        return \in_array(strtolower($class), self::KEYWORDS, true) ? $class : '\\' . ltrim($class, '\\');
    }
}
