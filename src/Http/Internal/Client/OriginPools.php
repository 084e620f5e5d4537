<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Client;

use Amp\CancelledException;
use Amp\CompositeCancellation;
use Amp\DeferredCancellation;
use Amp\Internal\Cancellable;
use Amp\Internal\WrappedCancellation;
use Revolt\EventLoop\FiberLocal;
use Revolt\EventLoop\Internal\DeferCallback;
use Revolt\EventLoop\Internal\DriverSuspension;
use Revolt\EventLoop\Internal\StreamReadableCallback;
use Revolt\EventLoop\Internal\StreamWritableCallback;
use Spindle\Http\Client\ClientClosedException;
use Spindle\Http\Client\ConnectFailedException;
use Spindle\Http\Client\ConnectionLostException;
use Spindle\Http\Client\HttpClientOptions;
use Spindle\Http\Client\InvalidRequestException;
use Spindle\Http\Client\InvalidResponseException;
use Spindle\Http\Client\RedirectLimitException;
use Spindle\Http\Client\RequestOptions;
use Spindle\Http\Client\RequestRetryPolicy;
use Spindle\Http\Client\RequestTimeoutException;
use Spindle\Http\Internal\Answer\HttpDate;
use Spindle\Http\Internal\Message\BadMessageException;
use Spindle\Http\Internal\Message\ChunkDecoder;
use Spindle\Http\Internal\Message\Fields;
use Spindle\Http\Internal\Message\MessageLimits;
use Spindle\Http\Internal\Message\SingleReader;
use Spindle\Http\Internal\Message\StreamSize;
use Spindle\Http\Response;
use Spindle\Http\ServerSentEvent;
use Spindle\Internal\Async\CallbackFiber;
use Spindle\Internal\Async\Condition;
use Spindle\Internal\Async\FiberQueue;
use Spindle\Internal\Async\LoopTurn;
use Spindle\Internal\Async\TimeSlice;
use Spindle\Internal\FreeMemory;
use Spindle\Internal\GarbageCycles;
use Spindle\Internal\Network\ClientStream;
use Spindle\Internal\Network\WriteBuffer;
use Spindle\Internal\OwnLoop;
use Spindle\Internal\Preload;
use Spindle\Internal\WeakTimer;

/** The connections of a client. Each combination of origin, proxy, `$tls` and `$blocksPrivateAddresses` has a pool. */
final class OriginPools
{
    private const IDLE_CHECK_INTERVAL = 1.0;

    /** Classes that requests need. They are loaded early, because loading fails while no file descriptor is free. */
    private const PRELOADED = [
        BadMessageException::class,
        Call::class,
        CallbackFiber::class,
        Cancellable::class,
        CancelledException::class,
        ChunkDecoder::class,
        ClientClosedException::class,
        ClientConnection::class,
        ClientExchange::class,
        ClosedException::class,
        CompositeCancellation::class,
        Condition::class,
        ConnectFailedException::class,
        ConnectionEndedException::class,
        ConnectionLostException::class,
        DeferCallback::class,
        DeferredCancellation::class,
        DriverSuspension::class,
        EventReader::class,
        FailedRequest::class,
        FiberLocal::class,
        Fields::class,
        FreeMemory::class,
        GarbageCycles::class,
        HttpDate::class,
        InflatedBody::class,
        InvalidRequestException::class,
        InvalidResponseException::class,
        LoopTurn::class,
        MalformedResponseException::class,
        MessageLimits::class,
        OriginConnector::class,
        OriginPool::class,
        OutgoingRequest::class,
        OwnLoop::class,
        PoolKill::class,
        Redirect::class,
        RedirectLimitException::class,
        RequestRetryPolicy::class,
        RequestTimeoutException::class,
        Response::class,
        ResponseBody::class,
        ResponseHead::class,
        ServerSentEvent::class,
        SingleReader::class,
        StallTimeout::class,
        StreamReadableCallback::class,
        StreamSize::class,
        StreamWritableCallback::class,
        TimedOutException::class,
        TimeSlice::class,
        UnreadableBodyException::class,
        Upload::class,
        Url::class,
        WrappedCancellation::class,
        WriteBuffer::class,
    ];

    /** Secret for hash_hmac(). Dumps show the keys of $pools, so these keys have only hashes of proxies' passwords. */
    private static ?string $hashKey = null;

    /** @var array<string, OriginPool> */
    private array $pools = [];

    private readonly DeadlineTimer $timer;

    /** Callback id of the timer of {@see checkIdle()}; '' if there is no timer. */
    private string $idleTimer = '';

    private int $ownerPid;

    /** Event loop of the connections and timers. {@see dropForeignPools()} replaces it. */
    public OwnLoop $loop;

    private bool $isClosing = false;

    private ?ClosedException $killReason = null;

