<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Remote;

use Spindle\Remote\InvalidSignatureException;
use Spindle\Remote\JobRetryPolicy;
use Spindle\Remote\JobStatus;
use Spindle\Remote\RedisBroker;
use Spindle\Remote\RemoteExecutor;
use Spindle\Remote\RemoteOptions;
use Spindle\Tests\CatchesThrown;
use Spindle\Tests\Eventually;
use Spindle\Tests\Host;
use Spindle\Tests\ReadsErrorLog;
use Spindle\Tests\Remote\Redis;
use Spindle\Tests\Remote\RunsAgents;
use Spindle\Tests\TidyTestCase;
use Spindle\Worker\TaskContext;
use Spindle\Worker\TaskFailedException;
use Symfony\Component\Process\Process;

use function Amp\Future\await;

/** Agents whose version of the code differs from that of their callers. */
final class MixedVersionsTest extends TidyTestCase
{
    use CatchesThrown;
    use ReadsErrorLog;
    use RunsAgents;

    /** Name of a class that only some agents have. */
    private const SHOP = 'namespace Spindle\Tests\Fault\Remote\Shop; '
        . 'final class Order { public function __construct(public int $number) {} ';

    private string $queue = '';

    public function testAJobWithAMissingClassRunsOnAnAgentThatHasIt(): void
    {
        $executor = $this->executor(new JobRetryPolicy(maxAttempts: 100, delay: 0.02, maxDelay: 0.1));
        $this->agent($this->queue(), 1);
        $this->agentWith('public static function price(int $number): int { return 2 * $number; }');
        $price = self::shop();
        $futures = [];
        for ($i = 1; $i <= 20; ++$i) {
            $futures[] = $executor->submit(
                static fn(): mixed
                    => \is_callable($price) ? $price($i) : throw new \DomainException("no {$price}() here"),
            );
            $futures[] = $executor->submit(static fn(): int => 100);
        }

        self::assertSame(20 * 21 + 2000, array_sum(await($futures)));
        self::assertSame([0, 40], [$this->statistics()['dead'], $this->statistics()['done_total']]);
    }

    public function testAMissingClassDoesNotUseUpAllTriesWhereAnotherAgentHasIt(): void
    {
        $executor = $this->executor(new JobRetryPolicy(maxAttempts: 3, delay: 0.02));
        $this->agent($this->queue(), 4);
        $this->agentWith('public static function price(int $number): int { return 2 * $number; }');
        self::assertSame(8, $executor->submit(static fn(): int => 8)->await());
        Eventually::holds(fn(): bool => $this->statistics()['agents'] === 2, 'both are there');
        $class = __NAMESPACE__ . '\Shop\Order';
        $futures = [];
        for ($i = 1; $i <= 20; ++$i) {
            $futures[] = $executor->submit(static fn(): mixed => $class::price($i));
        }

        self::assertSame(20 * 21, array_sum(await($futures)));
        self::assertSame(0, $this->statistics()['dead']);
    }

    public function testAReportThatTheCallerCannotReadIsDropped(): void
    {
        $reports = [];
        $onReport = static function (mixed $report) use (&$reports): void {
            $reports[] = $report;
        };
        $executor = $this->executor(options: new RemoteOptions(onReport: $onReport));
        $this->agentWith('public static function price(int $number): int { return 2 * $number; }');
        $class = substr(self::shop(), 0, -\strlen('::price'));
        $task = static function () use ($class): int {
            TaskContext::current()->report(1);
            TaskContext::current()->report(class_exists($class) ? new $class(7) : null);
            TaskContext::current()->report(2);

            return 5;
        };
        $log = $this->errorLogOf(static function () use ($executor, $task, &$reports): void {
            self::assertSame(5, $executor->submit($task)->await());
            Eventually::holds(static function () use (&$reports): bool {
                return $reports === [1, 2];
            }, 'the other reports arrive');
        });

        self::assertStringContainsString("no class {$class}", implode($log));
    }

    public function testAJobWhoseClassNoAgentHasIsADeadLetterUntilTheClassExists(): void
    {
        $executor = $this->executor(new JobRetryPolicy(maxAttempts: 3, delay: 0.02));
        $old = $this->agent($this->queue());
        $id = Host::call(
            self::class . '::order',
            [
                Redis::shared()->url(),
                $this->queue(),
                $this->code('public function number(): int { return $this->number; }'),
                __NAMESPACE__ . '\Shop\Order',
            ],
        );
        self::assertIsString($id);
        self::assertSame(5, $executor->submit(static fn(): int => 5)->await());
        $failed = self::thrown(TaskFailedException::class, static fn() => $executor->attach($id)->await());
        self::assertSame(3, $failed->attempts);
        self::assertStringContainsString(
            'A worker has no class Spindle\Tests\Fault\Remote\Shop\Order',
            $failed->getMessage(),
        );
        self::assertStringContainsString('no class Spindle\Tests\Fault\Remote\Shop\Order', $this->whyDead($id));

        $this->stop($old);
        $other = $this->agentWith('public function numeral(): int { return $this->number; }');
        self::assertSame(1, $this->broker()->retryDeadLetters($this->queue(), [$id]));
        $failed = self::thrown(TaskFailedException::class, static fn() => $executor->attach($id)->await());
        self::assertStringContainsString(
            'A worker has no method Spindle\Tests\Fault\Remote\Shop\Order::number()',
            $failed->getMessage(),
        );

        $this->stop($other);
        $this->agentWith('public function number(): int { return $this->number; }');
        self::assertSame(1, $this->broker()->retryDeadLetters($this->queue(), [$id]));
        self::assertSame(77, $executor->attach($id)->await());
    }

