<?php

declare(strict_types=1);

namespace Spindle\Tests\Integration\Worker;

use PHPUnit\Framework\Attributes\RequiresPhpExtension;
use PHPUnit\Framework\TestCase;
use Spindle\Worker\Internal\SharedFlags;

#[RequiresPhpExtension('shmop')]
final class SharedFlagsTest extends TestCase
{
    /** Code of a worker that resets the mark of a task while it sends results, and obeys the limit afterwards. */
    private const WORKER = <<<'PHP'
        $memory = shmop_open((int) $argv[1], 'w', 0, 0);
        shmop_write($memory, pack('VV', 4, 1), 0);
        echo "ready\n";
        for ($end = hrtime(true) + 5_000_000_000; hrtime(true) < $end;) {
            shmop_write($memory, pack('V', 5), 0);
            usleep(20);
            shmop_write($memory, pack('V', 4), 0);
            usleep(20);
        }
        PHP;

    public function testTasksBelowTheLimitCountAsStarted(): void
    {
        $key = SharedFlags::newKey();
        $memory = SharedFlags::create($key);
        $worker = proc_open(
            [\PHP_BINARY, '-r', self::WORKER, '--', (string) ($key & 0x7FFF_FFFF)],
            [1 => ['pipe', 'w']],
            $pipes,
        );
        \assert($memory !== null && $worker !== false);
        $said = fgets($pipes[1]);
        $mark = SharedFlags::open($key);
        $lost = 0;
        for ($i = 0; $i < 1000; ++$i) {
            $started = $mark?->takeBack(1, 100);
            /** @var array{1: int} $limit */
            $limit = unpack('V', shmop_read($memory, 24, 4));
            $lost += $started < $limit[1] ? 1 : 0;
        }
        proc_terminate($worker, 9);
        proc_close($worker);

        self::assertSame("ready\n", $said);
        self::assertSame(0, $lost, 'tasks were taken back that it may start');
    }
}
