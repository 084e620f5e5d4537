<?php

declare(strict_types=1);

namespace Spindle\Tests\Architecture;

use PhpParser\Node;
use PhpParser\NodeTraverser;
use PhpParser\NodeVisitorAbstract;
use PhpParser\Parser;
use PhpParser\ParserFactory;

/**
 * Counts what makes code hard to follow: long classes and functions, many branches, callbacks without a name.
 *
 * docs/contributing/structure.md gives the limits and their reasons.
 */
final class Structure extends NodeVisitorAbstract
{
    public const MAX_CLASS_LINES = 400;
    public const MAX_FUNCTION_LINES = 50;
    public const MAX_COMPLEXITY = 20;

    private const BRANCHES = [
        Node\Expr\BinaryOp\BooleanAnd::class,
        Node\Expr\BinaryOp\BooleanOr::class,
        Node\Expr\BinaryOp\LogicalAnd::class,
        Node\Expr\BinaryOp\LogicalOr::class,
        Node\Expr\BinaryOp\Coalesce::class,
        Node\Expr\AssignOp\Coalesce::class,
        Node\Expr\Ternary::class,
        Node\Expr\NullsafeMethodCall::class,
        Node\Expr\NullsafePropertyFetch::class,
        Node\Stmt\If_::class,
        Node\Stmt\ElseIf_::class,
        Node\Stmt\For_::class,
        Node\Stmt\Foreach_::class,
        Node\Stmt\While_::class,
        Node\Stmt\Do_::class,
        Node\Stmt\Catch_::class,
    ];

    /** @var array<string, int> number of code lines of each file, without blank lines and comments */
    public array $codeLines = [];

    /** @var array<string, int> */
    public array $longClasses = [];

    /** @var array<string, int> */
    public array $longFunctions = [];

    /** @var array<string, int> */
    public array $complexFunctions = [];

    /** @var array<string, int> classes that suspend a fiber themselves, with their number of calls */
    public array $suspendingClasses = [];

    /** @var array<string, int> places where a constructor gets closures, with their number */
    public array $closureArguments = [];

    private string $file = '';

    /** @var list<array{name: string, complexity: int}> functions around the current node */
    private array $functions = [];

    private function __construct(private readonly string $root, private readonly Parser $parser) {}

    /** Counts in all PHP files of the folder src. */
    public static function of(string $root): self
    {
        $structure = new self($root, (new ParserFactory())->createForHostVersion());
        foreach (PhpFiles::in("{$root}/src") as $path) {
            $structure->read("src/{$path}");
        }

        return $structure;
    }

    public function enterNode(Node $node): null
    {
        if ($node instanceof Node\Stmt\ClassLike) {
            $this->countClass($node);
        } elseif (self::isFunction($node)) {
            $this->functions[] = ['name' => self::nameOf($node), 'complexity' => 1];
        } elseif ($node instanceof Node\Expr\New_) {
            $this->countClosures($node);
        } elseif ($node instanceof Node\Expr\StaticCall && self::isNamed($node->name, 'getSuspension')) {
            $this->suspendingClasses[$this->file] = ($this->suspendingClasses[$this->file] ?? 0) + 1;
        }
        $this->countBranch($node);

        return null;
    }

    public function leaveNode(Node $node): null
    {
        if (!self::isFunction($node)) {
            return null;
        }
        $function = array_pop($this->functions) ?? throw new \LogicException('No function was entered');
        $place = "{$this->file}:{$node->getStartLine()} {$function['name']}";
        $lines = self::linesOf($node);
        if ($lines > self::MAX_FUNCTION_LINES) {
            $this->longFunctions[$place] = $lines;
        }
        if ($function['complexity'] > self::MAX_COMPLEXITY) {
            $this->complexFunctions[$place] = $function['complexity'];
        }

        return null;
    }

    private function read(string $file): void
    {
        $code = (string) file_get_contents("{$this->root}/{$file}");
        $this->file = $file;
        $this->codeLines[$this->file] = self::countCodeLines($code);
        (new NodeTraverser($this))->traverse($this->parser->parse($code) ?? []);
    }

    private function countClass(Node\Stmt\ClassLike $class): void
    {
        $lines = self::linesOf($class);
        if ($lines > self::MAX_CLASS_LINES) {
            $this->longClasses[$this->file] = $lines;
        }
    }

    private function countClosures(Node\Expr\New_ $new): void
    {
        $isClosure = static fn(Node $argument): bool => $argument instanceof Node\Arg && (
            $argument->value instanceof Node\Expr\Closure
            || $argument->value instanceof Node\Expr\ArrowFunction
            || ($argument->value instanceof Node\Expr\CallLike && $argument->value->isFirstClassCallable())
        );
        $count = \count(array_filter($new->args, $isClosure));
        if ($count > 0) {
            $this->closureArguments["{$this->file}:{$new->getStartLine()}"] = $count;
        }
    }

    private function countBranch(Node $node): void
    {
        $isCase = ($node instanceof Node\Stmt\Case_ && $node->cond !== null)
            || ($node instanceof Node\MatchArm && $node->conds !== null);
        if ($this->functions !== [] && ($isCase || \in_array($node::class, self::BRANCHES, true))) {
            ++$this->functions[array_key_last($this->functions)]['complexity'];
        }
    }

    /** @phpstan-assert-if-true Node\FunctionLike $node */
    private static function isFunction(Node $node): bool
    {
        return $node instanceof Node\Stmt\ClassMethod
            || $node instanceof Node\Stmt\Function_
            || $node instanceof Node\Expr\Closure;
    }

    private static function nameOf(Node\FunctionLike $function): string
    {
        return $function instanceof Node\Stmt\ClassMethod || $function instanceof Node\Stmt\Function_
            ? "{$function->name->name}()"
            : 'a closure';
    }

    private static function isNamed(Node $name, string $expected): bool
    {
        return $name instanceof Node\Identifier && $name->name === $expected;
    }

    private static function linesOf(Node $node): int
    {
        return $node->getEndLine() - $node->getStartLine() + 1;
    }

    private static function countCodeLines(string $code): int
    {
        $lines = [];
        foreach (\PhpToken::tokenize($code) as $token) {
            if (!$token->is([T_COMMENT, T_DOC_COMMENT, T_WHITESPACE, T_OPEN_TAG])) {
                $lines += array_fill_keys(
                    range($token->line, $token->line + substr_count($token->text, "\n")),
                    true,
                );
            }
        }

        return \count($lines);
    }
}
