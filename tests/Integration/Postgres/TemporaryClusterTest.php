<?php

declare(strict_types=1);

namespace Spindle\Tests\Integration\Postgres;

use PHPUnit\Framework\TestCase;
use Spindle\Postgres\Testing\ClusterException;
use Spindle\Postgres\Testing\TemporaryCluster;
use Spindle\Postgres\Testing\TemporaryClusterOptions;
use Spindle\Tests\Async;
use Spindle\Tests\EndsInTime;
use Spindle\Tests\Eventually;
use Spindle\Tests\Host;
use Spindle\Tests\LeavesNothing;
use Spindle\Tests\OwnDirectory;
use Spindle\Tests\Postgres\Certificates;
use Spindle\Tests\Postgres\Cluster;
use Spindle\Tests\Processes;
use Spindle\Tests\Streams;
use Spindle\Tests\Text;
use Symfony\Component\Process\Process;

final class TemporaryClusterTest extends TestCase
{
    use EndsInTime;
    use LeavesNothing;
    use OwnDirectory;

    public function testItAnswersOnItsUnixSocketAndWithThePasswordOnTcp(): void
    {
        $cluster = TemporaryCluster::start();
        $address = 'SELECT host(inet_client_addr()) AS address, current_user AS name, current_database() AS database';

        self::assertSame([['address' => null, 'name' => 'postgres', 'database' => 'postgres']], Cluster::ask($address, $cluster->dsn()));
        self::assertSame('127.0.0.1', Cluster::ask($address, $cluster->tcpDsn())[0]['address'] ?? null);
        self::assertFalse(@pg_connect($cluster->tcpDsn(password: 'wrong'), \PGSQL_CONNECT_FORCE_NEW));
        self::assertStringContainsString('password authentication failed for user "postgres"', $cluster->log());
        $cluster->stop();
        self::assertNothingLeft($cluster->host);
    }

    public function testItsSettingsApplyWhateverTheirTypes(): void
    {
        $cluster = TemporaryCluster::start([
            'max_connections' => 7,
            'superuser_reserved_connections' => 2,
            'autovacuum' => false,
            'seq_page_cost' => 1.25,
            'application_name' => "it's a \\ test",
        ]);
        $settings = [];
        foreach (['max_connections', 'autovacuum', 'seq_page_cost', 'application_name', 'timezone', 'server_encoding'] as $name) {
            $settings[] = Cluster::ask("SELECT current_setting('{$name}') AS value", $cluster->dsn())[0]['value'] ?? null;
        }

        self::assertSame(['7', 'off', '1.25', "it's a \\ test", 'UTC', 'UTF8'], $settings);
        self::assertStringNotContainsString($cluster->password, $cluster->dsn());
    }

    public function testItsAddressIsItsOwnAffair(): void
    {
        $this->expectException(\ValueError::class);
        $this->expectExceptionMessage('A temporary cluster chooses its own port');
        TemporaryCluster::start(['port' => 5432]);
    }

    public function testASettingThatDoesNotFitInALineIsRefused(): void
    {
        foreach ([['application_name' => "a\nb"], ['application_name' => "a\rb"], ['application_name' => "a\0b"], ["application_name\nport" => 1]] as $settings) {
            try {
                TemporaryCluster::start($settings);
                self::fail('It started');
            } catch (\ValueError $error) {
                self::assertStringStartsWith('The setting application_name has a line break or a NUL byte', $error->getMessage());
            }
        }
    }

    public function testASuperuserWhomPostgresqlWouldNotHaveIsRefused(): void
    {
        foreach (['', "o'brien", 'a"b', 'a\\b', '$a', "a\nb", 'pg_boss', 'public', 'none', str_repeat('a', 64)] as $user) {
            try {
                new TemporaryClusterOptions(user: $user);
                self::fail("{$user} is taken");
            } catch (\ValueError $error) {
                self::assertSame("The superuser of a temporary cluster can't be called \"{$user}\"", $error->getMessage());
            }
        }
        $cluster = TemporaryCluster::start([], new TemporaryClusterOptions(user: 'Ärger mit-Namen'));
        self::assertSame([['name' => 'Ärger mit-Namen']], Cluster::ask('SELECT current_user AS name', $cluster->dsn()));
    }

