<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Server;

use Psr\Http\Message\ResponseInterface;
use Psr\Http\Message\ServerRequestInterface;
use Psr\Log\LoggerInterface;
use Psr\Log\NullLogger;
use Revolt\EventLoop;
use Spindle\Http\HttpException;
use Spindle\Http\HttpServerOptions;
use Spindle\Http\Internal\Form\DiskFiles;
use Spindle\Http\Internal\Form\FormReader;
use Spindle\Http\Internal\Form\Refusal;
use Spindle\Http\Internal\FreeMemory;
use Spindle\Http\Internal\Message\HandlerFailure;
use Spindle\Http\Internal\Message\MessageLimits;
use Spindle\Http\Internal\Message\Peer;
use Spindle\Http\Internal\Middleware\ClientDisconnect;
use Spindle\Http\Response;
use Spindle\Internal\Launcher\Process\Signals;

final class Service
{
    /** Minimum nanoseconds between two deadline checks of all connections. */
    private const MIN_CHECK_NANOSECONDS = 100_000_000;

    /** Seconds for which a client may still send after this side has ended the connection. */
    private const LINGER_SECONDS = 2.0;

    /** @var array<int, Connection> */
    public array $connections = [];

    public bool $stopping = false;

    /** Whether responses end their connections if no other request has arrived: on stop, or without room. */
    public bool $ending = false;

    /** Requests whose handler has not returned. */
    public int $inFlight = 0;

    public readonly SafeLogger $logger;
    private readonly RepeatedWarnings $warnings;
    public readonly MessageLimits $limits;
    public readonly ResponseWriter $writer;
    public readonly Counters $counters;
    public readonly SpareDescriptors $spares;
    public readonly ConnectionLimits $room;
    public readonly LoopLag $lag;
    public readonly FreeMemory $memory;
    public readonly FormReader $forms;
    public readonly UnreadConnections $unread;

    /** When the next deadline may pass, by hrtime(). */
    public int $nextLook = \PHP_INT_MAX;

    /** @var array<int, int> maximum nanoseconds in a phase, by the phase's value */
    public readonly array $allowed;

    /** Nanoseconds of the two phases that every request goes through. */
    public int $idleTime;
    public readonly int $handlerTime;

    private ?string $timer = null;

    /** The process that has accepted the open connections. */
    private int $pid = 0;

    /** @var \Closure(): void called when a connection has ended */
    public \Closure $onEnd;

    /** @var (\Closure(): void)|null called when a handler has returned and the number of output buffers is not 1 */
    public ?\Closure $tidyOutput = null;

    /** @param \Closure(ServerRequestInterface): ResponseInterface $handler */
    public function __construct(
        public readonly \Closure $handler,
        public readonly HttpServerOptions $options,
        LoggerInterface $logger = new NullLogger(),
    ) {
        $this->logger = new SafeLogger($logger);
        $this->warnings = new RepeatedWarnings();
        $this->limits = new MessageLimits($options->maxTarget, $options->maxHead, $options->maxFields);
        $this->writer = new ResponseWriter();
        $this->counters = new Counters();
        $this->spares = new SpareDescriptors();
        $files = new DiskFiles($this->maxFiles(...), $this->tooManyFiles(...));
        $this->room = new ConnectionLimits($options, $files);
        $this->lag = new LoopLag();
        $this->memory = new FreeMemory();
        $this->forms = new FormReader($options->forms, files: $files, memory: $this->memory);
        $this->unread = new UnreadConnections();
        $this->allowed = array_map(self::nanoseconds(...), [
            Phase::Handshake->value => $options->tlsTimeout,
            Phase::Idle->value => $options->idleTimeout,
            Phase::Head->value => $options->headTimeout,
            Phase::Handler->value => $options->handlerTimeout,
            Phase::Body->value => $options->rateWindow,
            Phase::Write->value => $options->writeTimeout,
            Phase::Stream->value => \INF,
            Phase::Linger->value => self::LINGER_SECONDS,
        ]);
        [$this->idleTime, $this->handlerTime] = [
            $this->allowed[Phase::Idle->value],
            $this->allowed[Phase::Handler->value],
        ];
        $this->onEnd = static function (): void {};
    }

    public static function nanoseconds(float $seconds): int
    {
        return (int) min($seconds * 1e9, 1e18);
    }

    public function admits(Peer $peer): bool
    {
        if ($this->room->admits($peer, $this->connections)) {
            return true;
        }
        ++$this->counters->rejected;
        $this->tellOnce(
            'Connections are closed at once, as their address has as many as one address may have: trust it as a proxy'
                . ' (Middleware\TrustedProxies), or raise the option maxConnectionsPerAddress',
        );

        return false;
    }

    /** Records that a connection waits for room. Until there is room, responses end their connections. */
    public function hold(): void
    {
        $this->room->held();
        $this->ending = true;
    }

