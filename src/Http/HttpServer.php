<?php

declare(strict_types=1);

namespace Spindle\Http;

use Amp\Cancellation;
use Amp\CancelledException;
use Psr\Http\Message\ResponseInterface;
use Psr\Http\Message\ServerRequestInterface;
use Psr\Http\Server\RequestHandlerInterface;
use Psr\Log\LoggerInterface;
use Revolt\EventLoop;
use Spindle\Http\Internal\Message\HandlerFailure;
use Spindle\Http\Internal\Server\Acceptor;
use Spindle\Http\Internal\Server\BlockDetector;
use Spindle\Http\Internal\Server\Checks;
use Spindle\Http\Internal\Server\Connection;
use Spindle\Http\Internal\Server\Listeners;
use Spindle\Http\Internal\Server\OwnCallback;
use Spindle\Http\Internal\Server\PoolStatistics;
use Spindle\Http\Internal\Server\RequestName;
use Spindle\Http\Internal\Server\Service;
use Spindle\Internal\Async\FiberQueue;
use Spindle\Internal\NotCopyable;
use Spindle\Internal\NumberRange;
use Spindle\Internal\SignalWatch;
use Spindle\Lifecycle;
use Spindle\Statistics;

/**
 * An HTTP/1.1 server in this process, on the event loop. Handlers are plain sequential code. While one waits, others
 * run.
 *
 * PHP has one list of headers, one session and one stack of output buffers per process. So in a handler, header(),
 * setcookie() and http_response_code() silently have no effect, and session_start() would open one session for all
 * clients. Between ob_start() and ob_get_clean(), a handler must not wait, or clients get parts of each other's
 * pages. Twig calls ob_start() unless its option `use_yield` is true. With `spindle serve` and ext-pcntl,
 * header(), setcookie(), http_response_code() and session_start() throw, and each fiber has its own output buffers.
 *
 * Output of a handler goes to standard output. If the program that reads standard output has ended, the output is lost.
 * This process then continues, because the server calls ignore_user_abort(true).
 */
final class HttpServer implements Lifecycle
{
    use NotCopyable;

    private readonly Application $application;
    private readonly HttpServerOptions $options;
    private readonly Service $service;
    private readonly Checks $checks;

    /** Unix time. */
    private readonly float $started;

    /** @var list<string> addresses whose sockets this server has opened */
    private array $ownAddresses = [];

    /** @var array<string, Acceptor> by address */
    private array $acceptors = [];

    private bool $isClosed = false;

    /** Fibers that wait until the server is closed and its last connection has ended. */
    private readonly FiberQueue $ending;

    /** @var list<string> timers that call {@see closeUnanswered()} */
    private array $closeTimers = [];

    private int $unanswered = 0;

    /** Whether the server was killed or has ended, so that it does not wait for {@see BackgroundWork}. */
    private bool $dropsWork = false;

    /**
     * @param RequestHandlerInterface|\Closure(ServerRequestInterface): ResponseInterface $handler a handler,
     *     or an {@see Application} with a handler, options and a logger
     * @param HttpServerOptions|null $options null for the application's options, or else the defaults
     * @param LoggerInterface|null   $logger  null for the application's logger, or else none. Requests are not logged
     */
    public function __construct(
        RequestHandlerInterface|\Closure $handler,
        ?HttpServerOptions $options = null,
        ?LoggerInterface $logger = null,
    ) {
        $this->application = $handler instanceof Application ? $handler : new Application($handler);
        $this->options = $options ?? $this->application->options;
        $this->service = new Service(
            $this->application->handler,
            $this->options,
            $logger ?? $this->application->logger,
        );
        $this->checks = new Checks($this->application->checks);
        $this->started = microtime(true);
        $this->ending = new FiberQueue();
    }

