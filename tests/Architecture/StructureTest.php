<?php

declare(strict_types=1);

namespace Spindle\Tests\Architecture;

use PHPUnit\Framework\TestCase;
use Spindle\Tests\OwnDirectory;

final class StructureTest extends TestCase
{
    use OwnDirectory;

    public function testLinesOfCodeHaveNoCommentsAndNoBlanks(): void
    {
        $structure = $this->structure(<<<'PHP'
            /** Counts. */
            final class Example
            {
                // a comment

                private string $text = 'two
            lines'; // and a comment
            }
            PHP);

        self::assertSame(['src/Example.php' => 5], $structure->codeLines);
    }

    public function testLongClassesAndFunctionsAreFound(): void
    {
        $body = str_repeat("++\$n;\n", Structure::MAX_FUNCTION_LINES - 2);
        $fits = "function fits(int \$n): void {\n{$body}}";
        $isLong = "function isLong(int \$n): void {\n++\$n;\n{$body}}";
        $filler = str_repeat("\n", Structure::MAX_CLASS_LINES);
        $structure = $this->structure("class Example {\n{$fits}\n{$isLong}\n{$filler}}");

        self::assertSame(
            ['src/Example.php:53 isLong()' => Structure::MAX_FUNCTION_LINES + 1],
            $structure->longFunctions,
        );
        self::assertSame(['src/Example.php'], array_keys($structure->longClasses));
    }

    public function testBranchesAreCounted(): void
    {
        $conditions = implode(' && ', array_fill(0, Structure::MAX_COMPLEXITY - 1, '$n > 1'));
        $structure = $this->structure(<<<PHP
            class Example {
                function fits(int \$n) { if ({$conditions}) { return 1; } }
                function isComplex(int \$n) { if ({$conditions}) { return \$n ?? 1; } }
                function hasCases(int \$n) { return match (true) { {$conditions} => 1, \$n > 2 => 2, default => 3 }; }
            }
            PHP);

        self::assertSame([
            'src/Example.php:4 isComplex()' => Structure::MAX_COMPLEXITY + 1,
            'src/Example.php:5 hasCases()' => Structure::MAX_COMPLEXITY + 1,
        ], $structure->complexFunctions);
    }

    public function testSuspensionsAndClosuresInConstructorsAreFound(): void
    {
        $structure = $this->structure(<<<'PHP'
            class Example {
                function wait(): void { EventLoop::getSuspension()->suspend(); }
                function make(): object { return new Other(fn() => 1, $this->wait(...), 5, static function () {}); }
                function call(): void { other(fn() => 1); new Other($this->wait()); }
            }
            PHP);

        self::assertSame(['src/Example.php' => 1], $structure->suspendingClasses);
        self::assertSame(['src/Example.php:4' => 3], $structure->closureArguments);
    }

    private function structure(string $code): Structure
    {
        mkdir($this->path('src'));
        $this->file('src/Example.php', "<?php\n{$code}\n");

        return Structure::of($this->path());
    }
}
