<?php

declare(strict_types=1);

namespace Spindle\Tests\Doctrine;

use Amp\DeferredFuture;
use Doctrine\DBAL\Cache\QueryCacheProfile;
use Doctrine\DBAL\Connection;
use Doctrine\DBAL\Driver\API\PostgreSQL\ExceptionConverter;
use Doctrine\DBAL\Driver\Exception as DriverFailure;
use Doctrine\DBAL\DriverManager;
use Doctrine\DBAL\Exception as DoctrineException;
use Doctrine\DBAL\Exception\ConnectionException;
use Doctrine\DBAL\Exception\ConnectionLost;
use Doctrine\DBAL\Exception\DatabaseObjectNotFoundException;
use Doctrine\DBAL\Exception\DeadlockException;
use Doctrine\DBAL\Exception\DriverException;
use Doctrine\DBAL\Exception\ForeignKeyConstraintViolationException;
use Doctrine\DBAL\Exception\InvalidFieldNameException;
use Doctrine\DBAL\Exception\NotNullConstraintViolationException;
use Doctrine\DBAL\Exception\SyntaxErrorException;
use Doctrine\DBAL\Exception\TableExistsException;
use Doctrine\DBAL\Exception\TransactionRolledBack;
use Doctrine\DBAL\Exception\UniqueConstraintViolationException;
use Doctrine\DBAL\ParameterType;
use Doctrine\DBAL\Types\Types;
use PHPUnit\Framework\Attributes\After;
use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\Attributes\RequiresMethod;
use PHPUnit\Framework\Attributes\RequiresPhpExtension;
use PHPUnit\Framework\Attributes\TestWith;
use Psr\Cache\CacheItemInterface;
use Psr\Cache\CacheItemPoolInterface;
use Spindle\Doctrine\Driver;
use Spindle\Doctrine\Exception;
use Spindle\Postgres\CommitUnknownException;
use Spindle\Postgres\ConnectionLostException;
use Spindle\Postgres\Internal\ServerError;
use Spindle\Postgres\JsonMode;
use Spindle\Postgres\PooledConnection;
use Spindle\Postgres\PostgresOptions;
use Spindle\Postgres\PostgresPool;
use Spindle\Postgres\PostgresPoolOptions;
use Spindle\Postgres\ResultTooLargeException;
use Spindle\Postgres\TlsMode;
use Spindle\Tests\Eventually;
use Spindle\Tests\Host;
use Spindle\Tests\Locale;
use Spindle\Tests\OwnDirectory;
use Spindle\Tests\Postgres\Cluster;
use Spindle\Tests\Postgres\UsesCluster;
use Spindle\Tests\TidyTestCase;

use function Amp\async;
use function Amp\Future\await;

/** Tests the driver through Doctrine's API. Doctrine's own functional tests run in a checkout of doctrine/dbal. */
#[RequiresMethod(DriverManager::class, 'getConnection')]
final class DriverTest extends TidyTestCase
{
    use OwnDirectory;
    use UsesCluster;

    private ?PostgresPool $pool = null;

    /** @var list<string> */
    private array $warnings = [];

    #[After(5)]
    protected function closePool(): void
    {
        (new \ReflectionProperty(Driver::class, 'pools'))->setValue(null, []);
        (new \ReflectionProperty(Driver::class, 'registered'))->setValue(null, []);
        gc_collect_cycles();
        $this->pool?->close();
        $this->pool = null;
    }

    public function testQueriesOfFibersRunSideBySide(): void
    {
        $lock = random_int(1, \PHP_INT_MAX);
        $order = [];
        $waiting = $this->connection();
        $waiting->executeStatement('SELECT 1');
        $holder = $this->connection();
        $holder->executeQuery('SELECT pg_advisory_lock(?)', [$lock]);
        $fiber = async(static function () use ($waiting, $lock, &$order): void {
            $waiting->executeQuery('SELECT pg_advisory_lock(?)', [$lock]);
            $order[] = 'waited';
        });
        $other = async(function () use (&$order): void {
            $order[] = $this->connection()->fetchOne('SELECT 7');
        });
        $other->await();
        $holder->executeQuery('SELECT pg_advisory_unlock(?)', [$lock]);
        $fiber->await();

        self::assertSame([7, 'waited'], $order);
    }

    public function testParametersArePassedByPositionAndByName(): void
    {
        $connection = $this->connection();

        self::assertSame(
            ['a' => 'it\'s ?', 'b' => 3, 'c' => ':no', 'd' => null, 'e' => true],
            $connection->fetchAssociative(
                "SELECT ?::text AS a, ?::int AS b, ':no' AS c, ?::text AS d, ?::bool AS e",
                ["it's ?", 3, null, true],
                [3 => ParameterType::BOOLEAN],
            ),
        );
        self::assertSame(
            [['x' => 'v', 'y' => 'v', 'z' => 2]],
            $connection->fetchAllAssociative(
                'SELECT :name::text AS x, CAST(:name AS varchar) AS y, :number::int AS z -- :comment',
                ['name' => 'v', 'number' => 2],
            ),
        );
        $statement = $connection->prepare('SELECT ?::int + 1');
        foreach ([1, 41] as $number) {
            $statement->bindValue(1, $number, ParameterType::INTEGER);
            self::assertSame($number + 1, $statement->executeQuery()->fetchOne());
        }
        self::assertSame([2, 3], $connection->fetchFirstColumn(
            'SELECT n FROM (VALUES (1), (2), (3)) AS v (n) WHERE n IN (?) ORDER BY n',
            [[2, 3]],
            [\Doctrine\DBAL\ArrayParameterType::INTEGER],
        ));
    }

    public function testABooleanThatIsBoundAsAStringIsSentAsByDoctrinesOwnDriver(): void
    {
        self::assertSame(
            ['1', '', '1', true],
            $this->connection()->fetchNumeric('SELECT ?::text, ?::text, ?::json, ?::bool', [true, false, true, true]),
        );
    }

    public function testAMissingParameterAndAnUnknownOneAreRefused(): void
    {
        $connection = $this->connection();
        foreach ([[], [1 => 1, 2 => 2]] as $parameters) {
            $statement = $connection->prepare('SELECT ?::int');
            try {
                foreach ($parameters as $position => $value) {
                    $statement->bindValue($position, $value);
                }
                $statement->executeQuery();
                self::fail('The parameters were accepted');
            } catch (DriverException $failure) {
                self::assertStringContainsString('parameter', $failure->getMessage());
            }
        }
        self::assertSame(1, $connection->fetchOne('SELECT 1'));
    }

    public function testValuesHaveTheFormOfDoctrinesOtherDrivers(): void
    {
        $row = $this->connection()->fetchNumeric(<<<'SQL'
            SELECT true, 7::smallint, 1::bigint, 1.5::float8, 1.50::numeric, '\x00ff'::bytea, '{"b": [1, {}]}'::jsonb,
                '2024-02-29 12:00:00.5'::timestamp, '{1,NULL}'::int[], NULL::text, '[1,3)'::int4range,
                26::oid
            SQL);

        self::assertSame(
            [
                true,
                7,
                1,
                1.5,
                '1.50',
                "\0\xff",
                '{"b": [1, {}]}',
                '2024-02-29 12:00:00.5',
                '{1,NULL}',
                null,
                '[1,3)',
                26,
            ],
            $row,
        );
    }