    public function testItAsksForPasswordsWhereItIsToldToAndKnowsTheUserThatItIsToldOf(): void
    {
        $cluster = TemporaryCluster::start(['password_encryption' => 'md5'], new TemporaryClusterOptions(
            hba: ['local all plain password'],
            user: 'boss',
            initdb: ['--data-checksums'],
        ));
        Cluster::ask("CREATE ROLE plain LOGIN PASSWORD 'secret'", $cluster->dsn());

        self::assertFalse(@pg_connect($cluster->dsn(user: 'plain', password: 'wrong'), \PGSQL_CONNECT_FORCE_NEW));
        self::assertSame([['name' => 'plain']], Cluster::ask('SELECT current_user AS name', $cluster->dsn(user: 'plain', password: 'secret')));
        self::assertSame([['name' => 'boss', 'sums' => 'on']], Cluster::ask("SELECT current_user AS name, current_setting('data_checksums') AS sums", $cluster->tcpDsn()));
    }

    public function testItTalksTlsWithTheCertificateThatItIsGiven(): void
    {
        $authority = new Certificates($this->path());
        [$certificate, $key] = $authority->forServer('127.0.0.1');
        $cluster = TemporaryCluster::start([], new TemporaryClusterOptions(
            hba: ['hostssl all postgres 127.0.0.1/32 cert'],
            certificate: $certificate,
            key: $key,
            authority: $authority->authority,
        ));
        [$client, $clientKey] = $authority->forClient('postgres');

        $tls = 'SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()';
        $dsn = $cluster->tcpDsn(sslmode: 'verify-full', sslrootcert: $authority->authority, sslcert: $client, sslkey: $clientKey);
        self::assertSame([['ssl' => 't']], Cluster::ask($tls, $dsn));
        $stranger = new Certificates($this->path(), 'A stranger');
        self::assertFalse(@pg_connect($cluster->tcpDsn(sslmode: 'verify-full', sslrootcert: $stranger->authority), \PGSQL_CONNECT_FORCE_NEW));
        [$client, $clientKey] = $stranger->forClient('postgres');
        self::assertFalse(@pg_connect($cluster->tcpDsn(sslmode: 'require', sslcert: $client, sslkey: $clientKey), \PGSQL_CONNECT_FORCE_NEW));
    }

    public function testARestartKeepsDataAndAddressesAndDisconnectsClients(): void
    {
        $cluster = TemporaryCluster::start();
        Cluster::ask('CREATE TABLE kept AS SELECT 1 AS number', $cluster->dsn());
        $client = pg_connect($cluster->dsn(), \PGSQL_CONNECT_FORCE_NEW);
        self::assertNotFalse($client);
        $pid = $cluster->postmasterPid();

        $cluster->restart();

        self::assertNotSame($pid, $cluster->postmasterPid());
        self::assertSame([['number' => '1']], Cluster::ask('SELECT number FROM kept', $cluster->tcpDsn()));
        self::assertFalse(@pg_query($client, 'SELECT 1'));
        self::assertStringContainsString('terminating connection due to administrator command', pg_last_error($client));
    }

    public function testAKilledServerKeepsWhatWasCommittedAndStartsAgain(): void
    {
        $cluster = TemporaryCluster::start();
        Cluster::ask('CREATE TABLE kept AS SELECT 1 AS number', $cluster->dsn());
        $pid = (int) $cluster->postmasterPid();
        self::assertTrue(Processes::isAlive($pid));

        $cluster->kill();

        self::assertFalse(Processes::isAlive($pid));
        self::assertNull($cluster->postmasterPid());
        self::assertFalse(@pg_connect($cluster->tcpDsn(), \PGSQL_CONNECT_FORCE_NEW));
        $cluster->restart();
        self::assertSame([['number' => '1']], Cluster::ask('SELECT number FROM kept', $cluster->dsn()));
        $cluster->kill();
        $cluster->stop();
        self::assertNothingLeft($cluster->host);
    }

    public function testAServerThatWasKilledStartsAgainAlsoWhileOneOfItsChildrenIsBusy(): void
    {
        $cluster = TemporaryCluster::start();
        $client = pg_connect($cluster->dsn(), \PGSQL_CONNECT_FORCE_NEW);
        self::assertNotFalse($client);
        $pid = pg_get_pid($client);
        pg_send_query($client, "DO 'BEGIN LOOP END LOOP; END'");
        Eventually::holds(static fn(): bool => Processes::state($pid) === 'R', 'the server runs the loop');

        $cluster->kill();
        self::assertTrue(Processes::isAlive($pid));
        $cluster->restart();

        self::assertFalse(Processes::isAlive($pid));
        self::assertSame([['one' => '1']], Cluster::ask('SELECT 1 AS one', $cluster->dsn()));
    }

