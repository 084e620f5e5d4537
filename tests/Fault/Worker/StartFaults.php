<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Worker;

use Amp\Future;
use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\Attributes\TestWith;
use Spindle\Tests\Eventually;
use Spindle\Tests\Scale;
use Spindle\Worker\WorkerPool;
use Spindle\Worker\WorkerPoolOptions;
use Spindle\Worker\WorkerStartException;

use function Amp\delay;
use function Amp\Future\await;

/** Tests workers that never become ready, and workers that are replaced. */
trait StartFaults
{
    /** @return iterable<string, array{string, string}> PHP code, and a pattern of the message */
    public static function bootstraps(): iterable
    {
        yield 'throws' => [
            'throw new \DomainException("not today");',
            '/DomainException: not today in .+bootstrap\.php:2/',
        ];
        yield 'raises an error' => [
            'undefined_function();',
            '/Call to undefined function undefined_function\(\) in .+bootstrap\.php:2/',
        ];
        yield 'exits with 0' => ['exit(0);', '/exit\(0?\)|exit code 0/'];
        yield 'exits with 3' => ['exit(3);', '/exit\(3?\)|exit code 3/'];
        yield 'does not parse' => ['this is no PHP', '/syntax error.+in .+bootstrap\.php:2/'];
        yield 'is killed' => ['posix_kill(getmypid(), SIGKILL);', '/signal 9/'];
        yield 'exhausts memory' => [
            'ini_set("memory_limit", "16M"); str_repeat("x", 1 << 25);',
            '/Allowed memory size of 16777216 bytes exhausted/',
        ];
    }

    #[DataProvider('bootstraps')]
    public function testABootstrapFailureIsReportedAndThePoolWorksAfterTheRepair(string $code, string $told): void
    {
        $pool = $this->pool(2, bootstrap: $this->file('bootstrap.php', "<?php\n{$code}\n"));
        $futures = array_map(static fn(int $number): Future => $pool->submit(new Call('square', $number)), range(1, 5));

        foreach (self::outcomes($futures) as $outcome) {
            self::assertInstanceOf(WorkerStartException::class, $outcome);
            self::assertMatchesRegularExpression($told, $outcome->getMessage());
        }
        $this->file('bootstrap.php', "<?php\n");
        self::assertUsable($pool);
    }

    public function testAMissingBootstrapFileIsReportedAndThePoolWorksAfterItsReturn(): void
    {
        $pool = $this->pool(1, bootstrap: $this->file('bootstrap.php', '<?php'));
        unlink($this->path('bootstrap.php'));
        $outcome = self::outcome($pool->submit(new Call('square', 1)));

        self::assertInstanceOf(WorkerStartException::class, $outcome);
        self::assertStringContainsString('bootstrap.php', $outcome->getMessage());
        $this->file('bootstrap.php', '<?php');
        self::assertUsable($pool);
    }

    public function testAHangingBootstrapIsEndedAndThePoolWorksAfterTheRepair(): void
    {
        $pools = $futures = [];
        foreach ([
            'until TERM wakes it' => 'sleep(1000);',
            'until it is killed' => 'while (true) { usleep(1000); }',
            'without ever letting a signal in' => 'pcntl_sigprocmask(SIG_BLOCK, [SIGTERM]); sleep(1000);',
            'with a subprocess' => 'exec("sleep 1000"); sleep(1000);',
        ] as $name => $code) {
            $pool = $this->pool(
                2,
                gracePeriod: 0.2,
                bootstrap: $this->file("{$name}.php", "<?php\n{$code}\n"),
                startTimeout: 3.0,
            );
            $futures[$name] = array_map(
                static fn(int $number): Future => $pool->submit(new Call('square', $number)),
                range(1, 5),
            );
            $pools[$name] = $pool;
        }
        foreach ($futures as $name => $ofAPool) {
            foreach (self::outcomes($ofAPool) as $outcome) {
                self::assertInstanceOf(WorkerStartException::class, $outcome, $name);
                self::assertStringEndsWith(
                    'not ready within 3 seconds. Check WorkerPoolOptions(bootstrap:), or increase startTimeout',
                    $outcome->getMessage(),
                    $name,
                );
            }
        }
        Eventually::holds(static fn(): bool => self::descendantsWith('sleep 1000') === [], 'nothing of it is left');
        foreach ($pools as $name => $pool) {
            $this->file("{$name}.php", "<?php\n");
            self::assertUsable($pool);
        }
    }