    public function testDoctrinesTypesReadWhatTheyWrite(): void
    {
        $connection = $this->connection();
        $table = $this->table($connection, 'at timestamptz, data jsonb, bytes bytea, flag bool, price numeric(6, 2)');
        $time = new \DateTimeImmutable('2024-02-29 12:30:00+02:00');
        $bytes = fopen('php://memory', 'r+');
        self::assertIsResource($bytes);
        fwrite($bytes, "\0\x8b'\\");
        rewind($bytes);
        $connection->insert(
            $table,
            ['at' => $time, 'data' => ['a' => [1, null]], 'bytes' => $bytes, 'flag' => false, 'price' => '9.50'],
            [Types::DATETIMETZ_IMMUTABLE, Types::JSON, ParameterType::LARGE_OBJECT, Types::BOOLEAN, Types::DECIMAL],
        );
        $row = $connection->fetchAssociative("SELECT * FROM {$table}");
        self::assertIsArray($row);

        $read = $connection->convertToPHPValue($row['at'], Types::DATETIMETZ_IMMUTABLE);
        self::assertInstanceOf(\DateTimeImmutable::class, $read);
        self::assertSame($time->getTimestamp(), $read->getTimestamp());
        self::assertSame(['a' => [1, null]], $connection->convertToPHPValue($row['data'], Types::JSON));
        self::assertSame("\0\x8b'\\", $row['bytes']);
        self::assertFalse($row['flag']);
        self::assertSame('9.50', $row['price']);
    }

    public function testRowsAreFetchedInEachForm(): void
    {
        $connection = $this->connection();
        $sql = "SELECT * FROM (VALUES (1, 'a'), (2, 'b'), (3, 'c')) AS v (id, name) ORDER BY id";
        $result = $connection->executeQuery($sql);

        self::assertSame([2, 3], [$result->columnCount(), $result->rowCount()]);
        self::assertSame(['id', 'name'], [$result->getColumnName(0), $result->getColumnName(1)]);
        self::assertSame([1, 'a'], $result->fetchNumeric());
        self::assertSame(['id' => 2, 'name' => 'b'], $result->fetchAssociative());
        self::assertSame([[3, 'c']], $result->fetchAllNumeric());
        self::assertFalse($result->fetchOne());
        self::assertSame([1 => 'a', 2 => 'b', 3 => 'c'], $connection->fetchAllKeyValue($sql));
        self::assertSame([1, 2, 3], iterator_to_array($connection->iterateColumn($sql), false));
        $result = $connection->executeQuery($sql);
        $result->free();
        self::assertFalse($result->fetchNumeric());
        $this->expectException(DoctrineException\InvalidColumnIndex::class);
        $connection->executeQuery($sql)->getColumnName(2);
    }

    public function testACursorReadsALongResultInParts(): void
    {
        $connection = $this->connection();
        $connection->beginTransaction();
        $connection->executeStatement('DECLARE many CURSOR FOR SELECT generate_series(1, 2500)');
        $sums = [];
        while (($part = $connection->fetchFirstColumn('FETCH 1000 FROM many')) !== []) {
            $sums[] = \count($part);
        }
        $connection->commit();

        self::assertSame([1_000, 1_000, 500], $sums);
    }

    public function testNestedTransactionsAreSavepoints(): void
    {
        $connection = $this->connection();
        $table = $this->table($connection, 'id int');
        $connection->beginTransaction();
        $connection->insert($table, ['id' => 1]);
        $connection->beginTransaction();
        $connection->insert($table, ['id' => 2]);
        $connection->rollBack();
        $connection->transactional(static fn(Connection $connection) => $connection->insert($table, ['id' => 3]));
        $connection->commit();
        $connection->beginTransaction();
        $connection->insert($table, ['id' => 4]);
        $connection->rollBack();

        self::assertSame([1, 3], $connection->fetchFirstColumn("SELECT id FROM {$table} ORDER BY id"));
    }

    public function testACommitAfterAFailedStatementReportsTheRollback(): void
    {
        $connection = $this->connection();
        $table = $this->table($connection, 'id int PRIMARY KEY');
        $connection->beginTransaction();
        $connection->insert($table, ['id' => 1]);
        try {
            $connection->insert($table, ['id' => 1]);
            self::fail('The same key was inserted twice');
        } catch (UniqueConstraintViolationException) {
        }
        try {
            $connection->commit();
            self::fail('The commit of a failed transaction succeeded');
        } catch (DriverException $failure) {
            self::assertStringContainsString('was rolled back instead of committed', $failure->getMessage());
            self::assertSame('40000', $failure->getSQLState());
        }
        self::assertFalse($connection->isTransactionActive());
        try {
            $connection->transactional(static function (Connection $connection): void {
                try {
                    $connection->executeQuery('SELECT 1 / 0');
                } catch (DriverException) {
                }
            });
            self::fail('The commit of a failed transaction succeeded');
        } catch (TransactionRolledBack $failure) {
            self::assertStringContainsString('was rolled back instead of committed', $failure->getMessage());
        }
        $connection->transactional(static fn(Connection $connection) => $connection->insert($table, ['id' => 2]));

        self::assertSame([2], $connection->fetchFirstColumn("SELECT id FROM {$table}"));
    }

    public function testACommitWithoutAnAnswerIsReportedAsUnknown(): void
    {
        $connection = $this->connection();
        $table = $this->table($connection, 'id int PRIMARY KEY');
        // The deferred trigger ends the server process during the COMMIT.
        $connection->executeStatement("CREATE FUNCTION {$table}_end() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN"
            . " PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NULL; END'");
        $connection->executeStatement("CREATE CONSTRAINT TRIGGER ends AFTER INSERT ON {$table} DEFERRABLE"
            . " INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION {$table}_end()");
        $connection->beginTransaction();
        $connection->insert($table, ['id' => 1]);
        try {
            $connection->commit();
            self::fail('The commit succeeded');
        } catch (ConnectionLost $lost) {
            self::assertInstanceOf(CommitUnknownException::class, $lost->getPrevious()?->getPrevious());
            self::assertStringContainsString('unknown whether the transaction was committed', $lost->getMessage());
        }
    }

    public function testACommitOfAKilledPoolIsReportedAsUnknown(): void
    {
        $connection = $this->connection();
        $table = $this->table($connection, 'id int PRIMARY KEY');
        // The deferred trigger keeps the COMMIT from ending.
        $connection->executeStatement("CREATE FUNCTION {$table}_wait() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN"
            . " PERFORM pg_sleep(30); RETURN NULL; END'");
        $connection->executeStatement("CREATE CONSTRAINT TRIGGER waits AFTER INSERT ON {$table} DEFERRABLE"
            . " INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION {$table}_wait()");
        $inserted = new DeferredFuture();
        $commit = async(static function () use ($connection, $table, $inserted): void {
            $connection->beginTransaction();
            $connection->insert($table, ['id' => 1]);
            $inserted->complete();
            $connection->commit();
        });
        $commit->ignore();
        $inserted->getFuture()->await();
        $this->pool()->kill();
        try {
            $commit->await();
            self::fail('The commit succeeded');
        } catch (ConnectionLost $lost) {
            self::assertInstanceOf(CommitUnknownException::class, $lost->getPrevious()?->getPrevious());
        }
    }

    public function testEachFiberHasItsOwnTransaction(): void
    {
        $table = $this->table($this->connection(), 'id int');
        $inserted = [1 => new DeferredFuture(), 2 => new DeferredFuture()];
        $counted = [1 => new DeferredFuture(), 2 => new DeferredFuture()];
        $counts = await(array_map(
            fn(int $id) => async(function () use ($table, $id, $inserted, $counted): mixed {
                $connection = $this->connection();
                $connection->beginTransaction();
                $connection->insert($table, ['id' => $id]);
                $inserted[$id]->complete();
                $inserted[3 - $id]->getFuture()->await();
                $count = $connection->fetchOne("SELECT count(*) FROM {$table}");
                $counted[$id]->complete();
                $counted[3 - $id]->getFuture()->await();
                $id === 2 ? $connection->rollBack() : $connection->commit();
                $connection->close();

                return $count;
            }),
            [1, 2],
        ));

        self::assertSame([1, 1], array_values($counts));
        self::assertSame([1], $this->connection()->fetchFirstColumn("SELECT id FROM {$table}"));
    }