    /** @param FiberQueue $closing fibers to wake when a connection is closed or released after {@see close()} */
    public function __construct(private readonly HttpClientOptions $options, private readonly FiberQueue $closing)
    {
        $this->timer = new DeadlineTimer();
        $this->ownerPid = (int) getmypid();
        $this->loop = new OwnLoop();
        Preload::load(...self::PRELOADED, ...ClientStream::PRELOADED);
    }

    /**
     * Closes the connections, because a response may keep a pool in memory for longer. Keeps the timer of the
     * deadlines: a fiber may still read the body of a response.
     */
    public function __destruct()
    {
        $this->close();
        $this->loop->cancel($this->idleTimer);
    }

    public function for(Url $url, ?Url $proxy, RequestOptions $options): OriginPool
    {
        $key = $url->origin();
        if ($proxy !== null) {
            self::$hashKey ??= random_bytes(16);
            $key .= " {$proxy->origin()} " . hash_hmac('sha256', (string) $proxy->authorization(), self::$hashKey);
        }
        if ($url->scheme === 'https') {
            $key .= ' ' . serialize($options->tls);
        }
        if ($options->blocksPrivateAddresses) {
            $key .= ' public';
        }
        if (!isset($this->pools[$key])) {
            $connector = new OriginConnector(Url::of($url->origin()), $proxy); // without the query, which may be secret
            $pool = $this->pools[$key] = new OriginPool($connector, $this->options, $this->timer, $this->closing);
            $this->isClosing ? $pool->close() : null;
            $this->killReason === null ? null : $pool->kill($this->killReason);
        }
        $this->isClosing ? null : $this->checkIdleSoon();

        return $this->pools[$key];
    }

    public function size(): int
    {
        return $this->sum(static fn(OriginPool $pool): int => $pool->size());
    }

    /** @return array{origins: int, connections: int, idle: int, waiting: int} */
    public function statistics(): array
    {
        return [
            'origins' => \count($this->pools),
            'connections' => $this->size(),
            'idle' => $this->sum(static fn(OriginPool $pool): int => $pool->idleCount()),
            'waiting' => $this->sum(static fn(OriginPool $pool): int => $pool->waitingCount),
        ];
    }

    /** Closes each connection as soon as no request needs it, also in pools that a redirect of a running call adds. */
    public function close(): void
    {
        $this->isClosing = true;
        foreach ($this->pools as $pool) {
            $pool->close();
        }
    }

    public function failUnread(ClosedException $reason): void
    {
        foreach ($this->pools as $pool) {
            $pool->failUnread($reason);
        }
    }

    public function uploadsInCurrentFiber(): bool
    {
        return array_filter($this->pools, static fn(OriginPool $pool): bool => $pool->uploadsInCurrentFiber()) !== [];
    }

    /** Kills all pools. A pool that a running call creates later, to follow a redirect, is killed immediately. */
    public function kill(ClosedException $reason): void
    {
        [$this->isClosing, $this->killReason] = [true, $this->killReason ?? $reason];
        foreach ($this->pools as $pool) {
            $pool->kill($reason);
        }
        $this->stopTimers();
    }

    public function stopTimers(): void
    {
        $this->loop->cancel($this->idleTimer);
        $this->idleTimer = '';
        $this->timer->stop();
    }

    /** Drops all pools in a fork, or if the event loop was replaced. Returns whether either was the case. */
    public function dropForeignPools(): bool
    {
        $isInFork = $this->ownerPid !== getmypid();
        if (!$isInFork && $this->loop->isCurrent()) {
            return false;
        }
        foreach ($this->pools as $pool) {
            $isInFork ? $pool->leaveToParent() : $pool->kill(ClosedException::inOtherLoop());
        }
        $this->stopTimers();
        [$this->pools, $this->ownerPid, $this->loop] = [[], (int) getmypid(), new OwnLoop()];

        return true;
    }

    private function checkIdleSoon(): void
    {
        if ($this->idleTimer === '') {
            $check = static fn(self $pools) => $pools->checkIdle();
            $this->idleTimer = WeakTimer::after(self::IDLE_CHECK_INTERVAL, $this, $check);
        }
    }

    private function checkIdle(): void
    {
        $this->idleTimer = '';
        if ($this->sum(static fn(OriginPool $pool): int => $pool->blockingCount()) > 0) {
            GarbageCycles::collect($this->options->acquireTimeout / 2);
        }
        foreach ($this->pools as $key => $pool) {
            $pool->closeIdle();
            if ($pool->size() === 0 && $pool->waitingCount === 0) {
                unset($this->pools[$key]);
            }
        }
        if ($this->pools !== []) {
            $this->checkIdleSoon();
        }
    }

    /** @param \Closure(OriginPool): int $count */
    private function sum(\Closure $count): int
    {
        return array_sum(array_map($count, $this->pools));
    }
}
