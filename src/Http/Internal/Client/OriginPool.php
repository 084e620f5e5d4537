<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Client;

use Amp\Cancellation;
use Amp\CancelledException;
use Amp\CompositeCancellation;
use Revolt\EventLoop;
use Spindle\Http\Client\ClientClosedException;
use Spindle\Http\Client\ConnectFailedException;
use Spindle\Http\Client\HttpClientOptions;
use Spindle\Http\Client\RequestOptions;
use Spindle\Internal\Async\FiberQueue;
use Spindle\Internal\Network\Deadline;
use Spindle\Internal\Network\ForkedSockets;
use Spindle\Internal\Network\NetworkException;
use Spindle\Internal\Network\NetworkTimeoutException;

/** The connections of a client to one origin. Requests get connections in the order in which they arrive. */
final class OriginPool
{
    /** Interval of the timer that keeps the event loop running while a request waits, in seconds. */
    private const KEEP_RUNNING_INTERVAL = 60.0;

    /** Texts for messages: what a request waited for. CONNECTION_USE is for waits that a {@see StallTimeout} ended. */
    private const FREE_CONNECTION = 'a free connection';
    private const CONNECTION_USE = 'a use of the connections';

    /** @var list<ClientConnection> free connections, in the order in which they became free */
    private array $idle = [];

    /** @var array<int, ClientConnection> connections of running requests, by object id */
    private array $used = [];

    private int $opening = 0;

    public int $waitingCount = 0;

    private readonly FiberQueue $waiting;

    private bool $isClosing = false;

    private ?ClosedException $killReason = null;

    private readonly int $ownerPid;

    /** Cancellation that {@see kill()} requests, to end all attempts to connect. */
    private readonly PoolKill $killed;

    public function __construct(
        private readonly OriginConnector $connector,
        private readonly HttpClientOptions $options,
        private readonly DeadlineTimer $timer,
        private readonly FiberQueue $closing,
    ) {
        $this->ownerPid = (int) getmypid();
        $this->waiting = new FiberQueue();
        $this->killed = new PoolKill();
    }

    public function size(): int
    {
        return \count($this->idle) + \count($this->used) + $this->opening;
    }

    public function idleCount(): int
    {
        return \count($this->idle);
    }

    /** Counts responses unread for a second, perhaps in garbage cycles; 0 if no request waits for a connection. */
    public function blockingCount(): int
    {
        $before = $this->waitingCount > 0 ? hrtime(true) - 1_000_000_000 : 0;
        $isUnused = static fn(ClientConnection $used): bool => $used->isAnswered && $used->usedAt < $before;

        return \count(array_filter($this->used, $isUnused));
    }

    /**
     * Returns a free connection, or opens one. Waits while `maxConnectionsPerHost` connections are in use.
     *
     * @param int $end time by hrtime() at which the request must be complete
     * @param bool $mustBeNew true to open a new connection instead of reusing an idle one
     *
     * @throws ConnectFailedException|CancelledException|ClientClosedException
     */
    public function acquire(
        OutgoingRequest $request,
        RequestOptions $options,
        int $end,
        ?Cancellation $cancellation,
        bool $mustBeNew,
    ): ClientConnection {
        try {
            return $this->acquireInOrder($request, $options, $end, $cancellation, $mustBeNew);
        } finally {
            $this->closeUnneeded();
        }
    }

    private function acquireInOrder(
        OutgoingRequest $request,
        RequestOptions $options,
        int $end,
        ?Cancellation $cancellation,
        bool $mustBeNew,
    ): ClientConnection {
        $left = $deadline = $stall = $place = null;
        for ($isFirstInLine = $this->waitingCount === 0;; $isFirstInLine = true) {
            $this->throwIfKilled($request);
            $connection = $isFirstInLine && !$mustBeNew ? $this->takeIdle() : null;
            if ($connection !== null) {
                return $connection;
            }
            if ($isFirstInLine && $this->size() >= $this->options->maxConnectionsPerHost && $this->idle !== []) {
                array_shift($this->idle)->close(); // to make room for a new connection
            }
            if ($isFirstInLine && $this->size() < $this->options->maxConnectionsPerHost) {
                return $this->open($request, $options, DeadlineTimer::secondsUntil($end), $cancellation);
            }
            if ($place === null && !$options->waitsInQueue && $this->waitingCount >= $this->options->maxWaiting) {
                throw ConnectFailedException::of(
                    $request,
                    "{$this->waitingCount} requests already wait for a connection (HttpClientOptions::\$maxWaiting, or "
                        . 'RequestOptions::$waitsInQueue)',
                );
            }
            $limit = $this->options->acquireTimeout;
            if ($options->waitsInQueue) {
                $stall ??= new StallTimeout($limit, $this->unusedSeconds(...));
                $limit = \INF;
            }
            $left ??= DeadlineTimer::secondsUntil($end);
            $deadline ??= Deadline::in(min($left, $limit), $cancellation);
            try {
                $place = $this->await($deadline, $stall, $place);
            } catch (NetworkException $late) {
                throw $this->failureOfWait($request, $options, $left < $limit, $late);
            }
            $this->killIfForked();
        }
    }