    /**
     * Serves until {@see close()} or {@see kill()} is called, and returns when all connections have ended.
     *
     * SIGINT and SIGTERM close the server, and a second signal kills it. Without ext-pcntl, they end the process.
     *
     * @param string ...$addresses "127.0.0.1:8080", "[::1]:8080", "tls://0.0.0.0:8443", "unix:///run/app.sock"
     *
     * @throws ListenException when the server can't listen on one of the addresses
     * @throws ServerClosedException
     */
    public function listen(string ...$addresses): void
    {
        $this->start(...$addresses);
        $handler = EventLoop::getErrorHandler();
        $logger = $this->service->logger;
        EventLoop::setErrorHandler(
            $handler ?? static fn(\Throwable $failure) => HandlerFailure::logUncaught($failure, $logger),
        );
        $stop = fn() => $this->isClosed ? $this->kill() : $this->close();
        $watchers = SignalWatch::start(\extension_loaded('pcntl') ? [\SIGINT => $stop, \SIGTERM => $stop] : []);
        try {
            $this->awaitEnd();
        } finally {
            array_map(EventLoop::cancel(...), $watchers);
            EventLoop::setErrorHandler($handler);
        }
    }

    /**
     * Starts to listen and returns. Requests are served while the event loop runs.
     *
     * @param string ...$addresses as for {@see listen()}
     *
     * @return list<string> the addresses, with the assigned port in place of port 0
     *
     * @throws ListenException when the server can't listen on one of the addresses; it then listens on none of them
     * @throws ServerClosedException
     */
    public function start(string ...$addresses): array
    {
        if ($this->isClosed || $this->service->isInFork()) {
            throw $this->isClosed ? ServerClosedException::server() : ServerClosedException::inFork();
        }
        $sockets = Listeners::open(array_values($addresses), $this->options);
        $this->serve($sockets, false);

        return array_keys($sockets);
    }

    /**
     * Stops accepting connections, answers the requests that have arrived, and returns when all connections have ended.
     *
     * Also waits for all {@see BackgroundWork} of the process. If requests or work are unfinished `stopTimeout` seconds
     * after the call, the server logs a warning with their number. If such a request has no response yet, the server
     * sends the status 503. Then the server closes all connections. If a handler or work calls close(), this call waits
     * for its own caller. So the call returns only after the timeout, and the handler's request gets the status 503.
     *
     * In a fork of a process that has accepted connections, close() only closes the fork's copies of listening sockets.
     *
     * Cancellation: ends the open connections as {@see kill()} does.
     *
     * @throws CancelledException
     */
    public function close(?Cancellation $cancellation = null): void
    {
        $this->closeWithin(false, $this->options->idleGracePeriod, $this->options->stopTimeout, $cancellation);
    }

    /**
     * Stops accepting connections, closes all open connections immediately, and cancels their requests. A handler that
     * ignores the cancellation continues, and its response is dropped. In a fork, kill() does the same as close().
     */
    public function kill(): void
    {
        if ($this->leaveToParent()) {
            return;
        }
        $this->dropsWork = true;
        $this->refuseConnections(false);
        foreach ($this->service->connections as $connection) {
            $connection->close(ClientDisconnectedException::stopped());
        }
        ($this->service->onConnectionEnd)();
    }

    public function statistics(): HttpServerStatistics
    {
        $counters = $this->service->counters;

        return new HttpServerStatistics(
            pid: (int) getmypid(),
            startedAt: $this->started,
            stopping: $this->isClosed,
            inFlight: $this->service->inFlight,
            sendingResponses: $this->service->sendingResponses(),
            connections: \count($this->service->connections),
            acceptedConnections: $counters->connections,
            rejectedConnections: $counters->rejected,
            evictedConnections: $counters->evicted,
            maxConnections: $this->service->connectionLimits->maxConnections(),
            full: $this->isFull(),
            failedHandshakes: $counters->handshakesFailed,
            answeredRequests: $counters->answered,
            refusedRequests: $counters->refused,
            abandonedRequests: $counters->abandoned,
            cutOffResponses: $counters->cutOff,
            durationCounts: array_values($counters->durationCounts),
            totalDuration: $counters->totalNanoseconds / 1e9,
            routes: array_map(
                static fn(array $route): array => [$route[0], $route[1] / 1e9, $route[2]],
                $counters->routes,
            ),
            lag: $this->service->lag->last(),
            maxLag: $this->service->lag->max(),
            memory: memory_get_usage(true),
            pools: array_map(
                fn(Statistics $pool): array => PoolStatistics::of($pool, $this->service),
                $this->application->statistics,
            ),
        );
    }

