<?php

declare(strict_types=1);

namespace Spindle\Tests\Integration\Postgres;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\Attributes\RequiresPhpExtension;
use Spindle\Postgres\TargetSessionAttrs;
use Spindle\Postgres\Testing\TemporaryPostgresOptions;
use Spindle\Postgres\TlsMode;
use Spindle\Tests\Eventually;
use Spindle\Tests\OwnDirectory;
use Spindle\Tests\Postgres\Certificates;
use Spindle\Tests\Postgres\Cluster;
use Spindle\Tests\Postgres\UsesCluster;
use Spindle\Tests\TidyTestCase;
use Spindle\Tests\WebServer;
use Symfony\Component\Process\Process;

/** Tests persistent connections, in requests that one process of FPM handles. */
final class PersistentTest extends TidyTestCase
{
    use OwnDirectory;
    use UsesCluster;
    use WebServer;

    private const PID = 'echo json_encode([$db->backendPid()]);';

    /** PHP drops buffered output when it is out of memory. */
    private const FLUSH = 'while (ob_get_level() > 0) { ob_end_flush(); } flush();';

    /** Code that ends a request in different ways. */
    private const ENDS = [
        'return' => 'return;',
        'exit' => 'exit;',
        'uncaught error' => 'throw new \Error();',
        'out of memory' => 'ini_set("memory_limit", "16M"); str_repeat("x", 1 << 30);',
        'out of memory, and another error' => 'register_shutdown_function(fn() => @unlink("/nowhere"));'
            . 'ini_set("memory_limit", "16M"); str_repeat("x", 1 << 30);',
        'out of time' => 'set_time_limit(1); while (true) {}',
    ];

    /** Seconds in which a server notices that the client of a running statement is gone. Its interval is 2 s. */
    private const NOTICED_WITHIN = 10.0;

