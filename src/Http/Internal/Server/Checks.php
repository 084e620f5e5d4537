<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Server;

use Amp\CancelledException;
use Amp\Future;
use Amp\TimeoutCancellation;
use Spindle\Internal\Clock;

use function Amp\async;

/** Runs the health checks of an application. A check that is still running is not started a second time. */
final class Checks
{
    /** Seconds after which a check is late: less than 1, so that clients with a timeout of 1 s still get an answer. */
    public const TIMEOUT_SECONDS = 0.7;

    public const LATE = 'It took longer than ' . self::TIMEOUT_SECONDS . ' s';

    private const RETURNED_FALSE = 'It returned false';

    /**
     * Running checks by name: a future of the failure's reason (null for success), and the time by {@see Clock::now()}
     * from which the check is late.
     *
     * @var array<string, array{Future<string|null>, float}>
     */
    private array $running = [];

    /** @param array<string, \Closure(): mixed> $checks */
    public function __construct(private readonly array $checks) {}

    /**
     * Runs the checks concurrently. Waits until each has ended or is late. Does not start a check that is running.
     *
     * @return array<string, string|null> by name: the reason of the failure; null for success
     */
    public function run(): array
    {
        $running = [];
        foreach ($this->checks as $name => $check) {
            $running[$name] = $this->running[$name] ??= $this->start($name, $check);
        }

        return array_map(static fn(array $check): ?string => self::result(...$check), $running);
    }

    /** @return array<string, string> by name: what {@see run()} returns when all checks are late */
    public function lateResults(): array
    {
        return array_map(static fn(): string => self::LATE, $this->checks);
    }

    /**
     * @param \Closure(): mixed $check
     *
     * @return array{Future<string|null>, float}
     */
    private function start(int|string $name, \Closure $check): array
    {
        $reason = async(function () use ($name, $check): ?string {
            try {
                return $check() === false ? self::RETURNED_FALSE : null;
            } catch (\Throwable $failure) {
                return $failure->getMessage();
            } finally {
                unset($this->running[$name]);
            }
        });

        return [$reason, Clock::now() + self::TIMEOUT_SECONDS];
    }

    /** @param Future<string|null> $reason */
    private static function result(Future $reason, float $until): ?string
    {
        try {
            return $reason->await(new TimeoutCancellation(max(0.0, $until - Clock::now())));
        } catch (CancelledException) {
            return self::LATE;
        }
    }
}