    public function testAServerThatIsStoppedBySignalEndsNevertheless(): void
    {
        $cluster = TemporaryCluster::start();
        self::assertTrue(posix_kill((int) $cluster->postmasterPid(), \SIGSTOP));

        $cluster->stop();

        self::assertNothingLeft($cluster->host);
    }

    public function testItGoesWhenNobodyHoldsItAnyMore(): void
    {
        $cluster = TemporaryCluster::start();
        $directory = $cluster->host;
        self::assertDirectoryExists($directory);

        unset($cluster);

        self::assertNothingLeft($directory);
    }

    public function testAfterItWasStoppedItCanNeitherBeKilledNorRestarted(): void
    {
        $cluster = TemporaryCluster::start();
        $cluster->stop();
        $cluster->stop();

        try {
            $cluster->log();
            self::fail('It was stopped');
        } catch (ClusterException $stopped) {
            self::assertSame("The log of the server can't be read: the cluster was stopped", $stopped->getMessage());
        }
        foreach ([$cluster->kill(...), $cluster->restart(...)] as $call) {
            try {
                $call();
                self::fail('It was stopped');
            } catch (\LogicException $stopped) {
                self::assertSame('The cluster was stopped', $stopped->getMessage());
            }
        }
    }

    public function testItStartsInAFiberAsWell(): void
    {
        $cluster = Async::run(static fn(): TemporaryCluster => TemporaryCluster::start())->await();

        self::assertSame([['one' => '1']], Cluster::ask('SELECT 1 AS one', $cluster->dsn()));
    }

    public function testTheServerInheritsNoDescriptorOfThisProcess(): void
    {
        [$ours, $theirs] = Streams::pair();
        $cluster = TemporaryCluster::start();
        fclose($theirs);

        self::assertSame('', fread($ours, 1), 'nobody else holds the other end open');
        self::assertTrue(feof($ours));
        $cluster->stop();
    }

    public function testAForkThatInheritsItDoesNotEndIt(): void
    {
        $cluster = TemporaryCluster::start();
        $fork = pcntl_fork();
        if ($fork === 0) {
            $this->useInFork($cluster);
        }
        pcntl_waitpid($fork, $status);

        self::assertSame(\SIGUSR1, $status, 'the signal that ended it');
        self::assertSame([['one' => '1']], Cluster::ask('SELECT 1 AS one', $cluster->dsn()));
    }

    /** Ends by SIGUSR1 when all is as it should be. */
    private function useInFork(TemporaryCluster $cluster): never
    {
        $cluster->stop();
        try {
            $cluster->restart();
        } catch (\LogicException $belongs) {
            if ($belongs->getMessage() === 'The cluster belongs to the process that this one was forked from') {
                unset($belongs, $cluster);
                posix_kill((int) getmypid(), \SIGUSR1);
            }
        }
        posix_kill((int) getmypid(), \SIGKILL);
        exit(1);
    }

    public function testItGoesWithItsProcessHoweverThatEnds(): void
    {
        foreach (['return', 'exit', 'fatal error', 'SIGTERM', 'SIGKILL', 'SIGKILL with a fork', 'SIGKILL of the whole group'] as $how) {
            $process = Host::start(self::class . '::hold', [$how], ['setsid']);
            $process->waitUntil(static fn(string $type, string $output): bool => str_contains($output, "\n"));
            $directory = trim($process->getOutput());
            self::assertStringStartsWith(sys_get_temp_dir() . '/spindle-postgres-', $directory, $process->getErrorOutput());
            $forks = array_filter(Processes::childrenOf((int) $process->getPid()), static fn(string $line): bool => str_contains($line, 'host.php'));
            match (true) {
                str_ends_with($how, 'group') => posix_kill(-(int) $process->getPid(), \SIGKILL),
                str_starts_with($how, 'SIGKILL') => posix_kill((int) $process->getPid(), \SIGKILL),
                $how === 'SIGTERM' => posix_kill((int) $process->getPid(), \SIGTERM),
                default => null,
            };

            Eventually::holds(static fn(): bool => !file_exists($directory), "{$how}: the directory is gone", 3.0);
            self::assertNothingLeft($directory);
            self::assertCount($how === 'SIGKILL with a fork' ? 1 : 0, $forks);
            array_map(static fn(int $fork): bool => posix_kill($fork, \SIGKILL), array_keys($forks));
            $process->stop(0);
        }
    }