    /** @return iterable<string, array{ProcessEnding}> */
    public static function endingsOfInitialisers(): iterable
    {
        foreach (ProcessEnding::cases() as $ending) {
            yield $ending->value => [$ending];
        }
    }

    #[DataProvider('endingsOfInitialisers')]
    public function testAnInitialiserFailureIsReportedAndThePoolWorksAfterTheRepair(ProcessEnding $ending): void
    {
        $mended = $this->path('mended');
        $pool = $this->pool(2, initialize: static fn() => is_file($mended) || $ending->happens());
        $outcome = self::outcome($pool->submit(new Call('square', 1)));

        self::assertInstanceOf(WorkerStartException::class, $outcome);
        self::assertStringContainsString(match ($ending) {
            ProcessEnding::Error => ProcessEnding::MESSAGE,
            ProcessEnding::ExitWith0, ProcessEnding::ExitWith3 => "exit({$this->known($ending->exitCode())})",
            default => "signal {$ending->signal()}",
        }, $outcome->getMessage());
        touch($mended);
        self::assertUsable($pool);
    }

    public function testAnInitialiserThatHangsIsEnded(): void
    {
        $mended = $this->path('mended');
        $pool = $this->pool(
            2,
            gracePeriod: 0.2,
            startTimeout: 1.0,
            initialize: static fn(): int => is_file($mended) ? 0 : sleep(1000),
        );
        $outcome = self::outcome($pool->submit(new Call('square', 1)));

        self::assertInstanceOf(WorkerStartException::class, $outcome);
        touch($mended);
        self::assertUsable($pool);
    }

    public function testAFailedStartFailsNoTaskWhileAnotherWorkerIsRunning(): void
    {
        $first = $this->path('first');
        $pool = $this->pool(2, initialize: static fn() => @mkdir($first) || exit(3));
        $futures = array_map(
            fn(int $i): Future => $pool->submit(new Call('sleep', $this->path("begun{$i}"), 0.1)),
            range(1, 4),
        );

        self::assertSame(array_fill(0, 4, 'slept'), array_values(self::outcomes($futures)));
    }

    #[TestWith([1])]
    #[TestWith([2])]
    public function testWorkersThatAreReplacedAfterEachTaskRunEachTaskOnce(int $workers): void
    {
        $pool = $this->pool($workers, maxTasks: 1);
        $file = $this->path('starts');
        $count = Scale::isFull() ? 200 : 10;
        $futures = [];
        for ($i = 0; $i < $count; ++$i) {
            $futures[] = $pool->submit(new RecordedTask($i, $file, 0));
        }
        $outcomes = self::outcomes($futures);

        self::assertSame(range(0, $count - 1), self::numbersOf($outcomes));
        self::assertSame(array_fill(0, $count, 1), RecordedTask::starts($file));
        self::assertCount(
            $count,
            array_count_values(array_map(RecordedTask::workerOf(...), array_filter($outcomes, \is_int(...)))),
            'each by a worker of its own',
        );
    }

    public function testAWrongPhpBinaryIsReportedAndThePoolWorksAfterTheRepair(): void
    {
        $php = $this->script('php', 'exit 7');
        $pool = new WorkerPool(2, 0, new WorkerPoolOptions(context: $this->context(), php: $php));
        $outcome = self::outcome($pool->submit(new Call('square', 1)));

        self::assertInstanceOf(WorkerStartException::class, $outcome);
        self::assertStringContainsString('exit code 7', $outcome->getMessage());
        self::assertStringContainsString('. Check WorkerPoolOptions(php:)', $outcome->getMessage());
        $this->script('php', 'exec ' . escapeshellarg(\PHP_BINARY) . ' "$@"');
        self::assertUsable($pool);
    }

