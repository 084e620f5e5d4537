<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Server;

use Psr\Http\Message\ResponseInterface;
use Psr\Http\Message\ServerRequestInterface;
use Psr\Log\LoggerInterface;
use Psr\Log\NullLogger;
use Revolt\EventLoop;
use Spindle\Http\BackgroundWork;
use Spindle\Http\HttpException;
use Spindle\Http\HttpServerOptions;
use Spindle\Http\Internal\Form\BodyErrors;
use Spindle\Http\Internal\Form\BodyParser;
use Spindle\Http\Internal\Form\DiskFiles;
use Spindle\Http\Internal\Form\FileDescriptors;
use Spindle\Http\Internal\Message\HandlerFailure;
use Spindle\Http\Internal\Message\MessageLimits;
use Spindle\Http\Internal\Message\Peer;
use Spindle\Http\Internal\Middleware\ClientDisconnect;
use Spindle\Http\Response;
use Spindle\Internal\FreeMemory;
use Spindle\Internal\Launcher\Process\Signals;
use Spindle\Internal\LoopCallback;
use Spindle\Internal\Network\ForkedSockets;
use Spindle\Internal\RepeatedWarnings;
use Spindle\Internal\SafeLogger;

/** The state that all connections of a server share: handler, options, limits, counters and deadlines. */
final class Service implements FileDescriptors
{
    /** Minimum nanoseconds between two checks of all deadlines, unless a connection adds an earlier deadline. */
    private const MIN_CHECK_NANOSECONDS = 100_000_000;

    /** Seconds of each wait until the client ends its side of the connection: {@see TimedTransport::linger()}. */
    private const LINGER_SECONDS = 2.0;

    /** @var array<int, Connection> */
    public array $connections = [];

    public bool $stopping = false;

    public bool $hasEnded = false;

    /** True while the server stops or is full. Then a response ends its connection if no further head has arrived. */
    public bool $closesAfterResponse = false;

    /** @var array<int, ServerExchange> ended requests whose handlers have not returned */
    public array $lateExchanges = [];

    public int $inFlight = 0;

    public readonly SafeLogger $logger;
    private readonly RepeatedWarnings $warnings;
    public readonly MessageLimits $messageLimits;
    public readonly ResponseWriter $writer;
    public readonly Counters $counters;
    public readonly SpareDescriptors $spareDescriptors;
    public readonly ConnectionLimits $connectionLimits;
    public readonly LoopLag $lag;
    public readonly BlockDetector $blockDetector;
    public readonly FreeMemory $memory;
    public readonly BodyParser $forms;
    public readonly UnreadConnections $unreadConnections;

    public int $nextDeadlineCheck = \PHP_INT_MAX;

    /** @var array<int, int> maximum nanoseconds in a phase, by the phase's value */
    public readonly array $phaseTimeouts;

    /** Timeouts of {@see Phase::Idle} and {@see Phase::Handler}, which nearly every request needs, in nanoseconds. */
    public int $idleNanoseconds;
    public readonly int $handlerNanoseconds;

    private ?string $timer = null;

    /** Pid of the process that has accepted the first connection. */
    private ?int $pid = null;

    /** @var \Closure(): void called when a connection has ended */
    public \Closure $onConnectionEnd;

    /** @var (\Closure(): void)|null called after a handler left output buffers open, or closed the server's buffer */
    public ?\Closure $closeOutputBuffers = null;

    /** @var \WeakMap<self, int>|null by service: pid of the process that called {@see answerOnExit()}; null if none */
    private static ?\WeakMap $pidsByService = null;

    /** @param \Closure(ServerRequestInterface): mixed $handler handler that should return a response */
    public function __construct(
        public readonly \Closure $handler,
        public readonly HttpServerOptions $options,
        LoggerInterface $logger = new NullLogger(),
    ) {
        $this->logger = new SafeLogger($logger);
        $this->warnings = new RepeatedWarnings();
        $this->messageLimits = new MessageLimits(
            $options->maxTargetBytes,
            $options->maxHeadBytes,
            $options->maxHeaderFields,
        );
        $this->writer = new ResponseWriter();
        $this->counters = new Counters();
        $this->spareDescriptors = new SpareDescriptors();
        $files = new DiskFiles($this);
        $this->connectionLimits = new ConnectionLimits($options, $files);
        $this->lag = new LoopLag();
        $this->blockDetector = new BlockDetector($options->blockWarning, $this);
        $this->memory = new FreeMemory();
        $this->forms = new BodyParser($options->forms, files: $files, memory: $this->memory);
        $this->unreadConnections = new UnreadConnections();
        $this->phaseTimeouts = array_map(self::nanoseconds(...), [
            Phase::Handshake->value => $options->tlsTimeout,
            Phase::Idle->value => $options->idleTimeout,
            Phase::Head->value => $options->headTimeout,
            Phase::Handler->value => $options->handlerTimeout,
            Phase::Body->value => $options->rateWindow,
            Phase::Discard->value => $options->rateWindow,
            Phase::Write->value => $options->writeTimeout,
            Phase::Stream->value => \INF,
            Phase::Linger->value => self::LINGER_SECONDS,
        ]);
        [$this->idleNanoseconds, $this->handlerNanoseconds] = [
            $this->phaseTimeouts[Phase::Idle->value],
            $this->phaseTimeouts[Phase::Handler->value],
        ];
        $this->onConnectionEnd = static function (): void {};
    }

