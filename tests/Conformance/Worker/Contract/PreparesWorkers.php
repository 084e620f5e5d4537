<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Worker\Contract;

use Amp\Future;
use Psr\Log\AbstractLogger;
use Spindle\Tests\Conformance\Worker\KillingLogger;
use Spindle\Tests\Conformance\Worker\PoolTestCase;
use Spindle\Tests\Conformance\Worker\Task\Number;
use Spindle\Tests\Conformance\Worker\Task\WorkerTasks;
use Spindle\Tests\Streams;
use Spindle\Worker\ExecutorClosedException;
use Spindle\Worker\UnserializableException;
use Spindle\Worker\WorkerCrashedException;
use Spindle\Worker\WorkerStartException;

/**
 * Tests the state of a worker before its first task.
 *
 * @phpstan-require-extends PoolTestCase
 */
trait PreparesWorkers
{
    public function testTheInitialiserRunsOnceInEachWorkerBeforeItsFirstTask(): void
    {
        $start = 100;
        $pool = $this->pool(1, initialize: static function () use ($start): void {
            WorkerTasks::$count += $start;
        });

        self::assertSame(
            [101, 102, 103],
            iterator_to_array($pool->map([1, 2, 3], static fn(int $i): int => WorkerTasks::count()), false),
        );
    }

    public function testTheBodyOfAnInitialiserThatIsAGeneratorRuns(): void
    {
        $pool = $this->pool(1, initialize: static function (): \Generator {
            WorkerTasks::$count += 10;
            yield;
            WorkerTasks::$count += 100;
        });

        self::assertSame(111, $pool->submit(WorkerTasks::count(...))->await());
    }

    public function testAnUnserializableInitialiserIsRefusedAtOnce(): void
    {
        $stream = Streams::open('php://memory', 'r');

        self::thrown(
            UnserializableException::class,
            fn() => $this->pool(1, initialize: static fn(): bool => feof($stream)),
        );
    }

    public function testAnInitialiserThatThrowsIsTheReasonWhyThereIsNoWorker(): void
    {
        $cause = new \LengthException('no host');
        $pool = $this->pool(1, initialize: static fn() => throw new \DomainException('no database', 0, $cause));
        $before = (string) ini_set('unserialize_max_depth', '1'); // must not matter
        try {
            $failed = self::failure(WorkerStartException::class, $pool->submit(Number::answer(...)));
        } finally {
            ini_set('unserialize_max_depth', $before);
        }

        self::assertSame(\DomainException::class, $failed->thrown?->class);
        self::assertSame('no host', $failed->thrown->previous?->message);
        self::assertStringContainsString(
            ': WorkerPoolOptions(initialize:) threw DomainException: no database',
            $failed->getMessage(),
        );
    }

    public function testAnInitialiserThatExitsIsFollowedByAdvice(): void
    {
        $failed = self::failure(
            WorkerStartException::class,
            $this->pool(1, initialize: static fn() => exit(3))->submit(Number::answer(...)),
        );

        self::assertStringContainsString(
            '). Check WorkerPoolOptions(initialize:)',
            $failed->getMessage(),
        );
    }

    public function testTheBootstrapFileIsLoadedAndItsGlobalsAreGlobal(): void
    {
        $pool = $this->pool(
            1,
            bootstrap: $this->file(
                'bootstrap.php',
                '<?php $answer = 42; function answer_of_bootstrap() { global $answer; return $answer; }',
            ),
        );

        $task = static fn(string $name): mixed => \is_callable($name) ? $name() : null;

        self::assertSame([42], iterator_to_array($pool->map(['answer_of_bootstrap'], $task)));
        self::assertSame(42, $pool->submit(static fn(): mixed => $GLOBALS['answer'])->await());
    }

    public function testTheCodeOfTheBootstrapFileHasNoClassAndNoOtherVariables(): void
    {
        $pool = $this->pool(1, bootstrap: $this->file(
            'bootstrap.php',
            '<?php $before = $file ?? "no variable";'
                . ' $class = (new ReflectionFunction(static fn() => 1))->getClosureScopeClass();'
                . ' $file = $class?->getName() ?? "no class";',
        ));

        self::assertSame(
            ['no variable', 'no class'],
            $pool->submit(static fn(): array => [$GLOBALS['before'], $GLOBALS['file'] ?? null])->await(),
        );
    }

