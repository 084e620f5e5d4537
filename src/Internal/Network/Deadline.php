<?php

declare(strict_types=1);

namespace Spindle\Internal\Network;

use Amp\Cancellation;
use Amp\CancelledException;
use Amp\CompositeCancellation;
use Revolt\EventLoop;
use Spindle\Internal\Async\Condition;
use Spindle\Internal\Async\Timeout;
use Spindle\Internal\NumberRange;

/** Waits for streams of a client. Each wait throws when the deadline passes or the caller cancels. */
final readonly class Deadline
{
    /**
     * @param float $at time of the deadline in seconds, by {@see now()}
     * @param float $seconds timeout that error messages name
     */
    private function __construct(private float $at, private float $seconds, private ?Cancellation $cancellation) {}

    public static function in(float $seconds, ?Cancellation $cancellation): self
    {
        return new self(self::now() + $seconds, $seconds, $cancellation);
    }

    /** Returns the deadline of one attempt: the remaining time is divided by the number of remaining attempts. */
    public function perAttempt(int $attempts): self
    {
        return $attempts < 2 ? $this : self::in(round(max(0.0, $this->left()) / $attempts, 3), $this->cancellation);
    }

    public function within(float $seconds): self
    {
        return $this->left() <= $seconds ? $this : self::in($seconds, $this->cancellation);
    }

    public function orCancelledBy(Cancellation $other): self
    {
        return new self(
            $this->at,
            $this->seconds,
            $this->cancellation === null ? $other : new CompositeCancellation($this->cancellation, $other),
        );
    }

    /**
     * Suspends until the stream is readable.
     *
     * @param resource $stream
     * @param string $for what the caller waits for, such as "the TLS handshake"
     *
     * @throws NetworkException when the deadline has passed
     * @throws CancelledException when the caller has cancelled
     */
    public function readable($stream, string $for): void
    {
        $this->wait(static fn(\Closure $resume): array => [EventLoop::onReadable($stream, $resume)], $for);
    }

    /**
     * @param resource $stream
     *
     * @throws NetworkException|CancelledException
     */
    public function writable($stream, string $for): void
    {
        $this->wait(static fn(\Closure $resume): array => [EventLoop::onWritable($stream, $resume)], $for);
    }

    /**
     * Suspends until one of the streams is writable.
     *
     * @param array<int, resource> $streams
     *
     * @return int key of the stream
     *
     * @throws NetworkException|CancelledException
     */
    public function firstWritable(array $streams, string $for): int
    {
        $first = -1;
        $this->wait(static function (\Closure $resume) use ($streams, &$first): array {
            $watchers = [];
            foreach ($streams as $key => $stream) {
                $watchers[] = EventLoop::onWritable($stream, static function () use ($resume, $key, &$first): void {
                    $first = $key;
                    $resume();
                });
            }

            return $watchers;
        }, $for);

        return $first;
    }

    public function awaitTurn(string $for): void
    {
        $this->wait(static fn(\Closure $resume): array => [EventLoop::delay(0, $resume)], $for);
    }

    /** Returns a cancellation that is requested when the deadline has passed, or when the caller cancels. */
    public function asCancellation(): Cancellation
    {
        $timeout = new Timeout($this->left());

        return $this->cancellation === null ? $timeout : new CompositeCancellation($timeout, $this->cancellation);
    }

    /** Returns why {@see asCancellation()} ended a wait: `$cancelled` if the caller cancelled, otherwise a timeout. */
    public function failureOf(CancelledException $cancelled, string $for): NetworkException|CancelledException
    {
        return $this->cancellation?->isRequested() === true
            ? $cancelled
            : NetworkTimeoutException::waitingFor($for, $this->seconds);
    }

    public function throwIfCancelled(): void
    {
        $this->cancellation?->throwIfRequested();
    }

    /** @param \Closure(\Closure(): void): list<string> $watch registers callbacks of the loop; returns their ids */
    private function wait(\Closure $watch, string $for): void
    {
        $this->cancellation?->throwIfRequested();
        $left = $this->left();
        if ($left <= 0) {
            throw NetworkTimeoutException::waitingFor($for, $this->seconds);
        }
        $loop = EventLoop::getDriver();
        $condition = new Condition();
        $watchers = $watch(static fn() => $condition->notify());
        if ($left < NumberRange::MAX_SECONDS) {
            $late = fn() => $condition->fail(NetworkTimeoutException::waitingFor($for, $this->seconds));
            $watchers[] = $loop->delay($left, $late);
        }
        try {
            $condition->wait($this->cancellation);
        } finally {
            array_map($loop->cancel(...), $watchers);
        }
    }

    private function left(): float
    {
        return $this->at - self::now();
    }

    private static function now(): float
    {
        return hrtime(true) / 1e9;
    }
}
