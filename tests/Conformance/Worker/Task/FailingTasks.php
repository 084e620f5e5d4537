<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Worker\Task;

/** Tasks that fail. */
final class FailingTasks
{
    /** @param string $secret value that must not appear in the trace */
    public static function withSecret(string $secret): never
    {
        throw new \DomainException(
            'no such user',
            7,
            new \LengthException('too long', 8, new HoldingException('deep', 9)),
        );
    }

    public static function at(int $number, int $bad): int
    {
        return $number === $bad ? throw new \DomainException("bad {$number}") : $number;
    }

    public static function withWrongType(): int
    {
        // @phpstan-ignore argument.type (which is the point)
        return Number::double('not a number');
    }

    public static function withUndefinedFunction(): void
    {
        // @phpstan-ignore function.notFound (which is the point)
        no_such_function_anywhere();
    }

    public static function withBadCode(): void
    {
        eval('this is no code');
    }

    public static function withObjectThatStays(): never
    {
        throw new HoldingException('held', 5, new \LengthException('inner'));
    }

    public static function withField(): never
    {
        throw new FieldException('name', Suit::Spades);
    }
}
