<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Postgres;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Spindle\Postgres\Internal\CopyRows;
use Spindle\Postgres\Internal\ErrorPlace;
use Spindle\Postgres\Internal\Pool\KnownStatements;
use Spindle\Postgres\Internal\SessionChanges;
use Spindle\Postgres\Internal\SqlText;
use Spindle\Postgres\Internal\TransactionEndDetector;
use Spindle\Postgres\Internal\Types\Types;
use Spindle\Postgres\PostgresOptions;
use Spindle\Tests\Locale;
use Spindle\Tests\OwnDirectory;

/** SQL in small letters and in capitals means the same, even after setlocale() with a Turkish locale. */
final class SqlInEachLocaleTest extends TestCase
{
    use OwnDirectory;

    /** @return iterable<string, array{\Closure(): bool}> */
    public static function facts(): iterable
    {
        $detects = static function (string $sql): bool {
            $detector = new TransactionEndDetector();
            $detector->recordTag('ROLLBACK');

            return $detector->hasEnded($sql);
        };
        $sharesSession = static function (string $sql): bool {
            $statements = new KnownStatements();
            $statements->learn($sql, 0);

            return $statements->find($sql)?->mayShare === true;
        };
        $copiesColumn = static function (string $sql): bool {
            $query = '';
            CopyRows::of($sql, [[1]], new Types(), static function (string $sql) use (&$query): array {
                $query = $sql;

                return [23];
            })->current();

            return $query === 'SELECT a FROM t';
        };
        yield 'the begin of a transaction' => [static fn(): bool => SessionChanges::beginsTransaction('begin')];
        yield 'the end of a transaction' => [static fn(): bool => SessionChanges::controlsTransaction('commit')];
        yield 'a chain' => [static fn(): bool => SessionChanges::chainsTransactions('commit and chain')];
        yield 'the end of a chain' => [static fn(): bool => $detects('rollback and chain')];
        yield 'a channel' => [static fn(): bool => SessionChanges::mayChangeSession('listen a')];
        yield 'a lock' => [static fn(): bool => SessionChanges::mayChangeSession('SELECT PG_ADVISORY_LOCK(1)')];
        yield 'a time zone' => [static fn(): bool => SessionChanges::mayChangeMeaning('SET TIMEZONE = 1')];
        yield 'a temporary table' => [static fn(): bool => SessionChanges::mayChangeMeaning('select 1 into temp t')];
        yield 'a table of a query' => [static fn(): bool => SessionChanges::mayCreateTable('select 1 into t')];
        yield 'no prepared statements' => [static fn(): bool => SessionChanges::mayChangePrepared('discard all')];
        yield 'an insertion' => [static fn(): bool => SqlText::isRepeatable('insert into t values (1)')];
        yield 'a read' => [static fn(): bool => $sharesSession('with t as (select 1) select * from t')];
        yield 'a write' => [static fn(): bool => !$sharesSession('select 1 into t')];
        yield 'a copy' => [static fn(): bool => SqlText::isCopy('copy t from stdin')];
        yield 'the columns of a copy' => [static fn(): bool => $copiesColumn('copy t (a) from stdin')];
        $advice = static fn(): string => ErrorPlace::describe('SELECT WHERE id IN (?, ?)', 22, '42601');
        yield 'a list of placeholders of PDO' => [static fn(): bool => str_contains($advice(), 'ANY($1)')];
        yield 'a limit with a placeholder' => [
            static fn(): bool => str_contains(ErrorPlace::describe('SELECT 1 LIMIT ?', 16, '42601'), 'not as ?'),
        ];
        yield 'a setting' => [static fn(): bool => (new PostgresOptions(settings: ['IntervalStyle' => 'iso_8601']))
            ->settings !== []];
    }

    /** @param \Closure(): bool $fact */
    #[DataProvider('facts')]
    public function testAStatementIsRecognized(\Closure $fact): void
    {
        $isRecognized = Locale::withDotlessI($this->path(), $fact);
        $isRecognized ?? self::markTestSkipped('The locale can not be loaded');

        self::assertTrue($isRecognized);
    }
}
