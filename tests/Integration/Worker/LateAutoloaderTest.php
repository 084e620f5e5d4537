<?php

declare(strict_types=1);

namespace Spindle\Tests\Integration\Worker;

use Composer\Autoload\ClassLoader;
use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\Attributes\TestWith;
use PHPUnit\Framework\TestCase;
use Spindle\Tests\Conformance\Worker\KillingLogger;
use Spindle\Tests\OwnDirectory;
use Spindle\Worker\ExecutorClosedException;
use Spindle\Worker\WorkerContext;
use Spindle\Worker\WorkerPool;
use Spindle\Worker\WorkerPoolOptions;

use function Amp\Future\await;

/** Tests that workers know the classes of a Composer autoloader that was registered after they were started. */
final class LateAutoloaderTest extends TestCase
{
    use OwnDirectory;

    private ?ClassLoader $loader = null;

    protected function tearDown(): void
    {
        $this->loader?->unregister();
    }

    /** @return iterable<string, array{WorkerContext}> */
    public static function contexts(): iterable
    {
        yield 'a process' => [WorkerContext::Process];
        if (\function_exists('pcntl_fork')) {
            yield 'a fork' => [WorkerContext::Fork];
        }
    }

    #[DataProvider('contexts')]
    public function testEveryWorkerFindsItsClasses(WorkerContext $context): void
    {
        $pool = new WorkerPool(2, options: new WorkerPoolOptions($context));
        $pids = await(array_map(static fn() => $pool->submit(self::process(...)), [1, 2]));
        $busy = $pool->submit(self::process(...));
        $late = $this->registerLate();

        $results = await(array_map(static fn() => $pool->submit($late), [1, 2, 3, 4]));
        self::assertSame(array_fill(0, 4, 'late'), array_values($results));
        self::assertGreaterThan(0, $busy->await());
        self::assertSame(['late', 'late'], iterator_to_array($pool->map([1, 2], $late), false));

        $after = $pool->submit(self::process(...))->await();
        self::assertNotContains($after, $pids);
        self::assertSame($after, $pool->submit(self::process(...))->await(), 'replaced once');
    }

    #[DataProvider('contexts')]
    public function testALoaderWithoutAFileToLoadReplacesNoWorker(WorkerContext $context): void
    {
        $pool = new WorkerPool(1, options: new WorkerPoolOptions($context));
        $before = $pool->submit(self::process(...))->await();
        $this->loader = new ClassLoader($this->path('nothing'));
        $this->loader->register();

        self::assertSame($before, $pool->submit(self::process(...))->await());
    }

    #[DataProvider('contexts')]
    public function testALoaderWhoseFileWasRemovedAfterItWasIncludedFailsNoWorker(WorkerContext $context): void
    {
        $this->registerLate();
        file_put_contents($this->path('vendor/autoload.php'), '<?php');
        require $this->path('vendor/autoload.php');
        unlink($this->path('vendor/autoload.php'));
        $pool = new WorkerPool(1, options: new WorkerPoolOptions($context));

        self::assertGreaterThan(0, $pool->submit(self::process(...))->await());
    }

    #[TestWith([false])]
    #[TestWith([true])]
    public function testALoggerMayKillThePoolWhenItsWorkersAreReplaced(bool $maps): void
    {
        $logger = new KillingLogger('The {what} of this process have changed, so the workers are replaced');
        $pool = new WorkerPool(1, options: new WorkerPoolOptions(logger: $logger));
        $pool->submit(self::process(...))->await();
        $logger->pool = $pool;
        $late = $this->registerLate();
        $thrown = null;
        try {
            $maps ? iterator_to_array($pool->map([1], $late)) : $pool->submit($late)->await();
        } catch (ExecutorClosedException $thrown) {
        }

        self::assertNotNull($thrown);
        self::assertSame([0, 0], [$pool->statistics()['workers'], $pool->statistics()['waiting']]);
    }

    public static function process(): int
    {
        usleep(50_000);

        return (int) getmypid();
    }

    private function registerLate(): callable
    {
        $class = 'A' . bin2hex(random_bytes(6));
        mkdir($this->path('vendor'));
        $source = "<?php class {$class} { public static function of(): string { usleep(20_000); return 'late'; } }";
        file_put_contents($this->path('vendor/late.php'), $source);
        file_put_contents($this->path('vendor/autoload.php'), "<?php require __DIR__ . '/late.php';");
        $this->loader = new ClassLoader($this->path('vendor'));
        $this->loader->addClassMap([$class => $this->path('vendor/late.php')]);
        $this->loader->register();
        $method = [$class, 'of'];
        \assert(\is_callable($method));

        return $method;
    }
}