    /** @param bool $isTimeout whether the time left for the whole request is shorter than the limit of the wait */
    private function failureOfWait(
        OutgoingRequest $request,
        RequestOptions $options,
        bool $isTimeout,
        NetworkException $late,
    ): ConnectFailedException {
        $seconds = $this->options->acquireTimeout;
        $unread = \count(array_filter($this->used, static fn(ClientConnection $used): bool => $used->isAnswered));
        $why = "no connection was free within {$seconds} s"
            . ($unread === 0 ? '' : "; bodies that were not read to their end use {$unread} of the connections");
        if ($late instanceof NetworkTimeoutException && $late->awaited === self::CONNECTION_USE) {
            $why = "all connections are in use, but for {$seconds} s, no fiber has read a response or sent a body";
        } elseif ($isTimeout) {
            $late = TimedOutException::ofRequest($options, self::FREE_CONNECTION, $late);

            return ConnectFailedException::of($request, $late->getMessage(), $late);
        }

        return ConnectFailedException::of($request, "{$why} (HttpClientOptions::\$acquireTimeout)", $late);
    }

    /**
     * Returns the seconds since a fiber last sent or read bytes on a connection of this pool. Returns 0 while a fiber
     * waits for bytes, while a connection is being opened, or if no request has a connection.
     */
    private function unusedSeconds(): float
    {
        $now = hrtime(true);
        $usedAt = $this->opening > 0 || $this->used === [] ? $now : 0;
        foreach ($this->used as $connection) {
            if ($usedAt >= $now) {
                break;
            }
            // While an upload waits for bytes from its source, the wait for the head of the response does not count as
            // a use. Otherwise, a source that never produces bytes would make other requests wait forever.
            $isPaused = $connection->isUploading && $connection->hasSent() && !$connection->isAnswered;
            $usedAt = max($usedAt, $connection->sentAt, $isPaused ? 0 : $connection->usedAt);
        }

        return max(0, $now - $usedAt) / 1e9;
    }

    /** Keeps a connection for the next request, after its current request is complete. */
    public function release(ClientConnection $connection): void
    {
        unset($this->used[spl_object_id($connection)]);
        $connection->end();
        $this->idle[] = $connection;
        $this->waiting->wakeFirst();
        $this->closeUnneeded();
    }

    public function drop(ClientConnection $connection): void
    {
        unset($this->used[spl_object_id($connection)]);
        $connection->close();
        $this->waiting->wakeFirst();
        $this->closeUnneeded();
    }

    public function closeIdle(): void
    {
        $kept = [];
        foreach ($this->idle as $connection) {
            $this->isYoung($connection) ? $kept[] = $connection : $connection->close();
        }
        $this->idle = $kept;
    }

    public function close(): void
    {
        $this->isClosing = true;
        $this->closeUnneeded();
    }

    /** Ends responses that no fiber reads: {@see ClientConnection::isUnread()}. */
    public function failUnread(ClosedException $reason): void
    {
        foreach ($this->used as $id => $connection) {
            if ($connection->isUnread()) {
                unset($this->used[$id]);
                $connection->fail($reason);
                $this->waiting->wakeFirst();
            }
        }
        $this->closeUnneeded();
    }

    public function uploadsInCurrentFiber(): bool
    {
        $uploads = static fn(ClientConnection $connection): bool => $connection->uploadFiber->isCurrent();

        return array_filter($this->used, $uploads) !== [];
    }

    public function kill(ClosedException $reason): void
    {
        $this->killReason ??= $reason;
        $this->waiting->wakeAll();
        $this->killed->request();
        foreach ([...$this->idle, ...$this->used] as $connection) {
            $connection->fail($reason);
        }
        [$this->idle, $this->used] = [[], []];
        $this->close();
    }