    /** In another process: says where the cluster is, then ends, or waits for its end. */
    public static function hold(string $how): void
    {
        $cluster = TemporaryCluster::start();
        if ($how === 'SIGKILL with a fork' && pcntl_fork() === 0) {
            sleep(30);
        }
        echo "{$cluster->host}\n";
        match ($how) {
            'return' => null,
            'exit' => exit(0),
            'fatal error' => self::exhaust(),
            default => sleep(30),
        };
    }

    public function testItGoesWithAProcessThatIsKilledWhileItStarts(): void
    {
        for ($i = 1; $i <= 8; ++$i) {
            $process = new Process([\PHP_BINARY, \dirname(__DIR__, 2) . '/host.php', self::class . '::hold', '["SIGKILL"]'], null, ['TMPDIR' => $this->ownedByAll()]);
            $process->start();
            Eventually::holds(fn(): bool => $this->clusters() !== [], 'there is a directory');
            usleep($i * 40_000);
            posix_kill((int) $process->getPid(), \SIGKILL);
            $process->stop(0);

            Eventually::holds(fn(): bool => $this->clusters() === [], 'the directory is gone', 3.0);
        }
    }

    public function testItIsRemovedAlsoWhenItsGuardianIsGone(): void
    {
        $cluster = TemporaryCluster::start();
        $guardians = array_filter(Processes::childrenOf((int) getmypid()), static fn(string $line): bool => str_ends_with($line, $cluster->host) && str_contains($line, '/guardian.php'));
        self::assertCount(1, $guardians);
        posix_kill(array_key_first($guardians), \SIGKILL);

        $cluster->stop();

        self::assertNothingLeft($cluster->host);
    }

    public function testAVersionThatIsNotInstalledIsMissedByItsPackage(): void
    {
        $this->expectException(ClusterException::class);
        $this->expectExceptionMessage('No PostgreSQL 8 server is installed');
        $this->expectExceptionMessage('On Debian, install the package postgresql-8, or name their directory by TemporaryClusterOptions(binaries: ...)');
        TemporaryCluster::start([], new TemporaryClusterOptions(version: 8));
    }

    public function testBinariesThatAreNotThereAreMissedByTheirDirectory(): void
    {
        $this->expectException(ClusterException::class);
        $this->expectExceptionMessage("initdb and postgres are in none of {$this->path()}. On Debian, install the package postgresql,");
        TemporaryCluster::start([], new TemporaryClusterOptions(binaries: $this->path()));
    }

    public function testWhatInitdbSaysOfItsFailureIsTold(): void
    {
        $this->expectException(ClusterException::class);
        $this->expectExceptionMessageMatches('/^initdb failed with exit code 1:.*unrecognized option \'--nonsense\'/s');
        TemporaryCluster::start([], new TemporaryClusterOptions(initdb: ['--nonsense']));
    }

    public function testTheLogOfAServerThatDoesNotStartIsTold(): void
    {
        try {
            TemporaryCluster::start(['nonsense' => true]);
            self::fail('It started');
        } catch (ClusterException $failure) {
            self::assertStringStartsWith('The PostgreSQL server ended before it was ready; the end of its log:', $failure->getMessage());
            self::assertStringContainsString('unrecognized configuration parameter "nonsense"', $failure->output);
        }
    }

    public function testAServerThatTakesTooLongIsTold(): void
    {
        try {
            TemporaryCluster::start([], new TemporaryClusterOptions(timeout: 0.000_1));
            self::fail('It started');
        } catch (ClusterException $failure) {
            self::assertStringStartsWith('The PostgreSQL server was not ready within 0.0001 seconds', $failure->getMessage());
        }
    }

    private static function assertNothingLeft(string $directory): void
    {
        self::assertDirectoryDoesNotExist($directory);
        Eventually::holdsByItself(static fn(): bool => self::processesOf($directory) === [], 'no process is left');
    }

    /** @return list<string> command lines */
    private static function processesOf(string $directory): array
    {
        $lines = array_map(static fn(string $pid): string => (int) $pid > 0 ? Processes::commandLine((int) $pid) : '', Text::names('/proc'));

        return array_values(array_filter($lines, static fn(string $line): bool => str_contains($line, basename($directory))));
    }

    private static function exhaust(): never
    {
        ini_set('memory_limit', (string) (memory_get_usage() + 4_000_000));
        $bytes = 'x';
        while (true) {
            $bytes .= $bytes;
        }
    }

    private function ownedByAll(): string
    {
        chmod($this->path(), 0o777);

        return $this->path();
    }

    /** @return list<string> */
    private function clusters(): array
    {
        return array_values(array_filter(Text::names($this->path()), static fn(string $name): bool => str_starts_with($name, 'spindle-postgres-')));
    }
}
