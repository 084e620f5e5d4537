<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Aircraft;

use Aircraft\Migrations;
use PHPUnit\Framework\Attributes\RequiresPhpExtension;
use Spindle\Postgres\PostgresConnection;
use Spindle\Tests\Aircraft\AircraftCode;
use Spindle\Tests\Eventually;
use Spindle\Tests\Host;
use Spindle\Tests\Http\ServeTestCase;
use Spindle\Tests\Nginx;
use Spindle\Tests\Scale;
use Spindle\Tests\WebServer;
use Symfony\Component\Process\Process;

/** Tests restarts of PostgreSQL, some after a kill, while clients write. */
final class DatabaseOutageTest extends ServeTestCase
{
    use AircraftCode;
    use Nginx;
    use WebServer;

    private const CLIENTS = 8;

    private ?Process $program = null;

    protected function deadline(): int
    {
        return 120 + 10 * Scale::of(20);
    }

    #[RequiresPhpExtension('pcntl')]
    public function testUnderTheServerClientsAreToldToComeBackAndWhatTheyWereToldIsTrue(): void
    {
        $dsn = $this->startDatabase();
        $this->serve($this->aircraft(['DATABASE_URL' => $dsn, 'AIRCRAFT_CONNECTIONS' => '4']), ['--processes', '2']);
        $this->goThroughOutages($this->address, $dsn);
    }

    public function testUnderFpmClientsAreToldToComeBackAndWhatTheyWereToldIsTrue(): void
    {
        $dsn = $this->startDatabase();
        $this->startFpm("pm.max_children = 3\nenv[DATABASE_URL] = \"{$dsn}\"");
        $page = \dirname(__DIR__, 3) . '/examples/aircraft/public/index.php';
        $address = $this->startNginx(<<<NGINX
            keepalive_requests 1000000;
            location / {
                include /etc/nginx/fastcgi_params;
                fastcgi_param SCRIPT_FILENAME {$page};
                fastcgi_pass unix:{$this->path('socket')};
            }
            NGINX);
        $this->goThroughOutages("tcp://{$address}", $dsn);
    }

    /** @return string the cluster's DSN */
    private function startDatabase(): string
    {
        $this->program = Host::start(OutageProgram::class . '::run', [$this->path(), Scale::of(20)]);
        Eventually::holds(fn(): bool => is_file($this->path('dsn')), 'PostgreSQL runs', 20);
        $dsn = (string) file_get_contents($this->path('dsn'));
        $connection = PostgresConnection::connect($dsn);
        (new Migrations($connection))->run();
        $connection->close();

        return $dsn;
    }

    private function goThroughOutages(string $address, string $dsn): void
    {
        $load = new CrudLoad($address);
        $load->start(self::CLIENTS);
        $late = [];
        for ($outage = 1; $outage <= Scale::of(20); ++$outage) {
            $load->awaitMore();
            touch($this->path("go{$outage}"));
            Eventually::holds(fn(): bool => is_file($this->path("back{$outage}")), 'PostgreSQL is back', 30);
            $back = hrtime(true);
            $load->awaitMore();
            array_push($late, ...array_filter($load->refused, static fn(array $refusal): bool => $refusal[0] > $back));
        }
        $load->stop();

        self::assertSame([], $load->wrong);
        self::assertSame([], $load->unanswered);
        self::assertSame([], $late, 'refused though PostgreSQL was back');
        $connection = PostgresConnection::connect($dsn);
        $titles = array_column($connection->query('SELECT number, title FROM aircraft')->all(), 'title', 'number');
        $connection->close();
        self::assertSame([], $load->contradictions($titles));
        touch($this->path('stop'));
        self::assertSame(0, $this->program?->wait(), (string) $this->program?->getErrorOutput());
    }
}
