<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Postgres;

use Amp\TimeoutCancellation;
use Spindle\Postgres\PostgresConnection;
use Spindle\Postgres\PostgresLink;
use Spindle\Postgres\PostgresOptions;
use Spindle\Postgres\PostgresPool;
use Spindle\Postgres\PostgresPoolOptions;
use Spindle\Postgres\Range;
use Spindle\Postgres\Transaction;
use Spindle\Tests\Async;

use function Amp\delay;

/**
 * Makes every operation fail with a secret in it, and searches for the secret. Needs a process whose traces have
 * arguments.
 */
final class Secrets
{
    /** Short enough for a trace to show all of it. */
    private const SECRET = 'hunter2';

    /** Not a parameter of the failing calls, because a trace would show it as an argument. */
    private static ?PostgresLink $link = null;

    /**
     * @param string $dsn DSN without the password, which is in the environment
     * @param list<string> $kinds kinds of links: 'a connection', 'a pool', 'a borrowed connection'
     *
     * @return string outputs that show the secret; expected to be empty
     */
    public static function shown(string $dsn, string $table, array $kinds): string
    {
        \assert(\ini_get('zend.exception_ignore_args') === '0');
        $options = PostgresOptions::fromDsn($dsn);
        $password = (string) $options->password();
        $shown = [];
        $links = [
            'a connection' => static fn(): PostgresLink => PostgresConnection::connect($options),
            'a pool' => static fn(): PostgresLink => new PostgresPool($options, 1),
            'a borrowed connection' => static fn(): PostgresLink
                => (new PostgresPool($options, 1, new PostgresPoolOptions(onWarning: static fn() => null)))->acquire(),
        ];
        foreach ($kinds as $name) {
            $open = $links[$name];
            foreach (self::failing($table) as $index => $verb) {
                self::$link = $open();
                $thrown = self::thrown($verb);
                self::$link = null;
                $shown = [...$shown, ...self::look("what no. {$index} of {$name} throws", $thrown, $password)];
            }
            $link = $open();
            $link->query('SELECT $1::text', [self::SECRET]);
            $shown = [...$shown, ...self::look($name, $link, $password)];
            $future = Async::run(static fn() => $link->query('SELECT pg_sleep(0.1), $1::text', [self::SECRET]));
            delay(0.01);
            $shown = [...$shown, ...self::look("{$name} in use", $link, $password)];
            $future->await();
            unset($link);
        }

        return implode("\n", [...$shown, ...self::ofConnecting($options, $password)]);
    }

    /**
     * Returns calls that each throw.
     *
     * @return list<\Closure(): mixed>
     */
    private static function failing(string $table): array
    {
        return [
            static fn() => self::link()->query('SELECT $1::text::int', [self::SECRET]),
            static fn() => self::link()->query("INSERT INTO {$table} VALUES (1, \$1), (2, \$1)", [self::SECRET]),
            static fn() => self::link()->query("INSERT INTO {$table} VALUES (NULL, \$1)", [self::SECRET]),
            static fn() => self::link()->query("INSERT INTO {$table} VALUES (-1, \$1)", [self::SECRET]),
            static fn() => self::link()->execute('SELECT $1::int', [[self::SECRET]]),
            static fn() => self::link()->execute('SELECT $1::text', [self::SECRET . "\0"]),
            static fn() => self::link()->query('SELECT $1::text::jsonb', ['{"' . self::SECRET]),
            static fn() => self::link()->query('SELECT $1::int4range', [new Range([self::SECRET])]),
            static fn() => self::link()->query('SELECT $1::jsonb', [['a' => \INF, 'b' => self::SECRET]]),
            static fn() => self::link()->query('SELECT $1::int[]', [[[self::SECRET], 1]]),
            static fn() => self::link()->query('SELECT $1::text', [self::SECRET, 1]),
            static fn() => self::link()->query('SELECT $1::int, $2::int', [1]),
            static fn() => self::link()->query('SELECT $1::text; SELECT 2', [self::SECRET]),
            // @phpstan-ignore argument.type
            static fn() => self::link()->query('SELECT $1::text', ['a' => self::SECRET]),
            static fn() => self::link()->query('SELECT 1', array_fill(0, 65_536, self::SECRET)),
            static fn() => self::link()->query("SELECT \$1\0", [self::SECRET]),
            static fn() => self::link()->query('SELECT $1::text FROM generate_series(1, 2)', [self::SECRET])->one(),
            static fn() => self::link()->query('SELECT $1::text AS a', [self::SECRET])->mapTo(Person::class),
            static fn() => self::link()->query(
                "SELECT 1 AS id, 'Ada' AS first_name, \$1::text AS kind",
                [self::SECRET],
            )->mapTo(Person::class),
            static fn()
                => self::link()->query(
                    'SELECT pg_sleep(1000), $1::text',
                    [self::SECRET],
                    new TimeoutCancellation(0.01),
                ),
            static fn()
                => self::link()->query('SELECT pg_terminate_backend(pg_backend_pid()), $1::text', [self::SECRET]),
            static fn() => iterator_to_array(self::link()->stream('SELECT $1::text::int', [self::SECRET])),
            static fn() => iterator_to_array(
                self::link()->stream(
                    'SELECT 1 / (100 - i), $1::text FROM generate_series(1, 200) AS i',
                    [self::SECRET],
                ),
            ),
            static fn() => iterator_to_array(self::link()->stream('SELECT $1::int', [[self::SECRET]])),
            static fn()
                => self::link()->copyFrom("COPY {$table} FROM STDIN", [[1, self::SECRET], [2, self::SECRET . "\0"]]),
            static fn()
                => self::link()->copyFrom("COPY {$table} FROM STDIN", [[1, self::SECRET], [2, self::SECRET, 3]]),
            static fn() => self::link()->copyFrom("COPY {$table} FROM STDIN", [[1, self::SECRET], [2, self::SECRET]]),
            static fn() => self::link()->copyFrom("COPY {$table} FROM STDIN", [self::SECRET . "\ta\n"]),
            static fn()
                => self::link()->copyFrom("COPY {$table} FROM STDIN", ["1\t" . self::SECRET . "\n", [2, self::SECRET]]),
            static fn() => self::link()->copyFrom('COPY nowhere FROM STDIN', [[1, self::SECRET]]),
            static fn() => self::link()->transaction(
                static fn(Transaction $transaction) => $transaction->query('SELECT $1::text::int', [self::SECRET]),
            ),
            static fn() => self::link()->transaction(
                static fn(Transaction $transaction)
                    => $transaction->copyFrom("COPY {$table} FROM STDIN", [[1, [self::SECRET]]]),
            ),
        ];
    }

