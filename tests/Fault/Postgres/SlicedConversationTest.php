<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Postgres;

use PHPUnit\Framework\Attributes\DataProvider;
use Spindle\Postgres\PostgresConnection;
use Spindle\Postgres\Transaction;
use Spindle\Tests\Fuzz\Command\Splits;
use Spindle\Tests\Postgres\Cluster;
use Spindle\Tests\Postgres\FakeConnection;
use Spindle\Tests\Postgres\FaultyProxy;
use Spindle\Tests\Postgres\UsesCluster;
use Spindle\Tests\Scale;
use Spindle\Tests\TidyTestCase;

use function Amp\delay;

/** Tests that it does not matter where a network splits the server's bytes. */
final class SlicedConversationTest extends TidyTestCase
{
    use ComesToRest;
    use UsesCluster;

    private const LOST = 'Spindle\Postgres\ConnectionLostException: ';
    private const END = 'The connection to PostgreSQL was lost: the server ended it: '
        . 'terminating connection (SQLSTATE 57P01)';
    private const TWO_ROWS = '[{"a":"1","b":"x"},{"a":null,"b":""}]';
    private const TWO_LISTS = '[["1","x"],[null,""]]';
    private const ERROR = 'Spindle\Postgres\QueryException: no such table (SQLSTATE 42P01)';
    private const ERROR_WITH_PLACE = self::ERROR . ' in line 1: an e >>> rror';
    private const DIVISION = 'Spindle\Postgres\QueryException: division by zero (SQLSTATE 22012)';

    public function testAConversationInOnePieceEachIsUnderstood(): void
    {
        self::assertSame(
            self::understood(),
            (new Conversation(static fn(FakeConnection $client, string $bytes) => $client->write($bytes)))->results(),
        );
    }

    #[DataProvider('sizes')]
    public function testAConversationInPiecesIsUnderstoodAsOneThatIsWhole(int $size): void
    {
        self::assertSame(
            self::understood(),
            (new Conversation(
                static fn(FakeConnection $client, string $bytes) => $client->writeInPieces($bytes, $size),
            ))->results(),
        );
    }

    /** @return iterable<string, array{int}> */
    public static function sizes(): iterable
    {
        foreach ([1, 2, 3, 4, 5, 6, 7, 11, 64, 500] as $size) {
            yield "{$size} bytes" => [$size];
        }
    }

    public function testAConversationInPiecesOfAnySizesIsUnderstoodAsOneThatIsWhole(): void
    {
        mt_srand(Scale::seed());
        foreach (Scale::rounds(0.5, 5) as $_) {
            $longest = mt_rand(1, 300);
            $conversation = new Conversation(
                static function (FakeConnection $client, string $bytes) use ($longest): void {
                    foreach (Splits::random($bytes, $longest) as $piece) {
                        $client->write($piece);
                        delay(0);
                    }
                },
            );
            self::assertSame(self::understood(), $conversation->results(), "in pieces of up to {$longest} bytes");
        }
    }

    #[DataProvider('proxies')]
    public function testARealServersAnswersAreTheSameThroughANetworkThatCutsThem(\Closure $cut): void
    {
        $direct = PostgresConnection::connect(Cluster::shared()->tcpDsn(sslmode: 'disable'));
        $proxy = FaultyProxy::before(Cluster::shared());
        $cut($proxy);
        $sliced = PostgresConnection::connect(
            Cluster::shared()->tcpDsn(port: (string) $proxy->port, sslmode: 'disable'),
        );

        self::assertSame(self::work($direct), self::work($sliced));
        unset($direct, $sliced);
        $proxy->stop();
    }

    /** @return iterable<string, array{\Closure(FaultyProxy): void}> */
    public static function proxies(): iterable
    {
        yield 'into bytes' => [static fn(FaultyProxy $proxy) => $proxy->slice(1)];
        yield 'into tens of bytes' => [static fn(FaultyProxy $proxy) => $proxy->slice(10)];
        yield 'anywhere' => [static fn(FaultyProxy $proxy) => $proxy->sliceRandomly(100)];
        yield 'anywhere, into larger pieces' => [static fn(FaultyProxy $proxy) => $proxy->sliceRandomly(5000)];
    }