    public function testWorkersDrawDifferentNumbersAlthoughTheBootstrapHasDrawnOne(): void
    {
        $pool = $this->pool(3, bootstrap: $this->file('bootstrap.php', '<?php @lcg_value(); mt_rand();'));
        $gate = $this->gate();
        $futures = [];
        for ($i = 0; $i < 3; ++$i) {
            $futures[] = $pool->submit(static fn(): array => [$gate->pass("{$i}"), @lcg_value(), mt_rand()]);
        }
        $gate->awaitTasks(3);
        $gate->open();
        $drawn = array_map(static fn(Future $future): array => $future->await(), $futures);

        self::assertGreaterThan(1, \count(array_unique(array_column($drawn, 1), \SORT_REGULAR)));
        self::assertGreaterThan(1, \count(array_unique(array_column($drawn, 2))));
    }

    public function testABootstrapFileThatThrowsIsTheReasonWhyThereIsNoWorker(): void
    {
        $file = $this->file('bootstrap.php', '<?php throw new DomainException("no settings");');
        $pool = $this->pool(1, bootstrap: $file);
        $failed = self::failure(WorkerStartException::class, $pool->submit(Number::answer(...)));

        self::assertSame('no settings', $failed->thrown?->message);
        self::assertStringContainsString(
            ": the file {$file} threw DomainException: no settings",
            $failed->getMessage(),
        );
    }

    public function testABootstrapFileThatIsNotThereIsRefused(): void
    {
        self::thrown(\ValueError::class, fn() => $this->pool(1, bootstrap: $this->path('missing.php')));
    }

    public function testABootstrapFileIsWhereItWasWhenThePoolWasMade(): void
    {
        $directory = (string) getcwd();
        chdir(\dirname($this->file('bootstrap.php', '<?php define("SPINDLE_TEST_BOOTSTRAPPED", 7);')));
        try {
            $pool = $this->pool(1, bootstrap: 'bootstrap.php');
        } finally {
            chdir($directory);
        }

        self::assertSame(7, $pool->submit(static fn(): mixed => \constant('SPINDLE_TEST_BOOTSTRAPPED'))->await());
    }

    public function testAWorkerThatIsNotReadyInTimeIsTheReasonWhyThereIsNone(): void
    {
        $pool = $this->pool(1, startTimeout: 0.3, initialize: static fn() => WorkerTasks::hang());
        $failed = self::failure(WorkerStartException::class, $pool->submit(Number::answer(...)));

        self::assertStringContainsString('not ready within 0.3 seconds', $failed->getMessage());
    }

    public function testAWorkerThatCouldNotBeMadeReadyIsReplacedThoughNothingElseHappens(): void
    {
        $gate = $this->gate();
        [$first, $second] = [$this->path('first'), $this->path('second')];
        // only the second worker ends
        $pool = $this->pool(2, initialize: static fn() => @mkdir($first) || !@mkdir($second) || exit(3));
        $futures = [];
        foreach (['one', 'other'] as $name) {
            $futures[] = $pool->submit(static fn(): string => $gate->pass($name));
        }
        $gate->awaitTasks(2);
        $gate->open();

        self::assertFileExists($second);
        self::assertSame(['one', 'other'], array_map(static fn(Future $future): string => $future->await(), $futures));
    }

    public function testTheMemoryLimitComesFromTheOptionsOrThisProcess(): void
    {
        self::assertSame(
            '77M',
            $this->pool(1, memoryLimit: '77M')->submit(static fn(): mixed => \ini_get('memory_limit'))->await(),
        );
        self::assertSame(
            \ini_get('memory_limit'),
            $this->pool(1)->submit(static fn(): mixed => \ini_get('memory_limit'))->await(),
        );
    }

