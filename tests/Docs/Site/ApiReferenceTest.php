<?php

declare(strict_types=1);

namespace Spindle\Tests\Docs\Site;

use PHPUnit\Framework\TestCase;
use Spindle\Command\CommandPool;
use Spindle\Http\Response;
use Spindle\Postgres\Isolation;
use Spindle\Postgres\PostgresOptions;
use Spindle\Postgres\UniqueViolationException;
use Spindle\Remote\QueueFullException;
use Spindle\Site\Markdown;
use Spindle\Site\Reference\ApiReference;
use Spindle\Site\Reference\ClassNames;
use Spindle\Tests\Docs\Workplace;

final class ApiReferenceTest extends TestCase
{
    private static ApiReference $reference;

    /** @var array<string, string> Markdown by path */
    private static array $pages;

    public static function setUpBeforeClass(): void
    {
        self::$reference = new ApiReference((string) file_get_contents(Workplace::project() . '/public-api.txt'));
        self::$pages = array_column(self::$reference->pages(), 'markdown', 'path');
    }

    public function testEveryPublicClassHasAPageWithADescriptionAndItsMethods(): void
    {
        $listed = preg_grep('/^\S.* Spindle\\\\/', explode("\n", (string) file_get_contents(
            Workplace::project() . '/public-api.txt',
        )));
        self::assertCount(\count((array) $listed), self::$reference->names->classes);
        foreach (self::$reference->names->classes as $class) {
            $page = self::pageOf($class);
            self::assertNotSame('', (new Markdown($page))->introduction(), $class);
            foreach ((new \ReflectionClass($class))->getMethods(\ReflectionMethod::IS_PUBLIC) as $method) {
                $isShown = $method->getDeclaringClass()->getName() === $class
                    && !str_starts_with($method->getName(), '__')
                    && !$method->isInternal()
                    && !str_contains((string) $method->getDocComment(), '@internal');
                if ($isShown) {
                    self::assertStringContainsString("\n### {$method->getName()}()\n", $page, $class);
                }
            }
        }
    }

    public function testEveryLinkLeadsToAPageAndAHeading(): void
    {
        $targets = [];
        foreach (self::$pages as $path => $page) {
            $targets[] = "/{$path}";
            foreach ((new Markdown($page))->headings() as ['slug' => $slug]) {
                $targets[] = "/{$path}#{$slug}";
            }
        }
        $links = [];
        foreach (self::$pages as $page) {
            (new Markdown($page))->withLinks(static function (string $link) use (&$links): string {
                $links[] = $link;

                return $link;
            });
        }
        self::assertSame([], preg_grep('/^https:/', array_diff($links, $targets), PREG_GREP_INVERT));
    }

    public function testAMethodIsDescribedWithItsTypesAndErrors(): void
    {
        $page = self::pageOf(CommandPool::class);

        self::assertStringContainsString(
            "### run()\n\n```php\npublic function run(\n    iterable \$commands,\n"
                . "    ?Cancellation \$cancellation = null,\n): Generator\n```\n\nRuns the commands. ",
            $page,
        );
        self::assertStringContainsString("\n| `\$commands` | `iterable<TKey, Command>` |  |\n", $page);
        self::assertStringContainsString("\nReturns `Generator<TKey, CommandResult, mixed, RunSummary>`\n", $page);
        self::assertStringContainsString(
            "\n- [`LauncherException`](/reference/api/LauncherException.md) when a launcher can't be started",
            $page,
        );
        self::assertStringContainsString("\n- `ValueError` when the concurrency is below 1 or above", $page);
    }

    public function testPropertiesConstantsAndMessagesAreDescribed(): void
    {
        self::assertMatchesRegularExpression(
            '/^\| `\$hosts` \| .* \| .+ \|$/m',
            self::pageOf(PostgresOptions::class),
        );
        self::assertMatchesRegularExpression('/^\| `Serializable` \| `\'.+\'` \|/m', self::pageOf(Isolation::class));
        self::assertStringContainsString(
            '- `The queue {$queue} was full: it had {$limit} jobs without an outcome',
            self::pageOf(QueueFullException::class),
        );
        self::assertStringContainsString(
            "\nFurther properties and methods are those of"
                . ' [`QueryException`](/reference/api/Postgres/QueryException.md).',
            self::pageOf(UniqueViolationException::class),
        );
    }

    public function testOnePageHasAllOptionsWithTheirDefaults(): void
    {
        $page = self::$pages['reference/options.md'];

        self::assertStringContainsString(
            "\n| `gracePeriod` | `float` | `2.0` | seconds between SIGTERM and SIGKILL ",
            $page,
        );
        self::assertStringContainsString("\n## PostgresPoolOptions\n", $page);
    }

    public function testNamesInPagesHaveLinks(): void
    {
        $names = self::$reference->names;
        $path = '/' . ClassNames::page(Response::class);

        self::assertSame($path, $names->link('Response'));
        self::assertSame("{$path}#json", $names->link('Response::json($value)'));
        self::assertSame("{$path}#new-response", $names->link('Response::__construct()'));
        self::assertSame($path, $names->link('Spindle\Http\Response'));
        self::assertNull($names->link('Response::missing()'));
        self::assertNull($names->link('ConnectionLostException'), 'two classes have this name');
        self::assertNull($names->link('json_encode()'));
        self::assertNull($names->link('echo 1'));
    }

    /** @param class-string $class */
    private static function pageOf(string $class): string
    {
        return self::$pages[ClassNames::page($class)];
    }
}