    public function testAnotherFiberCanNotJoinATransaction(): void
    {
        $connection = $this->connection();
        $connection->beginTransaction();
        try {
            async(static fn() => $connection->fetchOne('SELECT 1'))->await();
            self::fail('The statement became a part of the transaction');
        } catch (\LogicException $failure) {
            self::assertStringContainsString('Create a connection for each fiber', $failure->getMessage());
        }
        try {
            async($connection->getNativeConnection(...))->await();
            self::fail('Another fiber got the connection of the transaction');
        } catch (\LogicException $failure) {
            self::assertStringContainsString('Create a connection for each fiber', $failure->getMessage());
        }
        $connection->rollBack();

        self::assertSame(1, async(static fn() => $connection->fetchOne('SELECT 1'))->await());
    }

    public function testAnotherFiberCanNotJoinATransactionThatIsBeginning(): void
    {
        $connection = $this->connection();
        $connection->fetchOne('SELECT 1');
        $transaction = async(static function () use ($connection): void {
            $connection->beginTransaction();
            $connection->rollBack();
        });
        try {
            async(static fn() => $connection->fetchOne('SELECT 1'))->await();
            self::fail('The statement became a part of the transaction');
        } catch (\LogicException) {
            $transaction->await();
        }

        self::assertSame(1, $connection->fetchOne('SELECT 1'));
    }

    public function testATransactionThatCouldNotBeginHasNoOwner(): void
    {
        $connection = (new Driver())->connect(['driverOptions' => ['pool' => $this->pool()]]);
        Cluster::ask("SELECT pg_terminate_backend({$connection->getNativeConnection()->backendPid()})");
        try {
            async($connection->beginTransaction(...))->await();
            self::fail('The connection was not lost');
        } catch (DriverFailure) {
            $this->expectException(DriverFailure::class);
            $connection->query('SELECT 1');
        }
    }

    /** @return iterable<string, array{string, class-string<\Throwable>}> */
    public static function refusedStatements(): iterable
    {
        yield 'unique' => ['INSERT INTO {table} VALUES (1, 1)', UniqueConstraintViolationException::class];
        yield 'foreign key' => ['INSERT INTO {table} VALUES (2, 9)', ForeignKeyConstraintViolationException::class];
        yield 'not null' => ['INSERT INTO {table} VALUES (3, NULL)', NotNullConstraintViolationException::class];
        yield 'syntax' => ['SELEC 1', SyntaxErrorException::class];
        yield 'table' => ['SELECT * FROM {table}_missing', DatabaseObjectNotFoundException::class];
        yield 'column' => ['SELECT missing FROM {table}', InvalidFieldNameException::class];
        yield 'existing table' => ['CREATE TABLE {table} (id int)', TableExistsException::class];
        yield 'serialization' => [
            "DO 'BEGIN RAISE EXCEPTION SQLSTATE ''40001''; END'",
            DeadlockException::class,
        ];
        yield 'others' => ['SELECT 1 / 0', DriverException::class];
    }

    /** @param class-string<\Throwable> $class */
    #[DataProvider('refusedStatements')]
    public function testFailuresAreDoctrinesOwn(string $sql, string $class): void
    {
        $connection = $this->connection();
        $table = $this->table($connection, 'id int PRIMARY KEY, parent int NOT NULL');
        $connection->executeStatement("ALTER TABLE {$table} ADD FOREIGN KEY (parent) REFERENCES {$table}");
        $connection->insert($table, ['id' => 1, 'parent' => 1]);
        try {
            $connection->executeStatement(str_replace('{table}', $table, $sql));
            self::fail('The statement was accepted');
        } catch (DriverException $failure) {
            self::assertInstanceOf($class, $failure);
            self::assertSame(5, \strlen((string) $failure->getSQLState()));
        }
        self::assertSame(1, $connection->fetchOne("SELECT count(*) FROM {$table}"));
    }

    public function testRowsThatDoNotFitIntoMemoryAreADoctrineFailure(): void
    {
        $connection = $this->connection();
        $result = $connection->executeQuery('SELECT g, md5(g::text) FROM generate_series(1, 200000) g');
        $limit = \ini_get('memory_limit');
        ini_set('memory_limit', (string) (memory_get_usage(true) + (24 << 20)));
        try {
            $result->fetchAllAssociative();
            self::fail('All rows fit');
        } catch (DriverException $failure) {
            self::assertInstanceOf(ResultTooLargeException::class, $failure->getPrevious()?->getPrevious());
        } finally {
            ini_set('memory_limit', $limit);
        }
    }

    public function testALostConnectionIsReplaced(): void
    {
        $connection = $this->connection();
        $native = $connection->getNativeConnection();
        self::assertInstanceOf(PooledConnection::class, $native);
        Cluster::ask("SELECT pg_terminate_backend({$native->backendPid()})");
        unset($native);
        try {
            $connection->fetchOne('SELECT 1');
            self::fail('The connection was not lost');
        } catch (ConnectionLost) {
            self::assertSame(1, $connection->fetchOne('SELECT 1'));
        }
    }

    public function testAConnectionThatAStandbyEndsBecauseOfAConflictIsLost(): void
    {
        $message = 'terminating connection due to conflict with recovery';
        $lost = ConnectionLostException::while($message, error: new ServerError(['C' => '40001', 'M' => $message]));
        $failure = (new ExceptionConverter())->convert(Exception::of($lost), null);

        self::assertInstanceOf(ConnectionLost::class, $failure);
        self::assertStringContainsString($message, $failure->getMessage());
    }

    public function testAServerThatRefusesIsAConnectionFailure(): void
    {
        $connection = DriverManager::getConnection(
            ['driverClass' => Driver::class, 'host' => '127.0.0.1', 'port' => 1, 'user' => 'nobody'],
        );

        $this->expectException(ConnectionException::class);
        $this->expectExceptionMessage('127.0.0.1:1');
        $connection->fetchOne('SELECT 1');
    }

    public function testAFullPoolIsAConnectionFailure(): void
    {
        $first = $this->connection(maxConnections: 1, acquireTimeout: 1.5);
        $first->fetchOne('SELECT 1');
        try {
            $this->connection()->fetchOne('SELECT 2');
            self::fail('The pool has two connections');
        } catch (ConnectionException $failure) {
            self::assertSame('08006', $failure->getSQLState());
            self::assertStringContainsString('Close each Doctrine connection', $failure->getMessage());
        }
    }

    public function testConnectionsInCyclesAreCollectedWhileTheNextOneWaits(): void
    {
        $this->pool(maxConnections: 2);
        foreach (range(1, 5) as $number) {
            self::assertSame($number, $this->queryAndLeaveInACycle($number));
        }

        self::assertSame([], $this->warnings);
    }

    public function testConnectionsInCyclesAreCollectedWhileManyFibersWait(): void
    {
        $this->pool(maxConnections: 2);
        $queries = array_map(fn(int $number) => async($this->queryAndLeaveInACycle(...), $number), range(1, 9));

        self::assertEqualsCanonicalizing(range(1, 9), await($queries));
        self::assertSame([], $this->warnings);
    }