    /** @return list<mixed> */
    private static function work(PostgresConnection $connection): array
    {
        $connection->executeScript('CREATE TEMPORARY TABLE sliced (id int PRIMARY KEY, name text, data bytea)');
        $copied = $connection->copyFrom(
            'COPY sliced FROM STDIN',
            array_map(static fn(int $id): array => [$id, "name {$id}", str_repeat(\chr($id), $id)], range(1, 100)),
        );

        return [
            $copied,
            $connection->query('SELECT * FROM sliced ORDER BY id')->allNumeric(),
            $connection->query('SELECT * FROM sliced WHERE name = $1', ['name 7'])->all(),
            $connection->query(
                'SELECT 1::int2, 2::int8, 3.5::float8, NULL, true, ARRAY[1, NULL], \'{"a": [1]}\'::jsonb',
            )->allNumeric(),
            iterator_to_array($connection->stream('SELECT id, name FROM sliced ORDER BY id')),
            iterator_to_array($connection->copyTo('COPY (SELECT id, name FROM sliced ORDER BY id) TO STDOUT')),
            Outcome::describe(Outcome::of(static fn(): mixed => $connection->execute('INSERT INTO sliced VALUES (5)'))),
            array_map(Outcome::describe(...), Outcome::ofAll(array_map(
                static fn(int $number): \Closure => static fn(): mixed => $connection->query(
                    $number === 5 ? 'SELECT 1 / 0' : 'SELECT name FROM sliced WHERE id = $1',
                    $number === 5 ? [] : [$number],
                )->value(),
                range(1, 10),
            ))),
            $connection->transaction(
                static fn(Transaction $transaction): int => $transaction->execute('DELETE FROM sliced WHERE id > 50'),
            ),
            $connection->query('SELECT count(*) FROM sliced')->value(),
        ];
    }

    /** @return array<string, string> */
    private static function understood(): array
    {
        return [
            'for the first time' => self::TWO_ROWS,
            'again' => self::TWO_ROWS,
            'and again' => self::TWO_LISTS,
            'with a parameter' => '[{"a":"1","b":"\ufffd\ufffd"},{"a":"D","b":"C\u0000\u0000\u0000\u0004Z"}]',
            'with a parameter again' => '[{"a":"1","b":"\ufffd\ufffd"},{"a":"D","b":"C\u0000\u0000\u0000\u0004Z"}]',
            'large' => json_encode(
                [[md5('1'), md5(str_repeat('large', 200))], [md5(str_repeat('D', 1000)), md5('x')]],
                \JSON_THROW_ON_ERROR,
            ),
            'no rows' => '[]',
            'nothing' => '[]',
            'no columns' => '5',
            'an error' => self::ERROR_WITH_PLACE,
            'an error after rows' => self::DIVISION,
            'an error after rows again' => self::DIVISION,
            'in a pipeline' => json_encode(
                [
                    self::TWO_LISTS,
                    self::ERROR_WITH_PLACE,
                    self::TWO_LISTS,
                    '[]',
                    self::DIVISION,
                    self::TWO_LISTS,
                    '[["last","one"]]',
                ],
                \JSON_THROW_ON_ERROR,
            ),
            'streamed' => json_encode(
                array_map(
                    static fn(int $number): array => ['a' => "row {$number}", 'b' => str_repeat('r', $number)],
                    range(0, 7),
                ),
                \JSON_THROW_ON_ERROR,
            ),
            'copied in' => '100002',
            'copied in, and refused' => self::ERROR,
            'copied in, and refused at the end' => 'Spindle\Postgres\QueryException: extra data (SQLSTATE 22P04)',
            'copied out' => json_encode(["1\n", str_repeat('2', 500) . "\n", ''], \JSON_THROW_ON_ERROR),
            'copied out, and broken off' => 'Spindle\Postgres\QueryException: could not read (SQLSTATE 58030)',
            'a script' => 'null',
            'a script that fails' => 'Spindle\Postgres\QueryException: it is there (SQLSTATE 42710)',
            'a transaction' => json_encode(
                [[['1', 'x'], [null, '']], self::ERROR_WITH_PLACE, [['1', 'x'], [null, '']]],
                \JSON_THROW_ON_ERROR,
            ),
            'heard' => json_encode([
                '7 channel while it was asked for',
                '7 other while it was asked for',
                ...array_map(
                    static fn(int $i): string
                        => "{$i} " . ($i % 3 === 0 ? 'other' : 'channel') . ' ' . str_repeat('x', $i),
                    range(0, 49),
                ),
                '99 nobody heard',
                '8 channel the last',
            ], \JSON_THROW_ON_ERROR),
            'the end' => self::LOST . self::END,
            'after the end' => self::LOST . 'Nothing was sent: ' . self::END . ' <- ' . self::LOST . self::END,
        ];
    }
}
