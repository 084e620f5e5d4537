<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Postgres\Contract;

use Spindle\Postgres\QueryException;
use Spindle\Postgres\UniqueViolationException;
use Spindle\Tests\Conformance\Postgres\ConnectionContract;
use Spindle\Tests\Conformance\Postgres\Observer;
use Spindle\Tests\Conformance\Postgres\Secrets;
use Spindle\Tests\Host;
use Spindle\Tests\Postgres\Cluster;

/**
 * Tests that parameters and passwords only show where they are requested.
 *
 * @phpstan-require-extends ConnectionContract
 */
trait KeepsSecrets
{
    public function testNeitherValuesNorPasswordsShowInMessagesTracesAndDumps(): void
    {
        $table = self::table('a int NOT NULL CHECK (a > 0), b text UNIQUE');
        $shown = Host::call(
            Secrets::class . '::shown',
            [
                Cluster::shared()->dsn(host: '127.0.0.1', application_name: $this->options()->applicationName),
                $table,
                ['a connection', 'a pool', 'a borrowed connection'],
            ],
            environment: ['PGPASSWORD' => Cluster::shared()->password],
            options: [
                '-d',
                'zend.exception_ignore_args=0',
                '-d',
                'zend.exception_string_param_max_len=15',
                '-d',
                'memory_limit=1G',
            ],
        );

        self::assertSame('', \is_string($shown) ? $shown : 'It did not look');
    }

    public function testFieldsThatMayHaveValuesAreReadableExplicitly(): void
    {
        $connection = $this->connect();
        $table = self::table('a int, b text UNIQUE');
        $thrown = self::thrown(
            UniqueViolationException::class,
            static fn() => $connection->query("INSERT INTO {$table} VALUES (1, \$1), (2, \$1)", ['secret']),
        );

        self::assertSame('Key (b)=(secret) already exists.', $thrown->detail);
        $copy = self::thrown(
            QueryException::class,
            static fn() => $connection->copyFrom("COPY {$table} FROM STDIN", ["secret\tb\n"]),
        );
        self::assertSame("COPY {$table}, line 1, column a: \"secret\"", $copy->context);
        self::assertStringNotContainsString('secret', $copy->getMessage());
        foreach ([$thrown, $copy] as $exception) {
            self::assertStringNotContainsString('secret', print_r($exception, true));
            self::assertStringNotContainsString('secret', (string) $exception);
        }
    }

    public function testWhatATriggerSaysOfCopiedDataIsHidden(): void
    {
        $connection = $this->connect();
        $table = self::table('a int, b text');
        Observer::ask(
            "CREATE FUNCTION {$table}_f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
                . "RAISE EXCEPTION 'row of % is bad', NEW.b; END $$",
        );
        Observer::ask("CREATE TRIGGER refuse BEFORE INSERT ON {$table} FOR EACH ROW EXECUTE FUNCTION {$table}_f()");
        foreach (['secret', "sec\tret", str_repeat('secret', 100)] as $value) {
            $thrown = self::thrown(
                QueryException::class,
                static fn() => $connection->copyFrom("COPY {$table} FROM STDIN", [[1, $value]]),
            );
            self::assertMatchesRegularExpression(
                '/^row of …( is bad)? in line 1 \(SQLSTATE P0001\)$/D',
                $thrown->getMessage(),
            );
            self::assertStringContainsString('line 1: "1', (string) $thrown->context);
        }
    }

    public function testTheDetailOfATriggerForALongCopiedRowIsNotInTheMessage(): void
    {
        $connection = $this->connect();
        $table = self::table('a text, b text');
        Observer::ask(
            "CREATE FUNCTION {$table}_f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
                . "RAISE EXCEPTION 'The card is refused' USING DETAIL = NEW.b; END $$",
        );
        Observer::ask("CREATE TRIGGER refuse BEFORE INSERT ON {$table} FOR EACH ROW EXECUTE FUNCTION {$table}_f()");
        $thrown = self::thrown(
            QueryException::class,
            static fn() => $connection->copyFrom("COPY {$table} FROM STDIN", [[str_repeat('x', 200), 'secret']]),
        );

        self::assertSame('The card is refused in line 1 (SQLSTATE P0001)', $thrown->getMessage());
        self::assertSame('secret', $thrown->detail);
    }
}
