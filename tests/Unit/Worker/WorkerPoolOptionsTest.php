<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Worker;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Spindle\LauncherException;
use Spindle\Tests\OwnDirectory;
use Spindle\Worker\Internal\ContextEvents;
use Spindle\Worker\Internal\ProcessContext;
use Spindle\Worker\WorkerPool;
use Spindle\Worker\WorkerPoolOptions;

final class WorkerPoolOptionsTest extends TestCase
{
    use OwnDirectory;

    public function testAPathThatIsNoPhpIsRefusedWithTheNameOfTheOption(): void
    {
        $this->expectException(LauncherException::class);
        $this->expectExceptionMessage('executable file. Set its path with WorkerPoolOptions(php: ');

        new WorkerPool(1, options: new WorkerPoolOptions(php: '/no/such/php'));
    }

    /** @return iterable<string, array{\Closure(): mixed, string}> */
    public static function outOfRange(): iterable
    {
        yield 'timeout 0' => [static fn() => new WorkerPoolOptions(timeout: 0.0), 'timeout must be more than 0'];
        yield 'timeout below 0' => [static fn() => new WorkerPoolOptions(timeout: -1.0), 'timeout must be more than 0'];
        yield 'a timeout that is no number' => [
            static fn() => new WorkerPoolOptions(timeout: \NAN),
            'timeout must be more than 0',
        ];
        yield 'a timeout that no clock reaches' => [
            static fn() => new WorkerPoolOptions(timeout: 1e30),
            'timeout must be more than 0 seconds, at most 1000000000, not 1.0E+30',
        ];
        yield 'an endless timeout' => [
            static fn() => new WorkerPoolOptions(timeout: \INF),
            'The option timeout is null for no limit, and not INF',
        ];
        yield 'an endless startTimeout' => [
            static fn() => new WorkerPoolOptions(startTimeout: \INF),
            'startTimeout must be more than 0',
        ];
        yield 'an idleTimeout that no clock reaches' => [
            static fn() => new WorkerPoolOptions(idleTimeout: 1e10),
            'idleTimeout must be more than 0',
        ];
        yield 'maxLifetime too short for a task' => [
            static fn() => new WorkerPoolOptions(maxLifetime: 1e-300),
            'maxLifetime must be 0.001 or more',
        ];
        yield 'too many retries' => [
            static fn() => new WorkerPool(1, \PHP_INT_MAX),
            'The number of retries must be 0 or more, at most 1000000000',
        ];
        yield 'idleTimeout 0' => [
            static fn() => new WorkerPoolOptions(idleTimeout: 0.0),
            'idleTimeout must be more than 0',
        ];
        yield 'maxLifetime 0' => [
            static fn() => new WorkerPoolOptions(maxLifetime: 0.0),
            'maxLifetime must be more than 0',
        ];
        yield 'startTimeout 0' => [
            static fn() => new WorkerPoolOptions(startTimeout: 0.0),
            'startTimeout must be more than 0',
        ];
        yield 'a grace period below 0' => [
            static fn() => new WorkerPoolOptions(gracePeriod: -0.1),
            'grace period must be 0 or more',
        ];
        yield 'an endless grace period' => [
            static fn() => new WorkerPoolOptions(gracePeriod: \INF),
            'grace period must be 0 or more',
        ];
        yield 'a grace period that is no number' => [
            static fn() => new WorkerPoolOptions(gracePeriod: \NAN),
            'grace period must be 0 or more',
        ];
        yield 'maxTasks 0' => [static fn() => new WorkerPoolOptions(maxTasks: 0), 'maxTasks must be at least 1'];
        yield 'maxMemoryGrowthBytes 0' => [
            static fn() => new WorkerPoolOptions(maxMemoryGrowthBytes: 0),
            'maxMemoryGrowthBytes must be at least 1',
        ];
        yield 'maxResultBytes 0' => [
            static fn() => new WorkerPoolOptions(maxResultBytes: 0),
            'maxResultBytes must be at least 1',
        ];
        yield 'a bootstrap file that is not there' => [
            static fn() => new WorkerPoolOptions(bootstrap: '/not/there.php'),
            "'/not/there.php' is not an existing file",
        ];
        yield 'a bootstrap file that is a folder' => [
            static fn() => new WorkerPoolOptions(bootstrap: __DIR__),
            'is not an existing file',
        ];
        yield 'a bootstrap file with NUL' => [
            static fn() => new WorkerPoolOptions(bootstrap: __FILE__ . "\0x"),
            'is not an existing file',
        ];
        foreach ([
            'banana', '', '0', '-5', '-1M', '1M', '8191K', '8388607', '64 M', '64MB', '0x4000000', ' 64M', "64M\n",
            "64M\0-d", '99999999999999999999', '9999999999G', '1.5G', '-1K', '-2',
        ] as $limit) {
            yield 'memoryLimit ' . json_encode($limit) => [
                static fn() => new WorkerPoolOptions(memoryLimit: $limit),
                'memoryLimit must be a number of bytes, at least 8M, optionally with K, M or G, or -1 for no limit,'
                    . ' not ' . var_export($limit, true),
            ];
        }
    }

