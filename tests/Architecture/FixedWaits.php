<?php

declare(strict_types=1);

namespace Spindle\Tests\Architecture;

use PhpParser\Node;
use PhpParser\NodeTraverser;
use PhpParser\NodeVisitor;
use PhpParser\NodeVisitorAbstract;
use PhpParser\ParserFactory;

/**
 * Finds methods in a file that wait for a fixed time, such as delay(0.2).
 *
 * Closures are ignored, because most are tasks, handlers and callbacks under test. Classes in virtual time are too.
 */
final class FixedWaits extends NodeVisitorAbstract
{
    /** Shortest wait that is reported, in seconds. */
    private const SHORTEST = 0.1;

    /** Units per second in the argument of each function. */
    private const UNITS = ['delay' => 1, 'sleep' => 1, 'usleep' => 1_000_000];

    private string $method = '';

    /** @var array<string, true> */
    private array $methods = [];

    private function __construct() {}

    /** @return list<string> methods that wait */
    public static function methodsIn(string $code): array
    {
        $names = implode('|', array_keys(self::UNITS));
        if (preg_match("/\\b(?:{$names})\\(/", $code) !== 1 || preg_match('/^    use VirtualTime;/m', $code) === 1) {
            return [];
        }
        $visitor = new self();
        (new NodeTraverser($visitor))->traverse((new ParserFactory())->createForHostVersion()->parse($code) ?? []);

        return array_keys($visitor->methods);
    }

    public function enterNode(Node $node): ?int
    {
        if ($node instanceof Node\Expr\Closure || $node instanceof Node\Expr\ArrowFunction) {
            return NodeVisitor::DONT_TRAVERSE_CHILDREN;
        }
        if ($node instanceof Node\Stmt\ClassMethod) {
            $this->method = $node->name->name;
        } elseif ($node instanceof Node\Expr\FuncCall && self::seconds($node) >= self::SHORTEST) {
            $this->methods[$this->method] = true;
        }

        return null;
    }

    private static function seconds(Node\Expr\FuncCall $call): float
    {
        $unit = $call->name instanceof Node\Name ? self::UNITS[$call->name->getLast()] ?? null : null;
        $first = $call->args[0] ?? null;
        $time = $first instanceof Node\Arg ? $first->value : null;
        $isNumber = $time instanceof Node\Scalar\Int_ || $time instanceof Node\Scalar\Float_;

        return $isNumber && $unit !== null ? $time->value / $unit : 0.0;
    }
}