    public function testAWorkerInheritsNoDescriptor(): void
    {
        $server = Streams::server();
        $file = Streams::open($this->file('secret', 'x'), 'r');
        [$one, $other] = Streams::pair();
        $mine = array_filter(
            WorkerTasks::descriptors(),
            static fn(string $target): bool => preg_match('/^(socket|pipe):|secret/', $target) === 1,
        );
        $pool = $this->pool(1);
        $theirs = $pool->submit(WorkerTasks::descriptors(...))->await();

        self::assertGreaterThanOrEqual(4, \count($mine));
        self::assertSame([], array_values(array_intersect($theirs, $mine)));
        array_map(fclose(...), [$server, $file, $one, $other]);
    }

    public function testNothingOfATaskIsInArgumentsOrEnvironment(): void
    {
        $secret = 'hush-' . bin2hex(random_bytes(8));
        $pool = $this->pool(1);
        $task = static fn(string $argument): string => $argument === $secret
            ? file_get_contents('/proc/self/cmdline') . file_get_contents('/proc/self/environ')
            : '';
        [$seen] = iterator_to_array($pool->map([$secret], $task), false);

        self::assertNotSame('', $seen);
        self::assertStringNotContainsString($secret, $seen);
        self::assertStringNotContainsString($secret, print_r($pool, true));
    }

    public function testAWorkerHasTheWorkingDirectoryOfThisProcess(): void
    {
        self::assertSame(getcwd(), $this->pool(1)->submit(static fn(): string => (string) getcwd())->await());
    }

    public function testAWorkerHasTheEnvironmentOfThisProcess(): void
    {
        putenv('SPINDLE_TEST_GREETING=hello');
        try {
            self::assertSame(
                'hello',
                $this->pool(1)->submit(static fn(): string => (string) getenv('SPINDLE_TEST_GREETING'))->await(),
            );
        } finally {
            putenv('SPINDLE_TEST_GREETING');
        }
    }

    public function testTheStandardInputOfAWorkerIsAtItsEnd(): void
    {
        self::assertSame(
            '',
            $this->pool(1)->submit(static fn(): string => (string) file_get_contents('php://stdin'))->await(),
        );
    }

    public function testALoggerGetsStepsAtDebugLevelAndNoSecrets(): void
    {
        $logger = new class extends AbstractLogger {
            /** @var list<string> */
            public array $lines = [];

            public function log(mixed $level, string|\Stringable $message, array $context = []): void
            {
                \assert(\is_string($level));
                $this->lines[] = "{$level} {$message} " . json_encode($context);
            }
        };
        $pool = $this->pool(1, onOutput: static function (): void {}, logger: $logger);
        $secret = 'hush hush';
        $pool->submit(static function () use ($secret): string {
            echo $secret;

            return $secret;
        })->await();
        $pool->close();

        self::assertGreaterThanOrEqual(2, \count($logger->lines));
        self::assertSame([], preg_grep('/^debug /', $logger->lines, \PREG_GREP_INVERT));
        self::assertStringNotContainsString($secret, implode("\n", $logger->lines));
    }

    public function testALoggerMayKillThePoolWhenAWorkerIsStarted(): void
    {
        $logger = new KillingLogger('Worker {id} was started');
        $logger->pool = $pool = $this->pool(3, logger: $logger);
        self::thrown(
            ExecutorClosedException::class,
            static fn() => iterator_to_array($pool->map(range(1, 10), Number::double(...))),
        );

        self::assertSame(0, $pool->statistics()['workers']);
    }

    public function testALoggerMayKillThePoolWhenAWorkerHasEnded(): void
    {
        $logger = new KillingLogger('Worker {id} has ended ({how})');
        $pool = $this->pool(1, logger: $logger);
        for ($i = 0; $i < 20; ++$i) {
            $pool->submit(new Number($i))->await(); // further tasks wait in a busy worker
        }
        $logger->pool = $pool;
        $ending = $pool->submit(static fn(): never => exit(1));
        $waiting = $pool->submit(new Number(1));

        self::failure(WorkerCrashedException::class, $ending);
        self::failure(ExecutorClosedException::class, $waiting);
        self::assertSame(0, $pool->statistics()['workers']);
    }
}
