<?php

declare(strict_types=1);

namespace Spindle\Tests\Architecture;

use PhpParser\Node\Expr\ErrorSuppress;
use PhpParser\NodeFinder;
use PhpParser\ParserFactory;
use PHPUnit\Framework\TestCase;

/**
 * PHP calls an error handler of the application also for warnings that `@` suppresses, and the handler may throw.
 * So only the class Warnings, and code that runs without such a handler, uses `@`.
 */
final class SuppressedWarningsTest extends TestCase
{
    /** Reasons why a file, or the files of a folder, may use `@`. */
    private const REASONS = [
        'Cli/' => 'the commands load code of applications only in other processes',
        'Internal/Launcher/Process/' => 'the launcher loads no other code; Files sets the error handler itself',
        'Internal/Warnings.php' => 'it sets the error handler',
        'Remote/Internal/lease-guard.php' => 'the process loads no other code',
        'Worker/Internal/Process/ForkHost.php' => 'run() sets the error handler',
        'Worker/Internal/Process/ThreadHost.php' => 'run() sets the error handler',
        'Worker/Internal/ValueSerializer.php' => 'methods of the unserialized objects keep the error handler',
    ];

    public function testNoOtherCodeUsesTheOperator(): void
    {
        $root = \dirname(__DIR__, 2) . '/src';
        $lines = $used = [];
        foreach (PhpFiles::in($root) as $path) {
            $reasons = array_filter(
                array_keys(self::REASONS),
                static fn(string $prefix): bool => str_starts_with($path, $prefix),
            );
            foreach (self::linesIn((string) file_get_contents("{$root}/{$path}")) as $line) {
                if ($reasons === []) {
                    $lines[] = "{$path}:{$line}";
                }
                $used = [...$used, ...$reasons];
            }
        }

        self::assertSame([], $lines, 'Call Warnings::suppressed()');
        self::assertSame([], array_diff(array_keys(self::REASONS), $used), 'Remove these entries');
    }

    public function testOperatorsAreFound(): void
    {
        $code = <<<'PHP'
            <?php
            $file = @fopen('a@b', 'r'); /** @var resource $file */
            Warnings::suppressed(static fn() => unlink('a') || @unlink('b'));

            if (@stat('c') === false) {}
            PHP;

        self::assertSame([2, 3, 5], self::linesIn($code));
    }

    /** @return list<int> */
    private static function linesIn(string $code): array
    {
        $statements = (new ParserFactory())->createForHostVersion()->parse($code) ?? [];

        return array_values(array_map(
            static fn(ErrorSuppress $operator): int => $operator->getStartLine(),
            (new NodeFinder())->findInstanceOf($statements, ErrorSuppress::class),
        ));
    }
}