    public function testAMapEndsIfItsFirstTaskGetsNoWorkerBesideAnUnreadGenerator(): void
    {
        [$broken, $reading] = [$this->path('broken'), $this->path('reading')];
        $pool = $this->pool(
            2,
            retries: 1,
            maxTasks: 1,
            initialize: static fn(): bool => is_file($broken) && throw new \DomainException('no settings'),
        );
        $task = static function (int $number) use ($broken, $reading): \Generator {
            while ($number === 0 && !is_file($reading)) {
                usleep(1000);
            }
            $number === 0 && touch($broken) && throw new \RuntimeException('try again');

            return (static function () use ($reading): \Generator {
                touch($reading);
                for ($i = 0; $i < 5000; ++$i) {
                    yield str_repeat('x', 1000);
                }
            })();
        };

        $this->expectException(WorkerStartException::class);
        $this->expectExceptionMessage('threw DomainException: no settings');
        iterator_to_array($pool->map([0, 1], $task));
    }

    public function testAMapGetsAnExtraWorkerAlthoughStartsFailedForAnEarlierMap(): void
    {
        [$broken, $thrown] = [$this->path('broken'), $this->path('thrown')];
        $isBroken = static fn(): bool => is_file($broken) && throw new \DomainException('no settings');
        $pool = $this->pool(1, retries: 1, initialize: $isBroken);
        $task = static function (int $number) use ($thrown): \Generator {
            $number === 0 && !is_file($thrown) && touch($thrown) && throw new \RuntimeException('try again');

            return (static function (): \Generator {
                for ($i = 0; $i < 5000; ++$i) {
                    yield str_repeat('x', 1000);
                }
            })();
        };
        $pool->submit(new Call('square', 1))->await();
        touch($broken);
        try {
            iterator_to_array($pool->map([0, 1], $task));
            self::fail('no worker can be started');
        } catch (WorkerStartException $failure) {
            self::assertStringContainsString('threw DomainException: no settings', $failure->getMessage());
        }
        unlink($broken);
        unlink($thrown);

        $counts = [];
        foreach ($pool->map([0, 1], $task) as $items) {
            $counts[] = iterator_count($items);
        }
        self::assertSame([5000, 5000], $counts);
    }

    public function testAMapGetsAnExtraWorkerAlthoughStartsFailedBeforeTheMap(): void
    {
        [$broken, $starts, $thrown] = [$this->path('broken'), $this->path('starts'), $this->path('thrown')];
        $pool = $this->pool(2, retries: 1, initialize: static function () use ($broken, $starts): void {
            file_put_contents($starts, '.', \FILE_APPEND);
            is_file($broken) && throw new \DomainException('no settings');
        });
        $pool->submit(new Call('square', 1))->await();
        touch($broken);
        $wait = static function () use ($broken): void {
            while (is_file($broken)) {
                clearstatcache();
                usleep(1000);
            }
        };
        $waiting = [$pool->submit($wait), $pool->submit($wait)];
        Eventually::holds(static fn(): bool => \strlen((string) file_get_contents($starts)) >= 5, 'Starts fail', 30.0);
        unlink($broken);
        await($waiting);
        delay(3.0);
        $pool->resize(1);
        $task = static function (int $number) use ($thrown): \Generator {
            $number === 0 && !is_file($thrown) && touch($thrown) && throw new \RuntimeException('try again');

            return (static function (): \Generator {
                for ($i = 0; $i < 5000; ++$i) {
                    yield str_repeat('x', 1000);
                }
            })();
        };

        $counts = [];
        foreach ($pool->map([0, 1], $task) as $items) {
            $counts[] = iterator_count($items);
        }
        self::assertSame([5000, 5000], $counts);
    }
}