    public function testADestructorThatThrowsWhileCyclesAreCollectedIsLogged(): void
    {
        $this->pool(maxConnections: 1);
        $log = (string) tempnam(sys_get_temp_dir(), 'spindle-');
        $before = (string) ini_set('error_log', $log);
        try {
            $object = new class {
                public ?object $self = null;

                public function __destruct()
                {
                    throw new \RuntimeException('thrown by a destructor');
                }
            };
            $object->self = $object;
            unset($object);
            self::assertSame(1, $this->queryAndLeaveInACycle(1));
            self::assertSame(2, $this->queryAndLeaveInACycle(2));
            self::assertStringContainsString('thrown by a destructor', (string) file_get_contents($log));
        } finally {
            ini_set('error_log', $before);
            unlink($log);
        }
    }

    public function testTextsAndNamesAreQuoted(): void
    {
        $connection = $this->connection();
        $name = 'Us"er; \\ ?';
        foreach (['on', 'off'] as $setting) {
            $connection->executeStatement("SET standard_conforming_strings = {$setting}");
            foreach (["it's", '\\', "\\' OR 1 = 1 --", "a\nb\t", 'é', '$1 ? :a'] as $text) {
                self::assertSame($text, $connection->fetchOne('SELECT ' . $connection->quote($text)));
            }
        }
        $quoted = $connection->quoteSingleIdentifier($name);
        self::assertSame([$name => 1], $connection->fetchAssociative("SELECT 1 AS {$quoted}"));
        $this->expectExceptionMessage('NUL byte');
        $connection->quote("a\0b");
    }

    public function testTheLastIdIsThatOfTheConnection(): void
    {
        $connection = $this->connection();
        $table = $this->table($connection, 'id bigserial, name text');
        $connection->insert($table, ['name' => 'a']);
        $this->connection()->insert($table, ['name' => 'b']);
        self::assertSame(1, $connection->lastInsertId());

        $this->expectException(DoctrineException::class);
        $this->connection()->lastInsertId();
    }

    public function testAPoolThatEncodesStringsAsJsonIsRefused(): void
    {
        $options = PostgresOptions::fromDsn(Cluster::shared()->dsn())->with(['json' => JsonMode::Lossless]);
        $this->pool = new PostgresPool($options);

        $this->expectException(\LogicException::class);
        $this->expectExceptionMessage('JsonMode::Arrays');
        $this->connection()->fetchOne('SELECT 1');
    }

    public function testTheVersionSelectsThePlatform(): void
    {
        $connection = $this->connection();
        self::assertSame(Cluster::ask('SHOW server_version')[0]['server_version'], $connection->getServerVersion());
        self::assertInstanceOf(
            \Doctrine\DBAL\Platforms\PostgreSQLPlatform::class,
            $connection->getDatabasePlatform(),
        );
    }

    public function testAScriptAndAChangedTableAreExecuted(): void
    {
        $connection = $this->connection();
        $table = $this->table($connection, 'value int');
        $insert = "INSERT INTO {$table} (value) VALUES (?)";
        self::assertSame(1, $connection->executeStatement($insert, [1]));
        self::assertSame(2, $connection->executeStatement("INSERT INTO {$table} VALUES (2), (3)"));
        $update = "UPDATE {$table} SET value = 4 WHERE 'a;b' = 'a;b' AND value = 3;";
        self::assertSame(1, $connection->executeStatement($update));
        $connection->executeStatement("DROP TABLE {$table}; CREATE TABLE {$table} (value text); -- end");
        self::assertSame(1, $connection->executeStatement($insert, ['text']));
        $connection->executeStatement("ALTER TABLE {$table} ALTER value TYPE timestamp USING NULL");
        $connection->executeStatement($insert, ['2024-01-01']);

        self::assertSame([null, '2024-01-01 00:00:00'], $connection->fetchFirstColumn("SELECT value FROM {$table}"));
    }

    public function testAScriptAndAChangedTableAreExecutedAsAQuery(): void
    {
        $connection = $this->connection();
        $table = $this->table($connection, 'value int');
        $insert = "INSERT INTO {$table} VALUES (?)";
        $connection->beginTransaction();
        $connection->executeStatement($insert, [1]);
        $connection->executeQuery("DROP TABLE {$table}");
        $connection->executeQuery("CREATE TABLE {$table} (value text)");
        $connection->executeStatement($insert, ['text']);
        $connection->commit();
        $result = $connection->executeQuery("DELETE FROM {$table}; INSERT INTO {$table} VALUES ('a;b');");

        self::assertSame([0, 0], [$result->rowCount(), $result->columnCount()]);
        self::assertSame(['a;b'], $connection->fetchFirstColumn("SELECT value FROM {$table}"));
    }

    public function testTheRowsOfAScriptAreNotSilentlyMissing(): void
    {
        $result = $this->connection()->executeQuery('SELECT 1; SELECT 2');

        $this->expectException(DriverException::class);
        $this->expectExceptionMessage('Execute each statement on its own');
        $result->fetchOne();
    }

    public function testAScriptWithParametersIsRefused(): void
    {
        $this->expectException(DriverException::class);
        $this->expectExceptionMessage('Execute each statement on its own');
        $this->connection()->executeStatement('SELECT ?::int; SELECT 2', [1]);
    }

    public function testTheRowsOfACreatedTableAreCounted(): void
    {
        $connection = $this->connection();
        $sql = 'CREATE TEMPORARY TABLE created AS SELECT generate_series(1, 3)';

        self::assertSame(3, $connection->executeStatement($sql));
        self::assertSame(0, $connection->executeStatement('DROP TABLE created'));
    }

    /** @return iterable<string, array{string}> */
    public static function statementsWithASemicolon(): iterable
    {
        yield 'a string with a backslash' => ["UPDATE {table} SET value = E'\\'; x'"];
        yield 'a comment in a comment' => ["/* a /* b */ ; */ UPDATE {table} SET value = 'a'"];
        yield 'a comment at the end' => ["UPDATE {table} SET value = 'a'; -- end"];
    }

    #[DataProvider('statementsWithASemicolon')]
    public function testTheRowsOfOneStatementWithASemicolonAreCounted(string $sql): void
    {
        $connection = $this->connection();
        $table = $this->table($connection, 'value text');
        $connection->insert($table, ['value' => 'before']);

        self::assertSame(1, $connection->executeStatement(str_replace('{table}', $table, $sql)));
    }

    #[TestWith(['; SELECT 7'])]
    #[TestWith(["-- first\n; /* ; */; SELECT 7;"])]
    public function testAStatementAfterEmptyOnesIsNoScript(string $sql): void
    {
        self::assertSame(7, $this->connection()->fetchOne($sql));
    }

    public function testAScriptWithADollarSignInANameIsExecuted(): void
    {
        $connection = $this->connection();
        $table = $this->table($connection, 'value text');
        $connection->executeStatement(
            "INSERT INTO {$table} SELECT 'a' AS a$\$; INSERT INTO {$table} SELECT 'b' AS b$\$",
        );

        self::assertSame(2, $connection->fetchOne("SELECT count(*) FROM {$table}"));
    }

    public function testABackslashInAStringIsReadAsTheServerReadsIt(): void
    {
        $connection = $this->connection();
        $connection->executeStatement('SET standard_conforming_strings = off');
        self::assertSame("a'; b", $connection->fetchOne("SELECT 'a\\'; b'"));
        self::assertSame(0, $connection->executeStatement("SELECT 'a\\''; SELECT 'b'"));
        $connection->executeStatement('SET standard_conforming_strings = on');
        self::assertSame(0, $connection->executeStatement("SELECT 'a\\'; SELECT 2 -- '"));
        self::assertSame('a\\; b', $connection->fetchOne("SELECT 'a\\' || '; b'"));
    }

