<?php

declare(strict_types=1);

namespace Spindle\Site\Reference;

use PhpParser\Node;
use PhpParser\Node\Expr;
use PhpParser\Node\InterpolatedStringPart;
use PhpParser\Node\Scalar\InterpolatedString;
use PhpParser\Node\Scalar\String_;
use PhpParser\NodeFinder;
use PhpParser\ParserFactory;
use PhpParser\PrettyPrinter\Standard;

/** The messages of an exception, read from its source, so that the search finds them. */
final class Messages
{
    /** Shorter strings are parts of a message, such as a unit. */
    private const MIN_LENGTH = 25;

    /**
     * @param \ReflectionClass<object> $exception
     * @return list<string> with the expressions that are inserted as {$name}
     */
    public static function of(\ReflectionClass $exception): array
    {
        $tree = (new ParserFactory())->createForHostVersion()
            ->parse((string) file_get_contents((string) $exception->getFileName())) ?? [];
        $finder = new NodeFinder();
        $messages = [];
        foreach ($finder->findInstanceOf($tree, Expr\New_::class) as $new) {
            foreach ($new->getArgs() as $argument) {
                $text = self::text($argument->value);
                if (\strlen($text) >= self::MIN_LENGTH && str_contains($text, ' ')) {
                    $messages[] = trim(strtr($text, ["\n" => ' ', '`' => "'"]));
                }
            }
        }

        return array_values(array_unique($messages));
    }

    private static function text(Node $node): string
    {
        return match (true) {
            $node instanceof String_, $node instanceof InterpolatedStringPart => $node->value,
            $node instanceof InterpolatedString => implode('', array_map(self::text(...), $node->parts)),
            $node instanceof Expr\BinaryOp\Concat => self::text($node->left) . self::text($node->right),
            $node instanceof Expr\Ternary => self::text($node->else),
            $node instanceof Expr\Variable => '{' . self::code($node) . '}',
            $node instanceof Expr => '{…}',
            default => '',
        };
    }

    private static function code(Expr $expression): string
    {
        return (new Standard())->prettyPrintExpr($expression);
    }
}
