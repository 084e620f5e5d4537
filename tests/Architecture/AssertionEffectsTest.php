<?php

declare(strict_types=1);

namespace Spindle\Tests\Architecture;

use PHPUnit\Framework\TestCase;

/** With the php.ini for production, PHP does not evaluate what assert() gets. So nothing may depend on it. */
final class AssertionEffectsTest extends TestCase
{
    private const FOLDERS = ['src', 'tests', 'integrations', 'examples', 'bench', 'tools'];

    public function testNoAssertionHasAnEffect(): void
    {
        $root = \dirname(__DIR__, 2);
        $found = [];
        foreach (self::FOLDERS as $folder) {
            foreach (PhpFiles::in("{$root}/{$folder}") as $path) {
                foreach (AssertionEffects::linesIn((string) file_get_contents("{$root}/{$folder}/{$path}")) as $line) {
                    $found[] = "{$folder}/{$path}:{$line}";
                }
            }
        }

        self::assertSame([], $found, 'Call the function before assert(), or throw an exception');
    }

    public function testEffectsAreFound(): void
    {
        $code = <<<'PHP'
            <?php
            assert($file !== false && is_string($name) && \method_exists($object, 'call'));
            \assert(flock($file, LOCK_EX));
            assert(
                $file !== false
                    && $this->open(),
            );
            assert(Example::call());
            assert(++$count > 1);
            assert(($count += 1) > 1);
            assert($file = false);
            self::assert(flock($file, LOCK_EX));
            PHP;

        self::assertSame([3, 6, 8, 9, 10, 11], AssertionEffects::linesIn($code));
    }
}