    public function testALongScriptIsExecuted(): void
    {
        $connection = $this->connection();
        $table = $this->table($connection, 'value text');
        $quotes = str_repeat("''", 1_000_000);
        $connection->executeStatement("INSERT INTO {$table} VALUES ('{$quotes}'); INSERT INTO {$table} VALUES ('a')");

        self::assertSame([1_000_000, 1], $connection->fetchFirstColumn("SELECT length(value) FROM {$table}"));
    }

    public function testACloseReturnsTheConnectionWithoutItsTransaction(): void
    {
        $connection = $this->connection(maxConnections: 1);
        $table = $this->table($connection, 'id int');
        $connection->beginTransaction();
        $connection->insert($table, ['id' => 1]);
        $connection->close();
        $other = $this->connection();

        self::assertSame(0, $other->fetchOne("SELECT count(*) FROM {$table}"));
        $other->close();
        Eventually::holds(fn(): bool => $this->pool?->statistics()['in_use'] === 0, 'the pool has the connection');
        self::assertCount(1, $this->warnings);
        self::assertStringContainsString('A transaction was left open', $this->warnings[0]);
    }

    public function testAScriptMayEndWithOpenConnectionsAndForkWithThem(): void
    {
        $process = Host::start(self::class . '::endWithOpenConnections', [Cluster::shared()->dsn()]);
        $process->wait();

        self::assertSame(['', 0], [$process->getErrorOutput(), $process->getExitCode()]);
        self::assertStringEndsWith('result: [1,2]', $process->getOutput());
    }

    public function testAScriptMayEndWhileAFiberWaitsForAConnection(): void
    {
        $process = Host::start(self::class . '::endWhileAFiberWaits');
        $process->wait();

        self::assertSame(['', 0], [$process->getErrorOutput(), $process->getExitCode()]);
        self::assertStringEndsWith('result: 1', $process->getOutput());
    }

    /** @return int number of fibers that wait for a connection */
    public static function endWhileAFiberWaits(): int
    {
        // PHP reuses the handles of these older objects, and destroys objects in the order of their handles.
        $objects = array_map(static fn(): \stdClass => new \stdClass(), range(1, 50));
        $GLOBALS['server'] = $server = stream_socket_server('tcp://127.0.0.1:0');
        self::assertNotFalse($server);
        $address = (string) stream_socket_get_name($server, false);
        $pool = new PostgresPool(new PostgresOptions($address, 'test', tls: TlsMode::Disable), 1);
        $parameters = ['driverClass' => Driver::class, 'driverOptions' => ['pool' => $pool]];
        async(static function () use ($parameters, &$objects): void {
            $objects = [];
            DriverManager::getConnection($parameters)->fetchOne('SELECT 1');
        })->ignore();
        Eventually::holds(static fn(): bool => $pool->statistics()['waiting'] === 1, 'the fiber waits');

        return (int) $pool->statistics()['waiting'];
    }

    /** @return list<mixed> results before and after a fork that has ended */
    public static function endWithOpenConnections(string $dsn): array
    {
        $pool = new PostgresPool($dsn);
        $parameters = ['driverClass' => Driver::class, 'driverOptions' => ['pool' => $pool]];
        $holder = new \stdClass();
        [$holder->self, $holder->connection] = [$holder, DriverManager::getConnection($parameters)];
        $before = $holder->connection->fetchOne('SELECT 1');
        if (\function_exists('pcntl_fork')) {
            $pid = pcntl_fork();
            $pid === 0 ? exit(0) : pcntl_waitpid($pid, $status);
        }

        return [$before, $holder->connection->fetchOne('SELECT 2')];
    }

    public function testAShutdownFunctionThatOthersRegisterUsesAnOpenConnection(): void
    {
        $process = Host::start(self::class . '::queryInNestedShutdownFunctions', [Cluster::shared()->dsn()]);
        $process->wait();

        self::assertSame(['', 0], [$process->getErrorOutput(), $process->getExitCode()]);
        self::assertStringEndsWith('at depth 4: 42', $process->getOutput());
    }

    public static function queryInNestedShutdownFunctions(string $dsn): void
    {
        $parameters = ['driverClass' => Driver::class, 'driverOptions' => ['pool' => new PostgresPool($dsn)]];
        $connection = DriverManager::getConnection($parameters);
        $connection->fetchOne('SELECT 1');
        $function = static function () use ($connection): void {
            echo 'at depth 4: ', json_encode($connection->fetchOne('SELECT 42'));
        };
        for ($depth = 4; $depth > 1; --$depth) {
            $function = static fn() => register_shutdown_function($function);
        }
        register_shutdown_function($function);
    }

    public function testShutdownFunctionsUseOpenConnectionsAndLaterDestructorsGetADoctrineException(): void
    {
        $process = Host::start(self::class . '::queryAtTheEnd', [Cluster::shared()->dsn()]);
        $process->wait();

        self::assertSame(['', 0], [$process->getErrorOutput(), $process->getExitCode()]);
        self::assertStringContainsString(
            'at the end: 42, then: ' . DriverException::class . ' The PHP script has ended, and its shutdown functions',
            $process->getOutput(),
        );
        self::assertStringContainsString(
            ', and: ' . Exception::class . ' The PHP script has ended, and its shutdown functions',
            $process->getOutput(),
        );
    }

    public static function queryAtTheEnd(string $dsn): void
    {
        $parameters = ['driverClass' => Driver::class, 'driverOptions' => ['pool' => new PostgresPool($dsn)]];
        $connection = DriverManager::getConnection($parameters);
        $connection->fetchOne('SELECT 1');
        register_shutdown_function(static function () use ($connection): void {
            echo 'at the end: ', json_encode($connection->fetchOne('SELECT 42'));
        });
        $GLOBALS['last'] = new class ($connection) {
            public function __construct(private readonly Connection $connection) {}

            public function __destruct()
            {
                try {
                    $this->connection->fetchOne('SELECT 43');
                } catch (DriverException $failure) {
                    echo ', then: ', $failure::class, ' ', $failure->getPrevious()?->getMessage();
                }
                try {
                    $this->connection->getNativeConnection();
                } catch (DriverFailure $failure) {
                    echo ', and: ', $failure::class, ' ', $failure->getMessage();
                }
            }
        };
    }

    #[RequiresPhpExtension('pcntl')]
    #[RequiresPhpExtension('posix')]
    public function testAStatementWherePhpCanNotSwitchFibersIsADoctrineFailure(): void
    {
        $connection = $this->connection();
        $connection->fetchOne('SELECT 1');
        $failures = [];
        pcntl_signal(\SIGUSR1, function () use ($connection, &$failures): void {
            foreach ([$connection, $this->connection()] as $one) {
                try {
                    $one->executeStatement('SELECT 1; SELECT 2');
                } catch (DriverException $failure) {
                    $failures[] = $failure->getMessage();
                }
            }
        });
        posix_kill((int) getmypid(), \SIGUSR1);
        pcntl_signal_dispatch();
        pcntl_signal(\SIGUSR1, \SIG_DFL);

        self::assertCount(2, $failures);
        self::assertStringContainsString('PHP cannot switch fibers', $failures[0]);
        self::assertSame(2, $connection->fetchOne('SELECT 2'));
    }

