<?php

declare(strict_types=1);

namespace Spindle\Tests\Integration\Postgres;

use Amp\Future;
use PHPUnit\Framework\Attributes\After;
use PHPUnit\Framework\Attributes\TestWith;
use PHPUnit\Framework\TestCase;
use Spindle\Postgres\AuthenticationException;
use Spindle\Postgres\AuthenticationMethod;
use Spindle\Postgres\ConnectionFailedException;
use Spindle\Postgres\PostgresConnection;
use Spindle\Postgres\PostgresOptions;
use Spindle\Postgres\PostgresPool;
use Spindle\Postgres\Transaction;
use Spindle\Tests\Async;
use Spindle\Tests\CatchesThrown;
use Spindle\Tests\EndsInTime;
use Spindle\Tests\Eventually;
use Spindle\Tests\OwnDirectory;
use Spindle\Tests\Postgres\Cluster;
use Spindle\Tests\Postgres\UsesCluster;
use Spindle\Tests\Streams;
use Symfony\Component\Process\Process;

/** Tests a pooler that gives each transaction another session. */
final class PgbouncerTest extends TestCase
{
    use CatchesThrown;
    use EndsInTime;
    use OwnDirectory;
    use UsesCluster;

    private ?Process $pooler = null;

    #[After(5)]
    protected function stopPooler(): void
    {
        $this->pooler?->stop(2, \SIGKILL);
        $this->pooler = null;
    }

    public function testStatementsUnknownToAnotherSessionArePreparedAgain(): void
    {
        $pool = new PostgresPool($this->startPooler(), 6);
        $work = static function (int $fiber) use ($pool): int {
            foreach (range(1, 30) as $i) {
                self::assertSame($i, $pool->query('SELECT $1::int AS a', [$i])->value());
                self::assertSame("{$fiber}-{$i}", $pool->query('SELECT $1::text || $2', [$fiber, "-{$i}"])->value());
                $pool->transaction(static function (Transaction $transaction) use ($i): void {
                    self::assertSame("x{$i}", $transaction->query('SELECT $1::text AS b', ["x{$i}"])->value());
                    self::assertSame($i, $transaction->query('SELECT $1::int AS a', [$i])->value());
                });
            }

            return $fiber;
        };
        $fibers = array_map(
            static fn(int $fiber): Future => Async::run(static fn(): int => $work($fiber)),
            range(1, 8),
        );

        self::assertSame(range(1, 8), array_map(static fn(Future $fiber): mixed => $fiber->await(), $fibers));
        $pool->close();
    }

    #[TestWith(['array_nulls', 'off', 'on'])]
    #[TestWith(['extra_float_digits', '0', '1'])]
    #[TestWith(['IntervalStyle', 'sql_standard', 'postgres'])]
    public function testASettingThatWouldChangeValuesIsRefused(string $setting, string $bad, string $good): void
    {
        $database = Cluster::newDatabase();
        Cluster::ask("ALTER DATABASE {$database} SET {$setting} = '{$bad}'");
        $options = $this->startPooler()->with(['database' => $database]);
        $refused = self::thrown(ConnectionFailedException::class, static fn() => PostgresConnection::connect($options));
        self::assertStringContainsString(
            "the server's setting {$setting} would change values",
            $refused->getMessage(),
        );
        self::assertStringContainsString("ALTER ROLE … SET {$setting} = '{$good}'", $refused->getMessage());
    }

    public function testWithSessionPoolingTheOptionsCanCorrectASetting(): void
    {
        $database = Cluster::newDatabase();
        Cluster::ask("ALTER DATABASE {$database} SET array_nulls = 'off'");
        $pool = new PostgresPool($this->startPooler('session')->with([
            'database' => $database,
            'settings' => ['Array_Nulls' => 'on'],
        ]));

        self::assertSame(['a', null], $pool->query('SELECT $1::text[]', [['a', null]])->value());
        $pool->close();
    }

    #[TestWith(['scram-sha-256'])]
    #[TestWith(['md5'])]
    #[TestWith(['plain'])]
    public function testAWrongPasswordEndsTheSearchForAServer(string $method): void
    {
        $options = $this->startPooler(authentication: $method);
        $connect = static fn(string $password): PostgresConnection => PostgresConnection::connect($options->with([
            'hosts' => [...$options->hosts, ...$options->hosts],
            'password' => $password,
            'authentication' => AuthenticationMethod::cases(),
        ]));
        self::assertSame(1, $connect('secret')->query('SELECT 1')->value());

        $this->expectException(AuthenticationException::class);
        $this->expectExceptionMessage('authentication failed');
        $connect('wrong');
    }

    private function startPooler(string $mode = 'transaction', string $authentication = 'any'): PostgresOptions
    {
        $program = is_executable('/usr/sbin/pgbouncer')
            ? '/usr/sbin/pgbouncer'
            : self::markTestSkipped('pgbouncer is not here');
        $cluster = Cluster::shared();
        $port = parse_url('tcp://' . Streams::unusedAddress(), \PHP_URL_PORT);
        $users = $this->file('users.txt', "\"{$cluster->user}\" \"secret\"\n", 0o644);
        $configuration = $this->file('pgbouncer.ini', <<<INI
            [databases]
            * = host=127.0.0.1 port={$cluster->port} user={$cluster->user} password={$cluster->password}
            [pgbouncer]
            listen_addr = 127.0.0.1
            listen_port = {$port}
            unix_socket_dir =
            auth_type = {$authentication}
            auth_file = {$users}
            pool_mode = {$mode}
            default_pool_size = 2
            INI, 0o644);
        chmod($this->path(), 0o755);
        // pgbouncer refuses to run as root.
        $user = \function_exists('posix_geteuid') && posix_geteuid() === 0 ? ['-u', 'nobody'] : [];
        $this->pooler = new Process([$program, ...$user, $configuration]);
        $this->pooler->start();
        Eventually::holds(
            static fn(): bool => Streams::accepts("tcp://127.0.0.1:{$port}"),
            'pgbouncer listens',
        );

        return PostgresOptions::fromDsn(
            "host=127.0.0.1 port={$port} user={$cluster->user} dbname={$cluster->database} sslmode=disable",
        );
    }
}
