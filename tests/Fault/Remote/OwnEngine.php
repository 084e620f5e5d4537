<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Remote;

use PHPUnit\Framework\Attributes\After;
use Spindle\Remote\Broker;
use Spindle\Remote\BrokerUnavailableException;
use Spindle\Remote\JobRetryPolicy;
use Spindle\Remote\RedisBroker;
use Spindle\Remote\RemoteExecutor;
use Spindle\Remote\RemoteOptions;
use Spindle\Remote\Testing\TemporaryRedis;
use Spindle\Remote\Testing\TemporaryRedisOptions;
use Spindle\Tests\Eventually;
use Spindle\Tests\OwnDirectory;
use Spindle\Tests\Remote\RunsAgents;

/** A separate Redis for a test that injects faults, and a queue in it. */
trait OwnEngine
{
    use OwnDirectory;
    use RunsAgents;

    /** Short lease, heartbeat and lease margin in seconds. */
    protected const SHORT = [2.0, 0.2, 0.8];

    private ?TemporaryRedis $redis = null;
    private string $queue = '';

    /** @var array<string, array<int, true>> brokers of this process, by id, whose call found no engine, by method */
    private array $unanswered = [];

    /** @param array<string, string|int|bool> $settings */
    private function engine(array $settings = [], ?TemporaryRedisOptions $options = null): TemporaryRedis
    {
        return $this->redis ??= TemporaryRedis::start($settings, $options);
    }

    #[After(-2)]
    protected function stopEngine(): void
    {
        $this->redis?->stop();
        $this->redis = null;
    }

    private function queue(): string
    {
        return $this->queue === '' ? $this->queue = self::newQueue() : $this->queue;
    }

    private function executor(
        ?RedisBroker $broker = null,
        float $brokerRetryTimeout = 20.0,
        ?float $timeout = null,
    ): RemoteExecutor {
        return new RemoteExecutor(
            $this->observed($broker ?? new RedisBroker($this->engine()->url())),
            $this->queue(),
            self::keys(),
            new JobRetryPolicy(delay: 0.05),
            new RemoteOptions(timeout: $timeout, brokerRetryTimeout: $brokerRetryTimeout),
        );
    }

    /** Returns once a call of each of `$executors` executors of this process has found no engine that serves it. */
    private function waitForUnansweredCalls(string $method, int $executors = 1): void
    {
        $this->unanswered = [];
        Eventually::holds(
            fn(): bool => $this->unansweredCalls($method) >= $executors,
            "{$method}() has found no engine that serves it",
        );
    }

    /** Number of executors that made such a call. */
    private function unansweredCalls(string $method): int
    {
        return \count($this->unanswered[$method] ?? []);
    }

    private function observed(RedisBroker $real): Broker
    {
        $broker = self::createStub(Broker::class);
        $id = spl_object_id($real);
        foreach (get_class_methods(Broker::class) as $method) {
            $call = (new \ReflectionMethod($real, $method))->getClosure($real);
            $broker->method($method)->willReturnCallback(
                function (mixed ...$arguments) use ($call, $method, $id): mixed {
                    try {
                        return $call(...$arguments);
                    } catch (BrokerUnavailableException $failure) {
                        $this->unanswered[$method][$id] = true;

                        throw $failure;
                    }
                },
            );
        }

        return $broker;
    }

    /** @return array<string, int> */
    private function statistics(): array
    {
        return (new RedisBroker($this->engine()->socketUrl()))->statistics($this->queue());
    }

    /** Returns a number from INFO. */
    private function engineInfo(string $name): int
    {
        $info = $this->engine()->command('INFO', 'all');

        return \is_string($info) && preg_match("/^{$name}[:=](\\d+)/m", $info, $match) === 1
            ? (int) $match[1]
            : self::fail("The engine says nothing of {$name}");
    }

    private function directory(string $name): string
    {
        $directory = $this->path($name);
        mkdir($directory);

        return $directory;
    }

    private function waitForFile(string $file, float $seconds = 10.0): void
    {
        Eventually::holds(static fn(): bool => is_file($file), "{$file} is there", $seconds);
    }

    /** Returns seconds of a clock that all processes share, like {@see CountedTasks::tick()}. */
    private static function tick(string $file): float
    {
        return (int) file_get_contents($file) / 1e9;
    }
}
