<?php

declare(strict_types=1);

namespace Spindle\Tests\Architecture;

use PhpParser\Node;
use PhpParser\NodeFinder;
use PhpParser\ParserFactory;
use PHPUnit\Framework\TestCase;

/** Traces of exceptions do not show the arguments of parameters whose values are often secret. */
final class SecretParametersTest extends TestCase
{
    private const NAMES = ['dsn', 'headers', 'password', 'secret', 'secrets', 'url', 'userInfo'];

    /** Types of such values. An object hides its secrets itself. */
    private const TYPES = ['string', 'array', 'mixed'];

    /** Files with such a parameter whose values are not secret. */
    private const HARMLESS = ['Http/Middleware/Cors.php: $headers' /* names */];

    public function testParametersWithSecretsAreMarked(): void
    {
        $root = \dirname(__DIR__, 2) . '/src';
        $unmarked = [];
        foreach (PhpFiles::in($root) as $path) {
            foreach (self::unmarkedIn((string) file_get_contents("{$root}/{$path}")) as $name) {
                $unmarked[] = "{$path}: \${$name}";
            }
        }

        self::assertSame(self::HARMLESS, $unmarked, 'Add #[\SensitiveParameter]');
    }

    public function testUnmarkedParametersAreFound(): void
    {
        $code = <<<'PHP'
            <?php
            class A {
                function a(string $url, #[\SensitiveParameter] string $secret, ?string $dsn, Url|string $password) {}
                function b($headers, Url $url, int $secret, array &$secrets, string $other) {}
            }
            PHP;

        self::assertSame(['url', 'dsn', 'password', 'headers', 'secrets'], self::unmarkedIn($code));
    }

    /** @return list<string> names of parameters */
    private static function unmarkedIn(string $code): array
    {
        $finder = new NodeFinder();
        $statements = (new ParserFactory())->createForHostVersion()->parse($code) ?? [];
        $unmarked = [];
        foreach ($finder->findInstanceOf($statements, Node\Param::class) as $parameter) {
            $name = $parameter->var instanceof Node\Expr\Variable ? $parameter->var->name : null;
            $mayBeSecret = $parameter->type === null || $finder->findFirst(
                $parameter->type,
                static fn(Node $type): bool
                    => $type instanceof Node\Identifier && \in_array($type->name, self::TYPES, true),
            ) !== null;
            if (\in_array($name, self::NAMES, true) && $mayBeSecret && $parameter->attrGroups === []) {
                $unmarked[] = $name;
            }
        }

        return $unmarked;
    }
}