    /** @param \Closure(): mixed $make */
    #[DataProvider('outOfRange')]
    public function testAValueOutOfRangeIsRefusedByItsName(\Closure $make, string $message): void
    {
        $this->expectException(\ValueError::class);
        $this->expectExceptionMessage($message);
        $make();
    }

    public function testMemoryLimitsInPhpSyntaxAreAccepted(): void
    {
        foreach (['-1', '8M', '8m', '8192K', '8388608', '77M', '1G', '999999999G', '999999999999999999'] as $limit) {
            self::assertSame($limit, (new WorkerPoolOptions(memoryLimit: $limit))->memoryLimit);
        }
    }

    public function testABootstrapFileIsThatOfTheWorkingDirectoryAtTheTime(): void
    {
        $former = (string) getcwd();
        chdir(__DIR__);
        try {
            $options = new WorkerPoolOptions(bootstrap: basename(__FILE__));
        } finally {
            chdir($former);
        }

        self::assertSame(__FILE__, $options->bootstrap);
        self::assertSame(__FILE__, $options->with(maxTasks: 1)->bootstrap);
    }

    public function testARelativeBootstrapFileIsRefusedWhenTheWorkingDirectoryWasRemoved(): void
    {
        $former = (string) getcwd();
        $this->file('bootstrap.php', '<?php');
        mkdir($this->path('gone'));
        chdir($this->path('gone'));
        rmdir($this->path('gone'));
        try {
            $this->expectException(\ValueError::class);
            $this->expectExceptionMessage(
                "The bootstrap '../bootstrap.php' is a relative path,"
                . ' and the working directory of this process no longer exists',
            );
            new WorkerPoolOptions(bootstrap: '../bootstrap.php');
        } finally {
            chdir($former);
        }
    }

    public function testANulInTheMemoryLimitOfThisProcessIsRefused(): void
    {
        $this->expectException(\ValueError::class);
        $this->expectExceptionMessage('contains a NUL byte');
        new ProcessContext(self::createStub(ContextEvents::class), null, ['-d', "memory_limit=64M\0-d"], 1.0);
    }

    public function testTheEndsOfTheRangesAreAccepted(): void
    {
        $options = new WorkerPoolOptions(
            timeout: 1e-9,
            gracePeriod: 0.0,
            idleTimeout: \INF,
            maxTasks: 1,
            maxLifetime: \INF,
            maxMemoryGrowthBytes: 1,
            bootstrap: __FILE__,
        );

        self::assertSame(
            [0.0, \INF, 1, __FILE__],
            [$options->gracePeriod, $options->idleTimeout, $options->maxTasks, $options->bootstrap],
        );
    }
}