    /**
     * @internal Returns the pools of the application.
     *
     * @return array<string, Statistics> by name
     */
    public function pools(): array
    {
        return $this->application->statistics;
    }

    /**
     * Runs the application's health checks concurrently. A check that is still running is not started again.
     *
     * @return array<string, string|null> by name: why the check failed, or that it took over 0.7 s; null when it passed
     */
    public function runHealthChecks(): array
    {
        return $this->checks->run();
    }

    /**
     * @internal Returns what {@see runHealthChecks()} would return if no check ended in time.
     *
     * @return array<string, string>
     */
    public function lateChecks(): array
    {
        return $this->checks->lateResults();
    }

    /**
     * @internal Serves sockets that are already open.
     *
     * @param array<string, resource> $sockets by address
     * @param bool                    $areShared whether other processes accept connections of these sockets. If not,
     *     the server removes the files of Unix sockets when it is closed
     */
    public function serve(array $sockets, bool $areShared): void
    {
        // When the program that reads standard output has ended, PHP would otherwise end this process at the next echo.
        ignore_user_abort(true);
        $this->service->answerOnExit();
        foreach ($sockets as $name => $socket) {
            $this->acceptors[$name] = new Acceptor($socket, $name, $this->service, $areShared);
        }
        $areShared ? null : array_push($this->ownAddresses, ...array_keys($sockets));
        $this->service->onConnectionEnd = function (): void {
            array_walk($this->acceptors, static fn(Acceptor $acceptor) => $acceptor->resume());
        };
    }

    /**
     * @internal Closes this server. Other processes accept the waiting and new connections of its sockets. Each
     * handler of this server still has its full handlerTimeout, even for the last request that arrives.
     *
     * @param float $idleGracePeriod replaces the option idleGracePeriod, but can't exceed idleTimeout or stopTimeout
     */
    public function handOver(float $idleGracePeriod): void
    {
        $idleGracePeriod = min($idleGracePeriod, $this->options->idleTimeout, $this->options->stopTimeout);
        $this->closeWithin(
            true,
            $idleGracePeriod,
            $idleGracePeriod + max($this->options->stopTimeout, $this->options->handlerTimeout),
        );
    }

    /**
     * @internal Returns how many seconds {@see close()} and {@see handOver()} take at most. If a handler blocks the
     * event loop, both can take longer.
     *
     * @return array{float, float}
     */
    public function timeouts(): array
    {
        $idleGracePeriod = min($this->options->idleTimeout, $this->options->stopTimeout);

        return [
            $this->options->stopTimeout,
            $idleGracePeriod + max($this->options->stopTimeout, $this->options->handlerTimeout),
        ];
    }

    /** @internal Suspends until the server was closed or killed and its last connection has ended. */
    public function awaitEnd(): void
    {
        if (!$this->hasEnded()) {
            $this->ending->wait();
        }
    }

    /** @internal Returns whether new connections have waited for a second or more because of a connection limit. */
    public function isFull(): bool
    {
        return $this->service->connectionLimits->isFull();
    }

    /**
     * @internal Sets a function for a process that captures all output in one buffer. The function closes further
     * buffers that a handler has left open, and opens the buffer of the process again if a handler has closed it.
     *
     * @param \Closure(): void $close called after a handler has returned, unless exactly one buffer is open
     */
    public function closeOutputBuffersWith(\Closure $close): void
    {
        $this->service->closeOutputBuffers = $close;
    }

