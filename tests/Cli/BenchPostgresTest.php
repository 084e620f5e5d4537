<?php

declare(strict_types=1);

namespace Spindle\Tests\Cli;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\Attributes\Group;
use PHPUnit\Framework\TestCase;
use Spindle\Tests\Integration\Bench\ReadsSeries;

/** Tests `spindle bench postgres`; see BenchCommandTest for the other benchmarks. */
final class BenchPostgresTest extends TestCase
{
    use ReadsSeries;

    private const QUERIES = [
        'A row by its primary key', 'Units of 20', 'A row updated .* of its own', 'A row updated .* three statements',
        '5,000 rows', 'A bytea parameter',
        'Rows .* streamed', 'Rows .* of arrays', 'Rows .* of strings', 'Rows .* out', 'Waiting for the only connection',
    ];

    private const UNCOMMON = ['pg_sleep\(1\)', 'The longest gap', 'From a cancellation or an end until'];

    protected function setUp(): void
    {
        Program::isPhar() && self::markTestSkipped('A phar contains no benchmarks');
    }

    public function testItComparesThePostgresClientWithAPeerAndChecksEveryResult(): void
    {
        $options = ['-n', '1', '--connections', '2', '--fibers', '3', '--bytes', '4096', '--peers', 'pdo'];

        $this->assertComparesThePostgresClient($options, [...self::QUERIES, ...self::UNCOMMON]);
    }

    /** @return iterable<string, array{list<string>, list<string>}> */
    public static function measurementsOfPostgres(): iterable
    {
        yield 'queries and data' => [
            [
                '-n', '20', '--only', 'select,far,unit,update,rows,parameter,stream,copy,acquire',
                '--connections', '2', '--fibers', '3', '--bytes', '4096',
            ],
            self::QUERIES,
        ];
        $uncommon = ['-n', '1', '--only', 'sleep,gaps,cancel', '--bytes', '4096'];
        yield 'what is out of the common' => [$uncommon, self::UNCOMMON];
    }

    /**
     * @param list<string> $options
     * @param list<string> $titles
     */
    #[DataProvider('measurementsOfPostgres')]
    #[Group('full')]
    public function testItComparesThePostgresClientWithItsPeersAndChecksEveryResult(array $options, array $titles): void
    {
        $this->assertComparesThePostgresClient($options, $titles);
    }

    /**
     * @param list<string> $options
     * @param list<string> $titles
     */
    private function assertComparesThePostgresClient(array $options, array $titles): void
    {
        $json = tempnam(sys_get_temp_dir(), 'bench');
        self::assertIsString($json);
        try {
            $arguments = ['bench', 'postgres', '--rounds', '1', '--limit', '30', '--json', $json, ...$options];
            $process = Program::run($arguments, \dirname(__DIR__, 2));
            self::assertSame(0, $process->getExitCode(), $process->getErrorOutput());
            self::rightSeries($json);
        } finally {
            unlink($json);
        }

        $server = '/^Server +PostgreSQL \d+.*, a temporary cluster$/m';
        self::assertMatchesRegularExpression($server, $process->getOutput());
        foreach ($titles as $title) {
            $row = "/^{$title}.*\n\n(?:\|.*\n)*\| [^|]*[^ |-][^|]*\| +[\\d,.]+ \|/m";
            self::assertMatchesRegularExpression($row, $process->getOutput());
        }
    }
}
