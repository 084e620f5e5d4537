<?php

declare(strict_types=1);

namespace Spindle\Tests\Docs\Site;

use PHPUnit\Framework\TestCase;
use Spindle\Site\Reference\ApiReference;
use Spindle\Site\Reference\ErrorIndex;
use Spindle\Site\Reference\WrittenPages;
use Spindle\Tests\Docs\Workplace;

final class WrittenPagesTest extends TestCase
{
    public function testThePagesAreMadeFromTheCode(): void
    {
        foreach (WrittenPages::all(Workplace::project()) as $path => $content) {
            self::assertStringEqualsFile(
                Workplace::project() . "/{$path}",
                $content,
                'Run php tools/site/reference.php and commit the pages',
            );
        }
    }

    public function testEveryExceptionHasAdvice(): void
    {
        $snapshot = (string) file_get_contents(Workplace::project() . '/public-api.txt');
        $index = new ErrorIndex((new ApiReference($snapshot))->names);

        self::assertSame([], $index->withoutAdvice(), 'Add what to do to ErrorIndex::ADVICE');
    }

    public function testMetricsHaveATypeLabelsAndAMeaning(): void
    {
        $page = WrittenPages::all(Workplace::project())['docs/reference/metrics.md'];

        self::assertStringContainsString(
            '| `spindle_http_requests_total` | counter | `status` | Requests that were answered. |',
            $page,
        );
        self::assertStringContainsString("\n### PostgresPool\n", $page);
        self::assertStringContainsString('- `idle`: connections that are open and not in use', $page);
    }
}
