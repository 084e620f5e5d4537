<?php

declare(strict_types=1);

namespace Spindle\Tests\Architecture;

use PhpParser\Node;
use PhpParser\Node\Expr;
use PhpParser\NodeFinder;
use PhpParser\ParserFactory;

/** Finds calls of assert() whose condition may have an effect. With zend.assertions=-1, PHP omits the condition. */
final class AssertionEffects
{
    /** Matches functions without an effect that matters. */
    private const PURE = '/^(?:is_\w+|(?:class|enum|method|property)_exists|ini_get|min)$/';

    /** @return list<int> lines with effects */
    public static function linesIn(string $code): array
    {
        if (!str_contains($code, 'assert(')) {
            return [];
        }
        $finder = new NodeFinder();
        $statements = (new ParserFactory())->createForHostVersion()->parse($code) ?? [];
        $lines = [];
        foreach ($finder->find($statements, self::isAssertion(...)) as $assertion) {
            \assert($assertion instanceof Expr\FuncCall);
            foreach ($finder->find($assertion->args, self::mayHaveEffect(...)) as $effect) {
                $lines[] = $effect->getStartLine();
            }
        }

        return array_values(array_unique($lines));
    }

    private static function isAssertion(Node $node): bool
    {
        return $node instanceof Expr\FuncCall && self::nameOf($node) === 'assert';
    }

    private static function mayHaveEffect(Node $node): bool
    {
        if ($node instanceof Expr\FuncCall) {
            return preg_match(self::PURE, self::nameOf($node)) !== 1;
        }

        return match ($node::class) {
            Expr\MethodCall::class, Expr\NullsafeMethodCall::class, Expr\StaticCall::class, Expr\New_::class,
            Expr\Assign::class, Expr\AssignRef::class,
            Expr\PreInc::class, Expr\PostInc::class, Expr\PreDec::class, Expr\PostDec::class => true,
            default => $node instanceof Expr\AssignOp,
        };
    }

    private static function nameOf(Expr\FuncCall $call): string
    {
        return $call->name instanceof Node\Name ? $call->name->toLowerString() : '';
    }
}
