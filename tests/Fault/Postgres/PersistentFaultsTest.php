<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Postgres;

use Spindle\Postgres\ConnectionFailedException;
use Spindle\Postgres\Internal\Protocol\PipelinedSession;
use Spindle\Postgres\Internal\SessionFactory;
use Spindle\Postgres\PostgresOptions;
use Spindle\Tests\Eventually;
use Spindle\Tests\Host;
use Spindle\Tests\Postgres\Cluster;
use Spindle\Tests\Processes;
use Spindle\Tests\TidyTestCase;

/** Tests persistent connections whose server ends between two requests. */
final class PersistentFaultsTest extends TidyTestCase
{
    public function testAServerThatIsGoneWhenAConnectionIsReusedIsAnException(): void
    {
        self::assertSame(
            ['gone' => ConnectionFailedException::class, 'back' => 1],
            Host::call(self::class . '::findItAgain'),
        );
    }

    /** @return array<string, mixed> */
    public static function findItAgain(): array
    {
        $cluster = Cluster::start();
        $options = PostgresOptions::fromDsn($cluster->dsn())->with(['persistent' => true]);
        $open = static fn(): PipelinedSession => (new SessionFactory($options))->open(null);
        $open()->close();
        $children = array_keys(Processes::childrenOf((int) $cluster->postmasterPid()));
        $cluster->kill();
        array_map(static fn(int $pid): bool => posix_kill($pid, \SIGKILL), $children);
        $alive = static fn(): array => array_filter($children, Processes::isAlive(...));
        Eventually::holds(static fn(): bool => $alive() === [], 'the processes of the server are gone');
        $found = [];
        try {
            $open();
        } catch (ConnectionFailedException $failure) {
            $found['gone'] = $failure::class;
        }
        $cluster->restart();
        $session = $open();
        $found['back'] = $session->query('SELECT 1')->value();
        $session->close();

        return $found;
    }
}