    public function testAConnectionIsReusedInItsInitialState(): void
    {
        $this->startFpm();
        $page = $this->page(<<<'PHP'
            $state = $db->query(
                "SELECT current_setting('statement_timeout'), current_setting('my.own'), to_regclass('t')::text,
                    (SELECT count(*) FROM pg_prepared_statements WHERE statement NOT LIKE '%initial state%'),
                    (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()),
                    (SELECT count(*) FROM pg_listening_channels()),
                    (SELECT count(*) FROM pg_cursors WHERE is_holdable) AS \"initial state\"",
            )->allNumeric()[0];
            $db->executeScript("SET statement_timeout TO '7s'; SET my.own TO 'changed'; LISTEN a; PREPARE p AS SELECT 1;
                CREATE TEMP TABLE t (i int); SELECT pg_advisory_lock(7);
                DECLARE c CURSOR WITH HOLD FOR SELECT 1");
            $db->query('SELECT $1::text', ['x']);
            echo json_encode([$db->backendPid(), $db->query('SELECT pg_backend_pid()')->value(), ...$state]);
            PHP, settings: ['my.own' => 'x']);

        $first = $this->request($page);

        self::assertSame([$first[0], $first[0], '0', 'x', null, 0, 0, 0, 0], $first);
        self::assertSame($first, $this->request($page));
        self::assertSame($first, $this->request($page));
        $this->stopServer();
        self::assertIsInt($first[0]);
        self::assertEnds($first[0]);
    }

    public function testAReusedConnectionHasANewRandomSeed(): void
    {
        $this->startFpm();
        $page = $this->page(
            'echo json_encode([$db->backendPid(), $db->query("SELECT random()")->value()]);'
                . '$db->query("SELECT setseed(0.5)");',
        );
        $this->request($page);

        [$pid, $random] = $this->request($page);
        [$same, $other] = $this->request($page);

        self::assertSame($pid, $same);
        self::assertNotSame($random, $other);
    }

    public function testStateIsGoneAsSoonAsTheRequestHasEnded(): void
    {
        $this->startFpm();
        $pid = $this->pid($this->page('$db->query("SELECT pg_advisory_lock(8)");' . self::PID));

        Eventually::holdsByItself(
            static fn(): bool => Cluster::ask("SELECT pid FROM pg_locks WHERE pid = {$pid} AND objid = 8") === [],
            'the lock is released',
        );
        self::assertNotSame([], Cluster::ask("SELECT pid FROM pg_stat_activity WHERE pid = {$pid}"));
    }

    public function testTlsStaysWithTheConnection(): void
    {
        $certificates = new Certificates($this->path());
        [$certificate, $key] = $certificates->forServer('127.0.0.1');
        $cluster = Cluster::start(options: new TemporaryPostgresOptions(certificate: $certificate, key: $key));
        $this->startFpm();
        $page = $this->page(
            '$rows = $db->query("SELECT pid, ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()")->allNumeric();'
                . 'echo json_encode($rows[0]);',
            $cluster->tcpDsn(),
            tls: TlsMode::VerifyFull,
            tlsCaFile: $certificates->authority,
        );

        $first = $this->request($page);

        self::assertTrue($first[1]);
        self::assertSame($first, $this->request($page));
        self::assertSame($first, $this->request($page));
        $this->stopServer();
    }

    public function testConnectionsOfOneRequestAreDifferentAndAllAreReused(): void
    {
        $this->startFpm();
        $page = $this->page(
            '$other = PostgresConnection::connect($options);'
                . 'echo json_encode([$db->backendPid(), $other->backendPid()]);',
            Cluster::shared()->tcpDsn(),
        );

        $first = $this->request($page);

        self::assertNotSame($first[0], $first[1]);
        self::assertSame($first, $this->request($page));
    }

    public function testConnectionsWithOtherOptionsAreNotReused(): void
    {
        $this->startFpm();
        $database = Cluster::newDatabase();
        $body = 'echo json_encode([$db->backendPid(), $db->query("SELECT current_database()")->value()]);';
        $pages = [
            $this->page($body),
            $this->page($body, Cluster::shared()->dsn(dbname: $database)),
            $this->page($body, applicationName: 'other'),
            $this->page($body, password: 'other'),
            $this->page($body, settings: ['my.own' => 'y']),
            $this->page($body, Cluster::shared()->tcpDsn()),
        ];

        $first = array_map($this->request(...), $pages);

        $pids = array_map(static fn(array $one): string => var_export($one[0], true), $first);
        self::assertCount(6, array_unique($pids));
        self::assertSame(['postgres', $database], [$first[0][1], $first[1][1]]);
        self::assertSame($first, array_map($this->request(...), $pages));
    }

    public function testAConnectionThatIsClosedInARequestIsReusedByTheSameRequest(): void
    {
        $this->startFpm();
        $page = $this->page(
            '$first = $db->backendPid(); $db->close(); $db = PostgresConnection::connect($options);'
                . 'echo json_encode([$first, $db->backendPid(), $db->query("SELECT 1")->value()]);',
        );

        $pids = $this->request($page);

        self::assertSame([$pids[0], $pids[0], 1], $pids);
    }

    /** @return iterable<string, array{string}> */
    public static function ends(): iterable
    {
        foreach (self::ENDS as $name => $code) {
            yield $name => [$code];
        }
    }

    #[DataProvider('ends')]
    public function testAnIdleConnectionIsReusedHoweverTheRequestEnds(string $end): void
    {
        $this->startFpm();
        $page = $this->page('$db->query("SELECT 1");' . self::PID . self::FLUSH . $end);

        $pid = $this->pid($page);

        self::assertSame($pid, $this->pid($page));
    }

    #[DataProvider('ends')]
    public function testATransactionEndsWithItsRequest(string $end): void
    {
        $this->startFpm();
        $pid = $this->pid($this->page('$db->query("BEGIN");' . self::PID . self::FLUSH . $end));

        self::assertEnds($pid);
        $this->assertIsNotReused($pid);
    }

    #[DataProvider('ends')]
    public function testARunningStatementEndsWithItsRequest(string $end): void
    {
        $this->startFpm();
        $pid = $this->pid($this->page(
            self::PID . 'async(fn() => $db->query("SELECT pg_sleep(100)")); delay(0.05);' . self::FLUSH . $end,
        ));

        $this->assertIsNotReused($pid);
        self::assertEnds($pid);
    }

    public function testAConnectionWithUnreadRowsIsNotReused(): void
    {
        $this->startFpm();
        $pid = $this->pid($this->page(
            self::PID . 'foreach ($db->stream("SELECT generate_series(1, 1000000)") as $row) { exit; }',
        ));

        $this->assertIsNotReused($pid);
        self::assertEnds($pid);
    }

    public function testAConnectionWithUnsentBytesIsNotReused(): void
    {
        $this->startFpm();
        $pid = $this->pid($this->page(
            '$db->query("SELECT length($1::text)", ["a"]);' . self::PID
                . '$text = str_repeat("a", 30_000_000);'
                . 'async(fn() => $db->query("SELECT length($1::text)", [$text])); delay(0); exit;',
        ));

        $this->assertIsNotReused($pid);
        self::assertEnds($pid);
    }

    public function testAConnectionWithACopyIsNotReused(): void
    {
        $this->startFpm();
        $pid = $this->pid($this->page(
            <<<'PHP'
            $db->executeScript('CREATE TEMP TABLE t (x text)');
            echo json_encode([$db->backendPid()]);
            $db->copyFrom('COPY t FROM STDIN', (function () {
                yield str_repeat("x\n", 1_000_000);
                exit;
            })());
            PHP,
        ));

        $this->assertIsNotReused($pid);
        self::assertEnds($pid);
    }

    public function testAConnectionThatTheServerHasClosedIsReplaced(): void
    {
        $this->startFpm();
        $page = $this->page(self::PID);
        $pid = $this->pid($page);
        Cluster::ask("SELECT pg_terminate_backend({$pid})");
        self::assertEnds($pid);

        $other = $this->pid($page);

        self::assertNotSame($pid, $other);
        self::assertSame($other, $this->pid($page));
    }

    /** @return iterable<string, array{string}> */
    public static function leftovers(): iterable
    {
        yield 'nothing' => ['$take();'];
        yield 'the answer to a query' => ['$take(); $send("SELECT 1");'];
        yield 'an answer behind the proof' => ['$send("SELECT 1");'];
        yield 'a part of a message' => ['$take(); fwrite($stream, substr(FrontendMessages::query("SELECT 1"), 0, 9));'];
        yield 'answers without a proof' => ['$take(); $send("DISCARD ALL"); $send("SELECT 1, 2");'];
        yield 'an open transaction' => ['$take(); $send("BEGIN"); $send("SELECT 1, 2");'];
    }

    /** @param string $code leaves something on the stream, without the code at the end of a request */
    #[DataProvider('leftovers')]
    public function testAStreamWithoutTheProofOfItsResetIsNotUsed(string $code): void
    {
        $this->startFpm();
        $pid = $this->pid($this->page(self::PID . <<<PHP
            \$endpoint = new Endpoint(\$options->hosts[0], null);
            \$db->close();
            \$stream = PersistentStream::reserve(\$options, \$endpoint)->open(stream_context_create());
            \$send = fn(string \$sql) => fwrite(\$stream, FrontendMessages::query(\$sql));
            \$take = function () use (\$stream): void {
                stream_set_blocking(\$stream, true);
                for (\$bytes = ''; substr_count(\$bytes, "Z\0\0\0\5") < 2; \$bytes .= fread(\$stream, 65536)) {
                }
                stream_set_blocking(\$stream, false);
            };
            {$code}
            PHP));

        $this->assertIsNotReused($pid);
        self::assertEnds($pid);
    }

    public function testAStatementOfAReusedConnectionCanBeCancelled(): void
    {
        $this->startFpm();
        $pid = $this->pid($this->page(self::PID));

        [$same, $value] = $this->request($this->page(<<<'PHP'
            try {
                $db->query('SELECT pg_sleep(1000)', [], new \Amp\TimeoutCancellation(0.05));
            } catch (\Amp\CancelledException) {
            }
            echo json_encode([$db->backendPid(), $db->query('SELECT 42')->value()]);
            PHP));

        self::assertSame([$pid, 42], [$same, $value]);
        // The signal of a cancel request may arrive late.
        $this->assertIsNotReused($pid);
    }

    public function testTheKindOfTheServerIsCheckedWhenAConnectionIsReused(): void
    {
        $this->startFpm();
        $primary = $this->page(self::PID, targetSessionAttrs: TargetSessionAttrs::Primary);
        $pid = $this->pid($primary);

        self::assertSame($pid, $this->pid($primary));
        $standby = $this->page(self::PID, targetSessionAttrs: TargetSessionAttrs::Standby);
        self::assertStringContainsString("'standby' was requested", $this->askFpm($standby));
    }

    public function testAConnectionWhoseServerDoesNotReportItsKindIsReplaced(): void
    {
        $this->startFpm();
        $page = $this->page(self::PID, targetSessionAttrs: TargetSessionAttrs::Primary);
        $pid = $this->pid($page);
        Eventually::holdsByItself(
            static fn(): bool => Cluster::ask(
                "SELECT pid FROM pg_stat_activity WHERE pid = {$pid} AND state = 'idle' AND query LIKE '%start_time%'",
            ) !== [],
            'the session is reset',
        );
        posix_kill($pid, \SIGSTOP);
        try {
            $other = $this->pid($page);
        } finally {
            posix_kill($pid, \SIGCONT);
        }

        self::assertNotSame($pid, $other);
        self::assertEnds($pid);
    }

    #[RequiresPhpExtension('pcntl')]
    public function testAForkDoesNotReuseAConnectionOfItsParent(): void
    {
        $script = new Process([\PHP_BINARY, $this->page(<<<'PHP'
            $pids = [$db->backendPid()];
            $db->close();
            if (pcntl_fork() === 0) {
                echo PostgresConnection::connect($options)->backendPid();
                exit;
            }
            pcntl_wait($status);
            $db = PostgresConnection::connect($options);
            echo ' ', $pids[0], ' ', $db->backendPid(), ' ', $db->query('SELECT 1')->value();
            PHP)]);

        $script->mustRun();

        [$child, $parent, $again, $value] = explode(' ', $script->getOutput());
        self::assertNotSame($child, $parent);
        self::assertSame([$parent, '1'], [$again, $value]);
    }

    /**
     * Writes a page that opens a persistent connection `$db`, and then runs `$body`.
     *
     * @param mixed ...$options options by name
     */
    private function page(string $body, ?string $dsn = null, mixed ...$options): string
    {
        return $this->file('page-' . bin2hex(random_bytes(4)) . '.php', strtr(<<<'PHP'
            <?php

            use Spindle\Postgres\Internal\Connect\Endpoint;
            use Spindle\Postgres\Internal\Protocol\FrontendMessages;
            use Spindle\Postgres\Internal\Connect\PersistentStream;
            use Spindle\Postgres\PostgresConnection;
            use Spindle\Postgres\PostgresOptions;

            use function Amp\async;
            use function Amp\delay;

            require {autoload};
            $options = PostgresOptions::fromDsn({dsn})->with(['persistent' => true, ...{options}]);
            $db = PostgresConnection::connect($options);
            {body}
            PHP, [
            '{autoload}' => var_export(\dirname(__DIR__, 3) . '/vendor/autoload.php', true),
            '{dsn}' => var_export($dsn ?? Cluster::shared()->dsn(), true),
            '{options}' => var_export($options, true),
            '{body}' => $body,
        ]));
    }

    /** @return list<mixed> the JSON that the page prints before anything else */
    private function request(string $page): array
    {
        $answer = $this->askFpm($page);
        self::assertSame(1, preg_match('~^\s*(\[[^\]]*\])~', $answer, $match), $answer);
        $list = json_decode($match[1], true, flags: \JSON_THROW_ON_ERROR);
        self::assertIsList($list);

        return $list;
    }

    /** @return int id of the server process, which the page prints as the only element of a list */
    private function pid(string $page): int
    {
        [$pid] = $this->request($page);
        self::assertIsInt($pid);

        return $pid;
    }

    private function assertIsNotReused(int $pid): void
    {
        [$other, $value] = $this->request($this->page(
            'echo json_encode([$db->backendPid(), $db->query("SELECT 42")->value()]);',
        ));
        self::assertNotSame($pid, $other);
        self::assertSame(42, $value);
    }

    private static function assertEnds(int $pid): void
    {
        Eventually::holdsByItself(
            static fn(): bool => Cluster::ask("SELECT pid FROM pg_stat_activity WHERE pid = {$pid}") === [],
            'the server process ends',
            self::NOTICED_WITHIN,
        );
    }
}