    /** @param 'commit'|'rollBack' $end */
    #[RequiresPhpExtension('pcntl')]
    #[RequiresPhpExtension('posix')]
    #[TestWith(['commit'])]
    #[TestWith(['rollBack'])]
    public function testATransactionWhoseEndWasRefusedIsRolledBackBeforeTheNextStatement(string $end): void
    {
        $connection = $this->connection();
        $table = $this->table($connection, 'value text');
        foreach (['insert', 'transaction', 'native'] as $next) {
            $connection->beginTransaction();
            $connection->insert($table, ['value' => 'refused']);
            $refused = self::callInSignalHandler(match ($end) {
                'commit' => $connection->commit(...),
                'rollBack' => $connection->rollBack(...),
            });
            self::assertInstanceOf(DriverException::class, $refused);
            $insert = static fn() => $connection->insert($table, ['value' => $next]);
            match ($next) {
                'insert' => $insert(),
                'transaction' => $connection->transactional($insert),
                'native' => self::native($connection)->execute("INSERT INTO {$table} VALUES ('native')"),
            };
        }

        self::assertSame(
            ['insert', 'transaction', 'native'],
            $this->connection()->fetchFirstColumn("SELECT value FROM {$table}"),
        );
    }

    public function testARollbackThatAnOpenCopyRefusesIsSentBeforeTheNextStatement(): void
    {
        $connection = $this->connection();
        $table = $this->table($connection, 'id int');
        $connection->beginTransaction();
        $connection->insert($table, ['id' => 1]);
        $rows = self::native($connection)->copyTo('COPY (SELECT generate_series(1, 3)) TO STDOUT');
        $rows->current();
        try {
            $connection->rollBack();
            self::fail('ROLLBACK was sent during a COPY');
        } catch (\LogicException) {
            self::assertSame(3, iterator_count($rows));
        }
        $connection->insert($table, ['id' => 2]);

        self::assertSame([2], $this->connection()->fetchFirstColumn("SELECT id FROM {$table}"));
    }

    /** @param 'beginTransaction'|'commit'|'rollBack' $call */
    #[RequiresPhpExtension('pcntl')]
    #[RequiresPhpExtension('posix')]
    #[TestWith(['beginTransaction'])]
    #[TestWith(['commit'])]
    #[TestWith(['rollBack'])]
    public function testATransactionIsNotContinuedAfterAStatementAboutASavepointWasRefused(string $call): void
    {
        $connection = $this->connection();
        $table = $this->table($connection, 'id int');
        $connection->beginTransaction();
        if ($call !== 'beginTransaction') {
            $connection->beginTransaction();
        }
        $connection->insert($table, ['id' => 1]);
        $failure = self::callInSignalHandler(match ($call) {
            'beginTransaction' => $connection->beginTransaction(...),
            'commit' => $connection->commit(...),
            'rollBack' => $connection->rollBack(...),
        });
        self::assertInstanceOf(DriverException::class, $failure);
        foreach ([
            static fn() => $connection->insert($table, ['id' => 2]),
            static fn() => $connection->executeStatement("INSERT INTO {$table} VALUES (3); SELECT 1"),
            $connection->getNativeConnection(...),
            ...($call === 'commit' ? [] : [$connection->commit(...)]), // releases the savepoint
        ] as $refused) {
            try {
                $refused();
                self::fail('The transaction was continued');
            } catch (DriverException|DriverFailure $failure) {
                self::assertStringContainsString('can only be rolled back', $failure->getMessage());
            }
        }
        self::assertCommitReportsTheRollback($connection);
        self::assertFalse($connection->isTransactionActive());

        self::assertSame(0, $connection->fetchOne("SELECT count(*) FROM {$table}"));
    }

    #[RequiresPhpExtension('pcntl')]
    #[RequiresPhpExtension('posix')]
    public function testWithoutAutoCommitATransactionThatCouldNotBeginIsNotCommitted(): void
    {
        $connection = $this->connection();
        $connection->setAutoCommit(false);
        $table = $this->table($connection, 'id int');
        $connection->commit();
        $connection->insert($table, ['id' => 1]);
        self::assertInstanceOf(DriverException::class, self::callInSignalHandler($connection->commit(...)));
        try {
            $connection->insert($table, ['id' => 2]);
            self::fail('The statement was accepted');
        } catch (DriverException $failure) {
            self::assertStringContainsString('can only be rolled back', $failure->getMessage());
        }
        self::assertCommitReportsTheRollback($connection);
        $connection->insert($table, ['id' => 3]);
        $connection->commit();

        self::assertSame([3], $this->connection()->fetchFirstColumn("SELECT id FROM {$table}"));
    }

    private static function assertCommitReportsTheRollback(Connection $connection): void
    {
        try {
            $connection->commit();
            self::fail('The transaction was committed');
        } catch (DriverException $failure) {
            self::assertStringContainsString('was rolled back instead of committed', $failure->getMessage());
        }
    }

    #[RequiresPhpExtension('pcntl')]
    #[RequiresPhpExtension('posix')]
    public function testATransactionThatAStatementHasBegunIsCommittedByALaterCall(): void
    {
        $connection = $this->connection();
        $table = $this->table($connection, 'id int');
        $connection->executeStatement('BEGIN');
        $connection->insert($table, ['id' => 1]);
        $commit = static fn() => $connection->executeStatement('COMMIT');
        self::assertInstanceOf(DriverException::class, self::callInSignalHandler($commit));
        $commit();

        self::assertSame([1], $this->connection()->fetchFirstColumn("SELECT id FROM {$table}"));
    }

    public function testATransactionThatAnotherFiberTriedToEndIsNotContinued(): void
    {
        $connection = $this->connection();
        $table = $this->table($connection, 'id int');
        $connection->beginTransaction();
        $connection->insert($table, ['id' => 1]);
        try {
            async($connection->rollBack(...))->await();
            self::fail('Another fiber has ended the transaction');
        } catch (\LogicException) {
        }
        try {
            $connection->insert($table, ['id' => 2]);
            self::fail('The transaction was continued');
        } catch (DriverException $failure) {
            self::assertStringContainsString('can only be rolled back', $failure->getMessage());
        }
        $connection->transactional(static fn() => $connection->insert($table, ['id' => 3]));

        self::assertSame([3], $this->connection()->fetchFirstColumn("SELECT id FROM {$table}"));
    }

    public function testATransactionIsNotContinuedAfterACommitInSmallLettersWasRefusedInATurkishLocale(): void
    {
        $connection = $this->connection();
        $connection->beginTransaction();
        $isRefused = Locale::withDotlessI($this->path(), static function () use ($connection): bool {
            try {
                async(static fn() => $connection->executeStatement('commit'))->await();
            } catch (\LogicException) {
                return true;
            }

            return false;
        });
        $isRefused ?? self::markTestSkipped('The locale can not be loaded');
        self::assertTrue($isRefused);
        try {
            $connection->fetchOne('SELECT 1');
            self::fail('The transaction was continued');
        } catch (DriverException $failure) {
            self::assertStringContainsString('can only be rolled back', $failure->getMessage());
        }
        $connection->rollBack();
    }

    public function testTheTransactionOfAFiberThatHasEndedCanBeRolledBack(): void
    {
        $connection = $this->connection();
        $table = $this->table($connection, 'id int');
        $fiber = new \Fiber(static function () use ($connection, $table): void {
            $connection->beginTransaction();
            $connection->beginTransaction();
            $connection->insert($table, ['id' => 1]);
        });
        $fiber->start();
        Eventually::holds($fiber->isTerminated(...), 'the fiber has ended');
        try {
            $connection->insert($table, ['id' => 2]);
            self::fail('The statement became a part of the transaction');
        } catch (\LogicException $failure) {
            self::assertStringContainsString('Call rollBack() first', $failure->getMessage());
        }
        while ($connection->isTransactionActive()) {
            $connection->rollBack();
        }
        $connection->insert($table, ['id' => 3]);

        self::assertSame([3], $this->connection()->fetchFirstColumn("SELECT id FROM {$table}"));
    }