    public static function nanoseconds(float $seconds): int
    {
        return (int) min($seconds * 1e9, 1e18);
    }

    /** Returns whether a new connection of this client is allowed. Counts and logs a refused connection. */
    public function admits(Peer $peer): bool
    {
        if ($this->connectionLimits->admits($peer, $this->connections)) {
            return true;
        }
        ++$this->counters->rejected;
        $this->warnOnce(
            'New connections are closed, because their IPv4 address or IPv6 /64 network has the maximum number of'
                . ' connections. If they come from a proxy, trust it (Middleware\TrustedProxies), or raise the option'
                . ' maxConnectionsPerAddress',
        );

        return false;
    }

    /** Records that a new connection waits for room. Until {@see markNotFull()}, responses end their connections. */
    public function markFull(): void
    {
        $this->connectionLimits->recordWait();
        $this->closesAfterResponse = true;
    }

    public function markNotFull(): void
    {
        $this->closesAfterResponse = $this->stopping;
    }

    public function stop(): void
    {
        $this->stopping = $this->closesAfterResponse = true;
    }

    /** Logs a warning, unless the same warning has occurred in the minute before. */
    public function warnOnce(string $warning, ?\Throwable $failure = null): void
    {
        if ($this->warnings->isNew($warning)) {
            // In another fiber, because a logger may suspend, and the caller of this method must not be suspended.
            (new \Fiber($this->logger->warning(...)))->start(
                $failure === null ? $warning : "{$warning}: {$failure->getMessage()}",
                $failure === null ? [] : ['exception' => $failure],
            );
        }
    }

    public function addConnection(Connection $connection): void
    {
        $this->pid ??= (int) getmypid();
        $this->connections[spl_object_id($connection)] = $connection;
        ++$this->counters->connections;
        $this->lag->start();
        $this->connectionLimits->countConnection($connection->peer);
    }

    public function removeConnection(Connection $connection): void
    {
        unset($this->connections[spl_object_id($connection)]);
        $this->unreadConnections->remove($connection);
        $this->connectionLimits->uncountConnection($connection->peer);
        if ($this->connections === []) {
            $this->lag->stop();
            $this->blockDetector->handleTurn();
            LoopCallback::cancel($this->timer);
            $this->nextDeadlineCheck = \PHP_INT_MAX;
        }
        ($this->onConnectionEnd)();
    }

    /** Ends a request although its handler has not returned. The log can still name the request. */
    public function endBeforeHandler(ServerExchange $exchange): void
    {
        $isRunning = static fn(ServerExchange $late): bool => $late->runningFiber() !== null;
        $this->lateExchanges = array_filter($this->lateExchanges, $isRunning); // PHP may have destroyed some fibers
        $exchange->endBeforeHandler();
        $this->lateExchanges[spl_object_id($exchange)] = $exchange;
    }

    public function removeLate(ServerExchange $exchange): void
    {
        unset($this->lateExchanges[spl_object_id($exchange)]);
    }

    /** Called when a handler has returned after {@see endBeforeHandler()}. */
    public function handleLateReturn(ServerExchange $exchange): void
    {
        $this->killIfForked();
        $now = (int) hrtime(true);
        $now > $this->blockDetector->dueAt ? $this->blockDetector->handleReturn($now, $exchange) : null;
        $exchange->release();
    }

    public function hasOpenRequest(): bool
    {
        foreach ($this->inFlight > 0 ? [] : $this->connections as $connection) {
            if ($connection->exchange !== null) {
                return true;
            }
        }

        return $this->inFlight > 0;
    }

    public function sendingResponses(): int
    {
        return \count(array_filter(
            $this->connections,
            static fn(Connection $connection): bool
                => $connection->isUnfinished() && $connection->exchange?->responseStarted !== false,
        ));
    }

    public function isInFork(): bool
    {
        return $this->pid !== null && $this->pid !== getmypid();
    }

    /**
     * Kills this process if a handler has forked it. Otherwise the fork would be a second server: it would answer
     * requests of other clients, and keep the port in use. A process forked before the first connection may serve.
     *
     * Called as soon as code of the application returns, before the fiber suspends. Otherwise the event loop of the
     * fork would read requests of other clients. If the application suspends in the fork, {@see OwnCallback} kills it.
     */
    public function killIfForked(): void
    {
        if (!$this->isInFork()) {
            return;
        }
        [$parent, $pid, $this->pid] = [$this->pid, (int) getmypid(), null]; // no second call if the logger suspends
        $name = RequestName::current();
        $handler = match (true) {
            $name !== '' => "The handler of {$name}",
            BackgroundWork::isCurrent() => 'A function of BackgroundWork',
            default => "Process {$parent}",
        };
        // In another fiber, because a logger may suspend, and the fork must not run its event loop.
        (new \Fiber($this->logger->error(...)))->start(
            '{handler} forked process {pid}, which got SIGKILL because it did not end with exit() or pcntl_exec()',
            ['handler' => $handler, 'pid' => $pid],
        );
        Signals::send($pid, \SIGKILL);
    }

