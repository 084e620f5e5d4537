<?php

declare(strict_types=1);

namespace Spindle\Tests\Architecture;

use PHPUnit\Framework\TestCase;

final class EnteredClassesTest extends TestCase
{
    public function testEachMethodAndClosureReportsItsClass(): void
    {
        $name = 'Example' . bin2hex(random_bytes(6));
        $code = <<<PHP
            <?php
            namespace Spindle\\Tests\\Architecture\\Made;
            trait {$name}Trait { public function shared(): int { return 1; } }
            abstract class {$name}Base { abstract public function call(): int; public function inherited(): void {} }
            final class {$name} extends {$name}Base
            {
                use {$name}Trait;
                public function call(): int
                {
                    // The report stands before a comment.
                    \$inner = static function (): int { return 2; };

                    return \$inner() + \$this->shared();
                }
            }
            PHP;
        $reporting = EnteredClasses::reporting($code);
        self::assertSame(substr_count($code, "\n"), substr_count($reporting, "\n"));
        eval(substr($reporting, 5));
        $class = __NAMESPACE__ . "\\Made\\{$name}";
        $example = new $class();

        $calls = EnteredClasses::during(static function () use ($example): void {
            \assert(method_exists($example, 'call') && method_exists($example, 'inherited'));
            self::assertSame(3, $example->call());
            $example->inherited();
        });

        self::assertSame([$class => 3, "{$class}Base" => 1], $calls);
        self::assertSame([], EnteredClasses::during(static fn() => null));
    }
}