    public function testTheTransactionOfATaskThatHasEndedCanBeRolledBack(): void
    {
        $connection = $this->connection();
        $table = $this->table($connection, 'id int');
        $begin = static function () use ($connection, $table): void {
            $connection->beginTransaction();
            $connection->insert($table, ['id' => 1]);
        };
        foreach ([
            static fn(\Closure $call): mixed => $call(),
            static fn(\Closure $call): mixed => async($call)->await(), // in the same fiber, which Revolt uses again
        ] as $run) {
            async($begin)->await();
            try {
                $run(static fn() => $connection->insert($table, ['id' => 2]));
                self::fail('The statement became a part of the transaction');
            } catch (\LogicException $failure) {
                self::assertStringContainsString('Call rollBack() first', $failure->getMessage());
            }
            $run($connection->rollBack(...));
            $run(static fn() => $connection->insert($table, ['id' => 3]));
        }

        self::assertSame([3, 3], $this->connection()->fetchFirstColumn("SELECT id FROM {$table}"));
    }

    public function testACommitOfATransactionWhoseFiberHasEndedRollsBack(): void
    {
        $connection = $this->connection();
        $table = $this->table($connection, 'id int');
        async(static function () use ($connection, $table): void {
            $connection->beginTransaction();
            $connection->insert($table, ['id' => 1]);
        })->await();
        self::assertCommitReportsTheRollback($connection);
        $connection->insert($table, ['id' => 2]);
        $connection->transactional(static fn() => $connection->insert($table, ['id' => 3]));

        self::assertSame([2, 3], $this->connection()->fetchFirstColumn("SELECT id FROM {$table}"));
    }

    /** @param 'commit'|'rollBack' $end */
    #[TestWith(['commit', 'insert'])]
    #[TestWith(['commit', 'transactional'])]
    #[TestWith(['rollBack', 'insert'])]
    #[TestWith(['rollBack', 'transactional'])]
    public function testATransactionWhoseEndWasRefusedIsRolledBackAfterItsFiberHasEnded(string $end, string $next): void
    {
        $connection = $this->connection();
        $table = $this->table($connection, 'id int');
        [$begun, $refused] = [new DeferredFuture(), new DeferredFuture()];
        $owner = async(static function () use ($connection, $table, $begun, $refused): string {
            $connection->beginTransaction();
            $connection->insert($table, ['id' => 1]);
            $begun->complete();
            $refused->getFuture()->await();
            try {
                $connection->insert($table, ['id' => 2]);
            } catch (DriverException $failure) {
                return $failure->getMessage();
            }

            return 'The transaction was continued';
        });
        $begun->getFuture()->await();
        try {
            $end === 'commit' ? $connection->commit() : $connection->rollBack();
            self::fail('Another fiber has ended the transaction');
        } catch (\LogicException $failure) {
            self::assertStringContainsString('Create a connection for each fiber', $failure->getMessage());
        }
        $refused->complete();
        $message = $owner->await();
        self::assertIsString($message);
        self::assertStringContainsString('Begin another transaction', $message);
        $insert = static fn() => $connection->insert($table, ['id' => 3]);
        $next === 'insert' ? $insert() : $connection->transactional($insert);

        self::assertSame([3], $this->connection()->fetchFirstColumn("SELECT id FROM {$table}"));
    }

    public function testATransactionThatCouldNotBeginCanBeRolledBackAfterTheOtherFiberHasEnded(): void
    {
        $connection = $this->connection();
        $table = $this->table($connection, 'id int');
        [$begun, $refused] = [new DeferredFuture(), new DeferredFuture()];
        $owner = async(static function () use ($connection, $begun, $refused): void {
            $connection->beginTransaction();
            $begun->complete();
            $refused->getFuture()->await();
        });
        $begun->getFuture()->await();
        foreach ([$connection->rollBack(...), $connection->beginTransaction(...)] as $call) {
            try {
                $call();
                self::fail('Another fiber has a transaction open');
            } catch (\LogicException) {
            }
        }
        $refused->complete();
        $owner->await();
        try {
            $connection->insert($table, ['id' => 1]);
            self::fail('The statement was executed outside of the transaction that Doctrine counts');
        } catch (\LogicException $failure) {
            self::assertStringContainsString('Call rollBack() first', $failure->getMessage());
        }
        $connection->rollBack();
        $connection->insert($table, ['id' => 2]);

        self::assertSame([2], $this->connection()->fetchFirstColumn("SELECT id FROM {$table}"));
    }

    public function testAShutdownFunctionRollsBackAfterAnExitInAFiber(): void
    {
        $process = Host::start(self::class . '::exitInATransaction', [Cluster::shared()->dsn()]);
        $process->wait();

        self::assertSame(['', 4], [$process->getErrorOutput(), $process->getExitCode()]);
        self::assertStringEndsWith('after the rollback: 42', $process->getOutput());
    }

    public static function exitInATransaction(string $dsn): void
    {
        $parameters = ['driverClass' => Driver::class, 'driverOptions' => ['pool' => new PostgresPool($dsn)]];
        $connection = DriverManager::getConnection($parameters);
        register_shutdown_function(static function () use ($connection): void {
            $connection->rollBack();
            echo 'after the rollback: ', json_encode($connection->fetchOne('SELECT 42'));
        });
        async(static function () use ($connection): never {
            $connection->beginTransaction();
            exit(4);
        })->await();
    }

    public function testConnectionsWithTheSameParametersShareAPool(): void
    {
        $options = PostgresOptions::fromDsn(Cluster::shared()->dsn());
        $parameters = [
            'driverClass' => Driver::class,
            'host' => $options->hosts[0]->host,
            'port' => $options->hosts[0]->port,
            'user' => $options->user,
            'dbname' => $options->database,
            'application_name' => 'shares',
            'driverOptions' => ['maxConnections' => 1],
        ];
        $pids = [];
        foreach ([[], ['charset' => 'utf8', 'driverOptions' => ['maxConnections' => '1']]] as $others) {
            $connection = DriverManager::getConnection([...$parameters, ...$others]);
            $pids[] = $connection->fetchOne('SELECT pg_backend_pid()');
            self::assertSame('shares', $connection->fetchOne("SELECT current_setting('application_name')"));
            $connection->close();
        }

        self::assertSame($pids[0], $pids[1]);
    }

    public function testTheParametersAreThoseOfLibpq(): void
    {
        $options = PostgresOptions::fromDsn(Cluster::shared()->tcpDsn());
        $port = $options->hosts[0]->port;
        $parameters = [
            'driverClass' => Driver::class,
            'host' => '127.0.0.1',
            'port' => $port,
            'user' => $options->user,
            'password' => (string) $options->password(),
            'application_name' => "it's \\ new",
        ];
        foreach ([
            [],
            ['host' => '[127.0.0.1]', 'sslmode' => 'allow', 'gssencmode' => 'disable'],
            ['host' => '127.0.0.1,127.0.0.1', 'port' => "1,{$port}"],
            ['host' => 'db.invalid', 'hostaddr' => '127.0.0.1', 'sslmode' => 'prefer', 'dbname' => ''],
        ] as $others) {
            // @phpstan-ignore argument.type (Doctrine declares no lists of ports)
            $connection = DriverManager::getConnection([...$parameters, ...$others]);
            self::assertSame(
                ["it's \\ new", 'postgres'],
                $connection->fetchNumeric("SELECT current_setting('application_name'), current_database()"),
            );
            $connection->close();
        }
    }