    public function relieve(): void
    {
        $this->ending = $this->stopping;
    }

    public function stop(): void
    {
        $this->stopping = $this->ending = true;
    }

    /** Logs a warning when its reason first occurs, and when it occurs again after a minute without it. */
    public function tellOnce(string $warning, ?\Throwable $failure = null): void
    {
        if ($this->warnings->begins($warning)) {
            $this->logger->warning(
                $failure === null ? $warning : "{$warning}: {$failure->getMessage()}",
                $failure === null ? [] : ['exception' => $failure],
            );
        }
    }

    public function began(Connection $connection): void
    {
        if ($this->connections === []) {
            $this->pid = (int) getmypid();
        }
        $this->connections[spl_object_id($connection)] = $connection;
        ++$this->counters->connections;
        $this->lag->start();
        $this->room->began($connection->peer);
    }

    public function ended(Connection $connection): void
    {
        unset($this->connections[spl_object_id($connection)]);
        $this->unread->remove($connection);
        $this->room->ended($connection->peer);
        if ($this->connections === []) {
            $this->lag->stop();
            if ($this->timer !== null) {
                EventLoop::cancel($this->timer);
            }
            [$this->timer, $this->nextLook] = [null, \PHP_INT_MAX];
        }
        ($this->onEnd)();
    }

    /**
     * Kills a process that a handler has forked, when that process continues to serve. It would take requests of other
     * clients, and keep the port in use. A process that is forked while there is no connection may serve.
     */
    public function endIfForked(): void
    {
        $pid = (int) getmypid();
        if ($this->connections === [] || $pid === $this->pid) {
            return;
        }
        $name = RequestName::current();
        $handler = $name === '' ? 'A handler' : "The handler of {$name}";
        $this->logger->error(
            '{handler} forked process {pid}, which was killed because it did not end with exit() or pcntl_exec()',
            ['handler' => $handler, 'pid' => $pid],
        );
        Signals::send($pid, \SIGKILL);
    }

    /** Answers open requests as far as possible, because exit() or an uncaught error ends the process. */
    public function abandon(): void
    {
        foreach ($this->connections as $connection) {
            $connection->abandon();
        }
    }

    /** Detaches the connections in a fork that is about to end, because its parent serves them. */
    public function disown(): void
    {
        ForkedSockets::disown(array_values(array_filter(array_map(
            static fn(Connection $connection) => $connection->secureStream(),
            $this->connections,
        ))));
    }

    /** @param int $deadline by hrtime() */
    public function lookAt(int $deadline): void
    {
        if ($deadline < $this->nextLook) {
            $this->nextLook = $deadline;
            $this->armTimer();
        }
    }

    public function overloaded(): ResponseInterface
    {
        $this->room->relieve($this->connections);

        return Response::text("Too many requests at once\n", 503, ['Retry-After' => '1']);
    }

    /**
     * @return ResponseInterface|null the response to a handler's exception; null when no response is needed any more
     */
    public function failure(\Throwable $failure, ServerExchange $exchange): ?ResponseInterface
    {
        if ($exchange->wasCancelled() && ClientDisconnect::caused($failure)) {
            return null;
        }

        return HandlerFailure::answer($failure, $exchange->head, $this->logger);
    }

    /** Returns the error for a request whose body does not fit into memory. */
    public function outOfMemory(): HttpException
    {
        $this->tellOnce(
            'Bodies are answered with 503, as those of other requests and all else use up seven eighths of PHP\'s memory_limit',
        );
        $this->room->relieve($this->connections);

        return Refusal::noMemory();
    }

    private function maxFiles(): int
    {
        return $this->room->files();
    }

    private function tooManyFiles(): void
    {
        $this->tellOnce(
            'Uploads are answered with 503, as the files of others have a third of the descriptors that connections may have: raise the limit of descriptors (ulimit -n), or start more processes',
        );
        $this->room->relieve($this->connections);
    }

    private function armTimer(): void
    {
        if ($this->timer !== null) {
            EventLoop::cancel($this->timer);
        }
        $this->timer = EventLoop::unreference(EventLoop::delay(
            max(0.0, ($this->nextLook - hrtime(true)) / 1e9),
            $this->look(...),
        ));
    }

    private function look(): void
    {
        $this->timer = null;
        $this->endIfForked();
        $now = (int) hrtime(true);
        $this->nextLook = \PHP_INT_MAX;
        $next = \PHP_INT_MAX;
        foreach ($this->connections as $connection) {
            if ($connection->deadline <= $now) {
                $connection->expire();
            }
            $next = min($next, $connection->deadline);
        }
        $next = min($next, $this->nextLook); // an expired connection may have entered another phase
        if ($next !== \PHP_INT_MAX) {
            $this->nextLook = max($next, $now + self::MIN_CHECK_NANOSECONDS);
            $this->armTimer();
        }
    }
}