    /** @internal */
    public function blocks(): BlockDetector
    {
        return $this->service->blockDetector;
    }

    /** @internal */
    public function requestName(): RequestName
    {
        return new RequestName($this->service);
    }

    /** @internal Returns how many requests were unfinished when the stop timeout was over. */
    public function unanswered(): int
    {
        return $this->unanswered;
    }

    private function closeWithin(
        bool $othersServe,
        float $idleGracePeriod,
        float $timeout,
        ?Cancellation $cancellation = null,
    ): void {
        if ($this->leaveToParent()) {
            return;
        }
        $this->refuseConnections($othersServe);
        $gracePeriod = Service::nanoseconds($idleGracePeriod);
        $this->service->idleNanoseconds = min($this->service->idleNanoseconds, $gracePeriod);
        $deadline = (int) hrtime(true) + $gracePeriod;
        foreach ($this->service->connections as $connection) {
            $connection->stop($deadline);
        }
        if (!$this->hasEnded()) {
            // Even if the timeout is infinite, the timer keeps the event loop running.
            $delay = min($timeout, NumberRange::MAX_SECONDS);
            $this->closeTimers[] = EventLoop::delay($delay, OwnCallback::of(fn() => $this->closeUnanswered($timeout)));
            $this->ending->waitOrKill($cancellation, $this->kill(...));
        }
    }

    /** Returns whether this process is a fork of the serving process. If so, closes its copies of the sockets. */
    private function leaveToParent(): bool
    {
        if (!$this->service->isInFork()) {
            return false;
        }
        $this->refuseConnections(true);

        return true;
    }

    private function closeUnanswered(float $timeout): void
    {
        $unfinished = array_filter(
            $this->service->connections,
            static fn(Connection $connection): bool => $connection->isUnfinished(),
        );
        $unanswered = \count($unfinished);
        $this->unanswered += $unanswered;
        $work = BackgroundWork::running();
        foreach ($unfinished as $connection) {
            $connection->closeWith503();
        }
        $this->kill();
        $left = $unanswered > 0 ? [self::count($unanswered, 'unanswered request')] : [];
        if ($work > 0) {
            $left[] = self::count($work, 'unfinished function') . ' of BackgroundWork';
        }
        if ($left !== []) { // logged last, and in one entry, because a logger may suspend or never return
            $text = implode(' and ', $left);
            $this->service->logger->warning("The server stopped with {$text} after {$timeout} s");
        }
    }

    private static function count(int $number, string $singular): string
    {
        return "{$number} {$singular}" . ($number === 1 ? '' : 's');
    }

    private function refuseConnections(bool $othersServe): void
    {
        if ($this->isClosed) {
            return;
        }
        $this->isClosed = true;
        array_map(Listeners::removeSocketFile(...), $this->ownAddresses);
        foreach ($this->acceptors as $acceptor) {
            $othersServe ? $acceptor->closeSocket() : $acceptor->close();
        }
        $this->acceptors = [];
        $this->service->stop();
        $this->service->onConnectionEnd = function (): void {
            if ($this->hasEnded()) {
                array_map(EventLoop::cancel(...), $this->closeTimers);
                $this->dropsWork = true;
                $this->service->hasEnded = $this->service->inFlight === 0 && BackgroundWork::running() === 0;
                BackgroundWork::onEnd($this, null);
                $this->ending->wakeAll();
            }
        };
        BackgroundWork::onEnd($this, $this->service->onConnectionEnd);
        ($this->service->onConnectionEnd)();
    }

    private function hasEnded(): bool
    {
        return $this->isClosed
            && $this->service->connections === []
            && ($this->dropsWork || BackgroundWork::running() === 0);
    }
}