    #[TestWith(['sslmode', 'foo', "'sslmode' must be disable or prefer or require or verify-ca or verify-full"])]
    #[TestWith(['sslcrl', '/revoked.pem', "The key 'sslcrl' in the PostgreSQL DSN is unknown"])]
    #[TestWith(['port', 'many', 'must be a number from 1 to 65535, not "many"'])]
    #[TestWith(['port', '1,2', 'the lists host, hostaddr and port must have the same length'])]
    #[TestWith(['sslrootcert', '/missing.pem', "The file '/missing.pem' of the option tlsCaFile does not exist"])]
    public function testAParameterWithAnInvalidValueIsADoctrineFailure(
        string $name,
        string $value,
        string $message,
    ): void {
        $connection = DriverManager::getConnection(
            // @phpstan-ignore argument.type (a configuration file may contain any value)
            ['driverClass' => Driver::class, 'host' => 'localhost', 'password' => 'secret', $name => $value],
        );
        try {
            $connection->fetchOne('SELECT 1');
            self::fail('The value was accepted');
        } catch (DriverException $failure) {
            self::assertStringContainsString($message, $failure->getMessage());
            self::assertStringNotContainsString('secret', $failure->getMessage());
        }
    }

    public function testTheResultCacheDistinguishesRegisteredPools(): void
    {
        $keys = [];
        $cache = self::createStub(CacheItemPoolInterface::class);
        $cache->method('getItem')->willReturnCallback(static function (string $key) use (&$keys): CacheItemInterface {
            $keys[] = $key;

            return self::createStub(CacheItemInterface::class);
        });
        foreach (['shop', 'log', 'shop'] as $name) {
            Driver::registerPool($name, $this->pool());
            $connection = DriverManager::getConnection([
                'driverClass' => Driver::class,
                'driverOptions' => ['pool' => $name],
            ]);
            $result = $connection->executeQuery('SELECT 1', qcp: new QueryCacheProfile(60, resultCache: $cache));
            self::assertSame(1, $result->fetchOne());
        }

        self::assertSame($keys[0], $keys[2]);
        self::assertNotSame($keys[0], $keys[1]);
    }

    /** @param array<string, mixed> $options */
    #[TestWith([['pool' => 1], 'PostgresPool or the name of one, not int'])]
    #[TestWith([['pool' => 'postgres://localhost'], 'No PostgresPool is registered under the name'])]
    #[TestWith([['maxConnections' => 'many'], 'an integer, not a string that is no integer'])]
    #[TestWith([['maxConnections' => 1.5], 'an integer, not float'])]
    public function testADriverOptionOfAnotherTypeIsRefused(array $options, string $message): void
    {
        $connection = DriverManager::getConnection(['driverClass' => Driver::class, 'driverOptions' => $options]);

        $this->expectException(\InvalidArgumentException::class);
        $this->expectExceptionMessage($message);
        $connection->fetchOne('SELECT 1');
    }

    /** @param array<string, mixed> $parameters */
    #[TestWith([['driverOptions' => ['pool_size' => 5]], 'The driver option "pool_size" is unknown. "pool" is a '])]
    #[TestWith([['driverOptions' => ['statment_timeout' => 5]], 'Create a PostgresPool to set other options'])]
    #[TestWith([['driverOptions' => [2 => 5]], 'The driver option "2" is unknown'])]
    #[TestWith([['maxConnections' => 5], 'The parameter "maxConnections" must be one of the "driverOptions"'])]
    #[TestWith([['pool' => 'shop'], 'The parameter "pool" must be one of the "driverOptions"'])]
    public function testAnUnknownDriverOptionIsRefused(array $parameters, string $message): void
    {
        // @phpstan-ignore argument.type (a configuration file may contain any parameter)
        $connection = DriverManager::getConnection(['driverClass' => Driver::class, ...$parameters]);

        $this->expectException(\InvalidArgumentException::class);
        $this->expectExceptionMessage($message);
        $connection->fetchOne('SELECT 1');
    }

    /** @param array<string, mixed> $options */
    #[TestWith([['maxConnections' => 'postgres://shop:secret@db/shop'], '"maxConnections" must be an integer'])]
    #[TestWith([['postgres://shop:secret@db/shop' => 1], 'A driver option is unknown. "pool" is a PostgresPool'])]
    #[TestWith([["secret\n" => 1], 'A driver option is unknown'])]
    #[TestWith([['' => 1], 'A driver option is unknown'])]
    public function testAWrongDriverOptionIsNotShownIfItMayBeAUrl(array $options, string $message): void
    {
        $connection = DriverManager::getConnection(['driverClass' => Driver::class, 'driverOptions' => $options]);

        $thrown = null;
        try {
            $connection->fetchOne('SELECT 1');
        } catch (\InvalidArgumentException $thrown) {
            // The assertions below examine this exception.
        }
        self::assertStringContainsString($message, (string) $thrown?->getMessage());
        self::assertStringNotContainsString('secret', (string) $thrown?->getMessage());
    }

    public function testParametersOfOthersAreAccepted(): void
    {
        $connection = DriverManager::getConnection([
            'driverClass' => Driver::class,
            'driverOptions' => ['pool' => $this->pool()],
            'serverVersion' => '15',
            'charset' => 'utf8',
            'defaultTableOptions' => [],
            'persistent' => true,
            'use_savepoints' => true,
        ]);

        self::assertSame(1, $connection->fetchOne('SELECT 1'));
    }

    /** Calls a function where PHP can't switch fibers, and returns the exception that the function has thrown. */
    private static function callInSignalHandler(\Closure $function): ?\Throwable
    {
        $thrown = null;
        pcntl_signal(\SIGUSR1, static function () use ($function, &$thrown): void {
            try {
                $function();
            } catch (\Throwable $thrown) {
            }
        });
        posix_kill((int) getmypid(), \SIGUSR1);
        pcntl_signal_dispatch();
        pcntl_signal(\SIGUSR1, \SIG_DFL);

        return $thrown;
    }

    private static function native(Connection $connection): PooledConnection
    {
        $native = $connection->getNativeConnection();
        self::assertInstanceOf(PooledConnection::class, $native);

        return $native;
    }

    /** Leaves an open connection in a cycle, as a request that drops its EntityManager does. */
    private function queryAndLeaveInACycle(int $number): mixed
    {
        $cycle = new \stdClass();
        [$cycle->self, $cycle->connection] = [$cycle, $this->connection()];

        return $cycle->connection->fetchOne('SELECT ?::int', [$number]);
    }

    private function connection(int $maxConnections = 8, float $acquireTimeout = 5.0): Connection
    {
        return DriverManager::getConnection([
            'driverClass' => Driver::class,
            'driverOptions' => ['pool' => $this->pool($maxConnections, $acquireTimeout)],
        ]);
    }

    private function pool(int $maxConnections = 8, float $acquireTimeout = 5.0): PostgresPool
    {
        return $this->pool ??= new PostgresPool(
            Cluster::shared()->dsn(),
            $maxConnections,
            new PostgresPoolOptions(acquireTimeout: $acquireTimeout, onWarning: function (string $warning): void {
                $this->warnings[] = $warning;
            }),
        );
    }

    /** Creates a table that no other test uses, and returns its name. */
    private function table(Connection $connection, string $columns): string
    {
        $name = 'doctrine_' . bin2hex(random_bytes(6));
        $connection->executeStatement("CREATE TABLE {$name} ({$columns})");

        return $name;
    }
}