    /** @return list<string> */
    private static function ofConnecting(PostgresOptions $options, #[\SensitiveParameter] string $password): array
    {
        $shown = self::look('options', $options, $password);
        $wrong = $options->with(['password' => self::SECRET]);
        foreach ([
            'a wrong password' => static fn() => PostgresConnection::connect($wrong),
            'a wrong password of a pool' => static fn()
                => (new PostgresPool($wrong))->query('SELECT $1', [self::SECRET]),
            'a wrong DSN' => static fn()
                => PostgresConnection::connect('host=127.0.0.1 nonsense=1 password=' . self::SECRET),
            'a wrong URI' => static fn()
                => PostgresConnection::connect('postgres://a:' . self::SECRET . '@127.0.0.1:nonsense/x'),
            'a pool of a wrong DSN' => static fn() => new PostgresPool('port=nonsense password=' . self::SECRET),
            'a wrong option' => static fn() => $options->with(['password' => self::SECRET, 'nonsense' => 1]),
            'a port where nobody is' => static fn()
                => PostgresConnection::connect('host=127.0.0.1 port=1 sslmode=disable password=' . self::SECRET),
        ] as $name => $work) {
            $shown = [...$shown, ...self::look($name, self::thrown($work), $password)];
        }

        return $shown;
    }

    private static function link(): PostgresLink
    {
        return self::$link ?? throw new \LogicException('There is no link');
    }

    private static function thrown(\Closure $work): \Throwable
    {
        try {
            $work();
        } catch (\Throwable $thrown) {
            return $thrown;
        }

        throw new \LogicException('Nothing is thrown');
    }

    /** @return list<string> */
    private static function look(string $name, object $object, string $password): array
    {
        $shown = [];
        foreach (['the value' => self::SECRET, 'the password' => $password] as $what => $secret) {
            $ways = [];
            foreach (self::renderings($object) as $way => $text) {
                $at = stripos($text, $secret);
                if ($at !== false) {
                    $ways[$way] = preg_replace('/[^ -~]+|  +/', ' ', substr($text, max(0, $at - 200), 250));
                }
            }
            if ($ways !== []) {
                $shown[] = \sprintf(
                    "%s (%s) shows %s in %s:\n    %s",
                    $name,
                    $object::class,
                    $what,
                    implode(', ', array_keys($ways)),
                    implode("\n    ", \array_slice($ways, 0, 2)),
                );
            }
        }

        return $shown;
    }

    /** @return \Generator<string, string> */
    private static function renderings(object $object): \Generator
    {
        yield 'print_r' => print_r($object, true);
        ob_start();
        var_dump($object);
        yield 'var_dump' => (string) ob_get_clean();
        if ($object instanceof \Throwable) {
            yield 'var_export' => @var_export($object, true); // no object can hide anything from var_export()
        }
        yield 'json_encode' => (string) @json_encode($object, \JSON_PARTIAL_OUTPUT_ON_ERROR);
        try {
            yield 'serialize' => serialize($object);
        } catch (\Throwable) {
            // contains something that can't be serialized, such as a closure
        }
        for ($thrown = $object; $thrown instanceof \Throwable; $thrown = $thrown->getPrevious()) {
            yield 'the message' => $thrown->getMessage();
            yield 'the string' => (string) $thrown;
            yield 'the trace' => $thrown->getTraceAsString()
                . print_r($thrown->getTrace(), true)
                . @var_export($thrown->getTrace(), true);
        }
    }
}
