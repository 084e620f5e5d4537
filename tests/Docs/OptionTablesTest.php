<?php

declare(strict_types=1);

namespace Spindle\Tests\Docs;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Spindle\Command\CommandPoolOptions;
use Spindle\Remote\JobRetryPolicy;
use Spindle\Remote\RemoteOptions;
use Spindle\Worker\WorkerPoolOptions;

/** The tables of options in the pages have each option of their class, with its default. */
final class OptionTablesTest extends TestCase
{
    /** @return iterable<string, array{class-string, string}> class, page */
    public static function tables(): iterable
    {
        yield 'commands' => [CommandPoolOptions::class, 'how-to/run-commands-from-php.md'];
        yield 'tasks' => [WorkerPoolOptions::class, 'how-to/run-callables.md'];
        yield 'remote tasks' => [RemoteOptions::class, 'reference/remote.md'];
        yield 'retries' => [JobRetryPolicy::class, 'reference/remote.md'];
    }

    /** @param class-string $class */
    #[DataProvider('tables')]
    public function testATableHasEachOptionWithItsDefault(string $class, string $page): void
    {
        $defaults = self::defaults($class);
        $rows = self::rows((new \ReflectionClass($class))->getShortName(), $page);

        self::assertEqualsCanonicalizing(array_keys($defaults), array_keys($rows));
        foreach ($defaults as $name => $default) {
            $number = preg_replace('/,|(?<=\d) .*/', '', $rows[$name]);
            if (\is_int($default) || \is_float($default)) {
                self::assertSame((string) $default, $number, $name);
            } elseif (\is_bool($default)) {
                self::assertSame(var_export($default, true), $rows[$name], $name);
            }
        }
    }

    /**
     * @param class-string $class
     *
     * @return array<string, mixed> by name
     */
    private static function defaults(string $class): array
    {
        $defaults = [];
        foreach ((new \ReflectionMethod($class, '__construct'))->getParameters() as $parameter) {
            $defaults[$parameter->getName()] = $parameter->getDefaultValue();
        }

        return $defaults;
    }

    /** @return array<string, string> defaults by name, as in the table of the class */
    private static function rows(string $class, string $page): array
    {
        $text = (string) file_get_contents(__DIR__ . "/../../docs/{$page}");
        [, $table] = [...explode("\n| `{$class}` | meaning | default |\n|---|---|---|\n", $text, 2), ''];
        [$table] = explode("\n\n", $table, 2);
        $rows = [];
        foreach (explode("\n", $table) as $row) {
            if (preg_match('/^\| `(\w+)` \| .+ \| (.+) \|$/D', $row, $match) === 1) {
                $rows[$match[1]] = $match[2];
            }
        }

        return $rows;
    }
}
