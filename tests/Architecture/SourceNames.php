<?php

declare(strict_types=1);

namespace Spindle\Tests\Architecture;

use PhpParser\Node;
use PhpParser\NodeFinder;
use PhpParser\NodeTraverser;
use PhpParser\NodeVisitor\NameResolver;
use PhpParser\ParserFactory;

/** Names in the code of a PHP file, without comments and strings. */
final readonly class SourceNames
{
    /**
     * @param list<string> $classes classes, interfaces, traits and enums that the file declares
     * @param list<string> $used    names that it uses: classes, functions and constants, also those of PHP
     */
    private function __construct(public array $classes, public array $used) {}

    public static function of(string $code): self
    {
        $statements = (new ParserFactory())->createForHostVersion()->parse($code) ?? [];
        $statements = (new NodeTraverser(new NameResolver()))->traverse($statements);
        $classes = $used = [];
        foreach ((new NodeFinder())->findInstanceOf($statements, Node\Stmt\ClassLike::class) as $class) {
            if ($class->namespacedName !== null) {
                $classes[] = $class->namespacedName->toString();
            }
        }
        foreach ((new NodeFinder())->findInstanceOf($statements, Node\Name::class) as $name) {
            // A function without a namespace stays unresolved, because it can be one of the namespace around it.
            if ($name instanceof Node\Name\FullyQualified || $name->isUnqualified()) {
                $used[] = $name->toString();
            }
        }

        return new self($classes, array_values(array_unique($used)));
    }
}
