<?php

declare(strict_types=1);

namespace Spindle\Tests\Integration\Postgres;

use PHPUnit\Framework\TestCase;
use Spindle\Postgres\Testing\Internal\DataDirectory;
use Spindle\Postgres\Testing\TemporaryPostgres;
use Spindle\Postgres\Testing\TemporaryPostgresOptions;
use Spindle\Tests\EndsInTime;
use Spindle\Tests\OwnDirectory;
use Spindle\Tests\Postgres\Cluster;
use Spindle\Tests\Postgres\PreparedData;
use Symfony\Component\Process\PhpSubprocess;

final class PreparedDataTest extends TestCase
{
    use EndsInTime;
    use OwnDirectory;

    private const IDENTIFIER = 'SELECT system_identifier AS id FROM pg_control_system()';

    public function testALaterClusterIsACopyWithItsOwnFilesAndAPasswordThatIsChecked(): void
    {
        $first = $this->start();
        $second = $this->start();
        Cluster::ask('CREATE TABLE own AS SELECT 1 AS number', $second->dsn());

        self::assertSame(self::identifier($first), self::identifier($second));
        self::assertFalse(@pg_connect($second->tcpDsn(password: 'wrong'), \PGSQL_CONNECT_FORCE_NEW));
        foreach ([$first, $this->start()] as $other) {
            self::assertSame([['own' => null]], Cluster::ask("SELECT to_regclass('own') AS own", $other->tcpDsn()));
        }
    }

    public function testOtherArgumentsOfInitdbMakeOtherData(): void
    {
        $plain = $this->start();
        $checked = $this->start(new TemporaryPostgresOptions(user: 'boss', initdb: ['--data-checksums']));

        self::assertNotSame(self::identifier($plain), self::identifier($checked));
        $sums = "SELECT current_user AS name, current_setting('data_checksums') AS sums";
        self::assertSame([['name' => 'boss', 'sums' => 'on']], Cluster::ask($sums, $checked->tcpDsn()));
    }

    public function testSeveralProcessesPrepareTheSameDataOnce(): void
    {
        $program = 'require $argv[1]; $start = fn() => Spindle\Postgres\Testing\TemporaryPostgres::start();'
            . '$data = new Spindle\Tests\Postgres\PreparedData($argv[2]);'
            . '$cluster = Spindle\Postgres\Testing\Internal\DataDirectory::from($data, $start);'
            . 'Spindle\Tests\Postgres\Cluster::ask("SELECT 1", $cluster->tcpDsn()); echo "it answers";';
        $autoload = \dirname(__DIR__, 3) . '/vendor/autoload.php';
        $processes = [];
        foreach ([1, 2] as $number) {
            $processes[$number] = new PhpSubprocess(['-r', $program, '--', $autoload, $this->path()]);
            $processes[$number]->start();
        }
        foreach ($processes as $process) {
            $process->wait();
            self::assertSame('it answers', $process->getOutput(), $process->getErrorOutput());
        }

        self::assertCount(1, $this->prepared());
        self::assertSame([], glob($this->path('*.new')));
    }

    public function testDataThatAKilledProcessLeftHalfMadeAreNotUsed(): void
    {
        $first = self::identifier($this->start());
        [$prepared] = $this->prepared();
        rename($prepared, "{$prepared}.new");
        unlink("{$prepared}.new/data/PG_VERSION");

        $second = self::identifier($this->start());

        self::assertNotSame($first, $second);
        self::assertSame([$prepared], $this->prepared());
        self::assertSame($second, self::identifier($this->start()));
    }

    private function start(?TemporaryPostgresOptions $options = null): TemporaryPostgres
    {
        $start = static fn(): TemporaryPostgres => TemporaryPostgres::start([], $options);

        return DataDirectory::from(new PreparedData($this->path()), $start);
    }

    private static function identifier(TemporaryPostgres $cluster): ?string
    {
        return Cluster::ask(self::IDENTIFIER, $cluster->tcpDsn())[0]['id'] ?? null;
    }

    /** @return list<string> complete directories */
    private function prepared(): array
    {
        $paths = glob($this->path('postgres-*'), \GLOB_ONLYDIR);
        $isComplete = static fn(string $path): bool => !str_ends_with($path, '.new');

        return array_values(array_filter($paths === false ? [] : $paths, $isComplete));
    }
}