    /** Called before a function of BackgroundWork runs, and when it has returned. */
    public static function endBlockMeasurements(): void
    {
        foreach (self::$pidsByService ?? [] as $service => $_) {
            $service->isInFork() ? null : $service->blockDetector->handleWait();
        }
    }

    public static function killIfAnyForked(): void
    {
        foreach (self::hasOwnServer() ? [] : self::$pidsByService ?? [] as $service => $_) {
            $service->killIfForked();
        }
    }

    /** Makes this process answer open requests with 500, if possible, when exit() or an error ends the process. */
    public function answerOnExit(): void
    {
        if (self::$pidsByService === null) {
            self::$pidsByService = new \WeakMap();
            register_shutdown_function(self::onShutdown(...));
        }
        self::$pidsByService[$this] = (int) getmypid();
    }

    private static function onShutdown(): void
    {
        $isFork = false;
        foreach (self::$pidsByService ?? [] as $service => $_) {
            $isFork = $isFork || $service->isInFork() && !$service->hasEnded;
            $service->isInFork() ? $service->detachConnections() : $service->answerWith500();
        }
        $isFork && !self::hasOwnServer() ? ForkEnd::skipDestructors() : null;
    }

    /** Returns whether this process has its own server. A process of a Supervisor has one, and is also a fork. */
    private static function hasOwnServer(): bool
    {
        $pid = getmypid();
        foreach (self::$pidsByService ?? [] as $serverPid) {
            if ($serverPid === $pid) {
                return true;
            }
        }

        return false;
    }

    private function answerWith500(): void
    {
        foreach ($this->connections as $connection) {
            $connection->answerWith500();
        }
    }

    /** Prevents the end of a fork from ending the TLS connections, which the parent process still uses. */
    private function detachConnections(): void
    {
        ForkedSockets::detach(array_values(array_filter(array_map(
            static fn(Connection $connection) => $connection->secureStream(),
            $this->connections,
        ))));
    }

    /** @param int $deadline by hrtime() */
    public function scheduleDeadlineCheck(int $deadline): void
    {
        if ($deadline < $this->nextDeadlineCheck) {
            $this->nextDeadlineCheck = $deadline;
            $this->armTimer();
        }
    }

    /** Returns a 503 response, because too many requests are in flight. Closes connections of slow clients. */
    public function overloaded(): ResponseInterface
    {
        $this->connectionLimits->closeSlowConnections($this->connections);

        return Response::text("Too many requests at once\n", 503, ['Retry-After' => '1']);
    }

    /** @return ResponseInterface|null null when the request's cancellation has caused the exception */
    public function failureResponse(\Throwable $failure, ServerExchange $exchange): ?ResponseInterface
    {
        if ($exchange->cancelReason !== null && ClientDisconnect::caused($failure)) {
            return null;
        }

        return HandlerFailure::answer($failure, $exchange->logFields(), $this->logger, $exchange->responseStarted);
    }

    /** Returns the error for a request whose body does not fit into memory. Closes connections of slow clients. */
    public function outOfMemory(): HttpException
    {
        $this->warnOnce(
            'Requests with long bodies are answered with 503, because seven eighths of PHP\'s memory_limit are in use',
        );
        $this->connectionLimits->closeSlowConnections($this->connections);

        return BodyErrors::noMemory();
    }

    public function maxFiles(): int
    {
        return $this->connectionLimits->maxFiles();
    }

    public function handleTooManyFiles(): void
    {
        $this->warnOnce(
            'Uploads are answered with 503, because open files of uploads use a third of the descriptors.'
                . ' Raise the limit of descriptors (ulimit -n), or start more processes',
        );
        $this->connectionLimits->closeSlowConnections($this->connections);
    }

    private function armTimer(): void
    {
        LoopCallback::cancel($this->timer);
        $this->timer = EventLoop::unreference(EventLoop::delay(
            max(0.0, ($this->nextDeadlineCheck - hrtime(true)) / 1e9),
            OwnCallback::of($this->checkDeadlines(...)),
        ));
    }

    private function checkDeadlines(): void
    {
        $this->timer = null;
        $now = (int) hrtime(true);
        $this->nextDeadlineCheck = \PHP_INT_MAX;
        $next = \PHP_INT_MAX;
        foreach ($this->connections as $connection) {
            if ($connection->timed->deadline <= $now) {
                $connection->expire();
            }
            $next = min($next, $connection->timed->deadline);
        }
        $next = min($next, $this->nextDeadlineCheck); // expire() may have scheduled an earlier check for another phase
        if ($next !== \PHP_INT_MAX) {
            $this->nextDeadlineCheck = max($next, $now + self::MIN_CHECK_NANOSECONDS);
            $this->armTimer();
        }
    }
}