    public function testOutcomesOfAMapNameTheAgentThatLacksTheirClass(): void
    {
        require $this->file('basket.php', '<?php namespace ' . __NAMESPACE__ . '; final class Basket {}');
        $basket = self::basket();
        $executor = $this->executor(new JobRetryPolicy(maxAttempts: 2, delay: 0.02));
        $this->agent($this->queue());
        $input = ['argument' => new $basket(), 'result' => null];
        $messages = [];
        $task = static fn(mixed $given): object => new $basket();
        foreach ($executor->mapOutcomes($input, $task) as $key => $outcome) {
            $messages[$key] = $outcome->failure?->getMessage() ?? 'none';
        }

        self::assertSame(array_keys($input), array_keys($messages));
        foreach (["did not run: A worker has no class {$basket}. ", "Class \"{$basket}\" not found"] as $i => $reason) {
            $message = array_values($messages)[$i];
            self::assertStringContainsString($reason, $message);
            self::assertMatchesRegularExpression('~ \(on the agent \S+:\d+:[0-9a-f]{12}\).* \(attempt 2\)~', $message);
            self::assertStringContainsString('deploy the code and reload the agent with SIGHUP', $message);
        }
    }

    public function testAFrameOfANewerVersionIsRefusedAndKept(): void
    {
        $redis = Redis::shared();
        $executor = $this->executor();
        $id = $executor->dispatch(static fn(): int => 7);
        $frame = $redis->command('HGET', "spindle:{{$this->queue()}}:jobs", $id);
        self::assertIsString($frame);
        $version = \ord($frame[0]);
        $newer = $frame;
        $newer[0] = \chr($version + 1);
        $redis->command('HSET', "spindle:{{$this->queue()}}:jobs", $id, $newer);
        $this->agent($this->queue());
        self::assertSame(8, $executor->submit(static fn(): int => 8)->await());
        $told = 'it has format version ' . ($version + 1) . ', and this process reads version ' . $version;
        $refused = self::thrown(InvalidSignatureException::class, static fn() => $executor->attach($id)->await());
        self::assertStringContainsString($told, $refused->getMessage());
        self::assertStringContainsString($told, $this->whyDead($id));
        self::assertSame($newer, $redis->command('HGET', "spindle:{{$this->queue()}}:dead", $id), 'it is kept');

        $redis->command('HSET', "spindle:{{$this->queue()}}:dead", $id, $frame); // as if a newer caller could decode it
        $this->broker()->retryDeadLetters($this->queue(), [$id]);
        self::assertSame(7, $executor->attach($id)->await());
    }

    /** Submits a method of the class as a task, in a process that has the class. */
    public static function order(string $address, string $queue, string $code, string $class): string
    {
        require $code;
        $task = [new $class(77), 'number'];
        $broker = new RedisBroker($address);
        $executor = new RemoteExecutor($broker, $queue, self::keys(), new JobRetryPolicy(maxAttempts: 3, delay: 0.02));

        return \is_callable($task) ? $executor->dispatch($task) : '';
    }

    private static function shop(): string
    {
        return __NAMESPACE__ . '\Shop\Order::price';
    }

    /** @return class-string */
    private static function basket(): string
    {
        return __NAMESPACE__ . '\Basket'; // @phpstan-ignore return.type (the test defines the class)
    }

    private function agentWith(string $method): Process
    {
        return $this->agents[] = Host::start(
            AgentWithOtherCode::class . '::run',
            [Redis::shared()->url(), $this->queue(), $this->code($method)],
        );
    }

    private function code(string $method): string
    {
        return $this->file(hash('crc32', $method) . '.php', '<?php ' . self::SHOP . $method . '}');
    }

    private function whyDead(string $id): string
    {
        Eventually::holds(
            fn(): bool => isset($this->broker()->listJobs($this->queue(), JobStatus::Dead, 10)[$id]),
            'it is a dead letter',
        );

        return (string) $this->broker()->listJobs($this->queue(), JobStatus::Dead, 1, $id)[$id]['reason'];
    }

    private function queue(): string
    {
        return $this->queue === '' ? $this->queue = self::newQueue() : $this->queue;
    }

    private function executor(
        JobRetryPolicy $retries = new JobRetryPolicy(),
        RemoteOptions $options = new RemoteOptions(),
    ): RemoteExecutor {
        return new RemoteExecutor($this->broker(), $this->queue(), self::keys(), $retries, $options);
    }

    private function broker(): RedisBroker
    {
        return new RedisBroker(Redis::shared()->url());
    }

    /** @return array<string, int> */
    private function statistics(): array
    {
        return $this->broker()->statistics($this->queue());
    }
}