    /** Removes the parent's connections from this pool without closing them. Called in a forked child. */
    public function leaveToParent(): void
    {
        $streams = [];
        foreach ([...$this->idle, ...$this->used] as $connection) {
            if (\is_resource($connection->stream)) {
                $streams[] = $connection->stream;
            }
        }
        ForkedSockets::detach($streams);
        [$this->idle, $this->used] = [[], []];
    }

    /** @throws NetworkException|CancelledException */
    private function await(Deadline $deadline, ?StallTimeout $stall, ?int $place): int
    {
        $cancellation = $deadline->asCancellation();
        if ($stall !== null) {
            $cancellation = new CompositeCancellation($cancellation, $stall);
        }
        ++$this->waitingCount;
        // Keeps the event loop running, because the deadline's own timer does not.
        $loop = EventLoop::getDriver();
        $timer = $loop->repeat(self::KEEP_RUNNING_INTERVAL, static fn() => null);
        try {
            return $this->waiting->wait($cancellation, $this->waiting->wakeFirst(...), $this, $place);
        } catch (CancelledException $cancelled) {
            $this->wakeIfFree();

            throw $stall?->isRequested() === true
                ? NetworkTimeoutException::waitingFor(self::CONNECTION_USE, $this->options->acquireTimeout)
                : $deadline->failureOf($cancelled, self::FREE_CONNECTION);
        } finally {
            $loop->cancel($timer);
            --$this->waitingCount;
        }
    }

    private function takeIdle(): ?ClientConnection
    {
        while ($this->idle !== []) {
            $connection = array_pop($this->idle);
            if ($this->isYoung($connection) && $connection->isUsable()) {
                $this->used[spl_object_id($connection)] = $connection;
                $this->wakeIfFree();

                return $connection;
            }
            $connection->close();
        }

        return null;
    }

    /**
     * Wakes the first waiting request if a connection is free or can be opened. When the woken request has a
     * connection, it calls this method again, because the next request may also get one.
     */
    private function wakeIfFree(): void
    {
        if ($this->idle !== [] || $this->size() < $this->options->maxConnectionsPerHost) {
            $this->waiting->wakeFirst();
        }
    }

    private function closeUnneeded(): void
    {
        if (!$this->isClosing) {
            return;
        }
        while ($this->waitingCount === 0 && $this->idle !== []) {
            array_pop($this->idle)->close();
        }
        $this->closing->wakeAll();
    }

    private function isYoung(ClientConnection $connection): bool
    {
        $now = hrtime(true);

        return $now - $connection->openedAt < $this->options->maxLifetime * 1e9
            && $now - $connection->freeSince < $this->options->idleTimeout * 1e9;
    }

    private function open(
        OutgoingRequest $request,
        RequestOptions $options,
        float $left,
        ?Cancellation $cancellation,
    ): ClientConnection {
        ++$this->opening;
        $this->wakeIfFree();
        try {
            $either = $cancellation === null ? $this->killed : new CompositeCancellation($this->killed, $cancellation);
            $stream = $this->connector->connect($options, Deadline::in(min($left, $options->connectTimeout), $either));
            $connection = new ClientConnection($stream->release(), $this->timer, $this->connector->peer());
        } catch (CancelledException $cancelled) {
            $this->throwIfKilled($request);

            throw $cancelled;
        } catch (NetworkException $failure) {
            $this->killIfForked();
            $this->throwIfKilled($request);
            $failure = match (true) {
                !$failure instanceof NetworkTimeoutException => $failure,
                $left < $options->connectTimeout => TimedOutException::ofRequest($options, $failure->awaited, $failure),
                default => TimedOutException::ofConnect($options->connectTimeout, $failure),
            };
            throw ConnectFailedException::of($request, $this->connector->explain($failure), $failure);
        } finally {
            --$this->opening;
            if (!isset($connection)) {
                $this->waiting->wakeFirst();
            }
        }
        $this->killIfForked();
        $this->throwIfKilled($request);

        return $this->used[spl_object_id($connection)] = $connection;
    }

    /** Kills the pool in a fork. Called after each wait, because only the parent process may continue its requests. */
    private function killIfForked(): void
    {
        if ($this->ownerPid !== getmypid()) {
            $this->kill(ClosedException::inFork());
        }
    }

    private function throwIfKilled(OutgoingRequest $request): void
    {
        if ($this->killReason !== null) {
            throw ClientClosedException::of($request, $this->killReason->getMessage(), $this->killReason);
        }
    }
}
