<?php

declare(strict_types=1);

namespace Spindle\Http;

use Amp\Cancellation;
use Amp\CancelledException;
use Psr\Log\LoggerInterface;
use Psr\Log\NullLogger;
use Revolt\EventLoop;
use Spindle\Http\Internal\Message\HandlerFailure;
use Spindle\Http\Internal\Process\FileWatch;
use Spindle\Http\Internal\Process\FreshCode;
use Spindle\Http\Internal\Process\MemoryLimit;
use Spindle\Http\Internal\Process\PhpRestart;
use Spindle\Http\Internal\Process\ProcessManager;
use Spindle\Http\Internal\Process\ProcessRole;
use Spindle\Http\Internal\Process\RequestFunctions;
use Spindle\Http\Internal\Process\ServerFactory;
use Spindle\Http\Internal\Process\StrayOutput;
use Spindle\Http\Internal\Server\Listeners;
use Spindle\Internal\Async\FiberQueue;
use Spindle\Internal\CpuCount;
use Spindle\Internal\NotCopyable;
use Spindle\Internal\Release;
use Spindle\Internal\SafeLogger;
use Spindle\Internal\WorkingDirectory;
use Spindle\Lifecycle;

/**
 * Serves an application with several processes that share the listening sockets, as `spindle serve` does.
 *
 * The supervisor replaces a process that ends. SIGHUP replaces all processes, one after the other, with processes that
 * have loaded the application again. Such a reload loses no request. If a new process fails to start, the processes
 * that were not replaced continue.
 *
 * SIGINT, SIGTERM and SIGQUIT close the supervisor. A second such signal has the effect of {@see kill()}. If the
 * terminal was closed, SIGHUP closes the supervisor instead of replacing processes. SIGUSR1 and SIGUSR2 are ignored.
 * Handlers that the script has set for SIGINT, SIGTERM and SIGHUP before {@see run()} have no effect until run() has
 * returned. But if the script has set handlers for SIGQUIT, SIGUSR1 or SIGUSR2, only these handlers are called.
 *
 * When the supervisor's process is killed, the kernel kills the other processes. Without ext-ffi, each process kills
 * itself instead. But while a handler blocks the event loop, its process continues.
 *
 * A handler that calls session_start() gets an {@see UnsupportedFunctionException}. header(), setcookie() and
 * http_response_code() also throw this exception if PHP was started with them in disable_functions. Only then can
 * Spindle define functions with these names. `spindle serve` starts PHP in this way.
 *
 * The supervisor itself does not load the application. A reload does not replace code that the supervisor has loaded:
 * Spindle, and the "files" of Composer's autoloader. The application's path may contain a symbolic link to a release.
 * If the link leads to a new release at a reload, the working directory also changes, to the same directory of the new
 * release. The reload fails if the supervisor has loaded Composer's autoloader from the old release, because forks
 * would mix classes of both releases.
 */
final class Supervisor implements Lifecycle
{
    use NotCopyable;

    private readonly LoggerInterface $logger;

    private bool $isClosed = false;

    /** Pid of the process that executes {@see run()}, or 0. A fork has another pid, so close() has no effect there. */
    private int $runningPid = 0;

    private readonly FiberQueue $ending;

    /** Set while run() runs: the manager of worker processes or, without ext-pcntl, the servers in this process. */
    private ?ProcessManager $manager = null;
    private ?HttpServer $server = null;
    private ?HttpServer $admin = null;

    /**
     * @param string $app path of a file; each process resolves symbolic links again. The file returns a handler, an
     *     {@see Application}, a PSR-11 container with a RequestHandlerInterface, or a closure without parameters that
     *     creates one of these
     * @param list<string> $addresses as for {@see HttpServer::listen()}
     * @param LoggerInterface $logger logger of this process, and of worker processes if the application has no logger
     */
    public function __construct(
        private readonly string $app,
        private readonly array $addresses,
        private readonly SupervisorOptions $options = new SupervisorOptions(),
        LoggerInterface $logger = new NullLogger(),
    ) {
        $this->logger = new SafeLogger($logger);
        $this->ending = new FiberQueue();
    }

    /**
     * @internal Restarts this program in a PHP that disables header(), setcookie(), session_start() and similar
     * functions. Worker processes then define functions with these names, and most of them throw an
     * {@see UnsupportedFunctionException}. Does nothing if these functions are already disabled.
     *
     * @return string|null why the restart failed; null when none was necessary. Does not return after a restart
     */
    public static function restartPhp(): ?string
    {
        return PhpRestart::withoutRequestFunctions();
    }

    /** @internal Returns whether this PHP can serve with several processes. */
    public static function canFork(): bool
    {
        $functions = [
            'pcntl_fork', 'pcntl_waitpid', 'pcntl_signal', 'pcntl_signal_get_handler', 'pcntl_signal_dispatch',
            'pcntl_async_signals',
        ];

        return array_filter($functions, \function_exists(...)) === $functions;
    }

    /**
     * Serves the application, and returns after a signal, {@see close()} or {@see kill()}. Without ext-pcntl, there are
     * no worker processes, and this process serves the application.
     *
     * Runs the event loop, so call this method outside of a fiber. Worker processes are forks of this process. They
     * do not run callbacks of its event loop, but share its open files and connections. So, for example, do not connect
     * to a database before this call. When a worker process ends, it runs the shutdown functions and destructors of the
     * script too. A shutdown function that removes a file can compare getmypid() with the pid of this process.
     *
     * @return int number of the second signal, if such a signal has killed all processes; otherwise 0
     *
     * @throws ServerClosedException when close() or kill() was called before, or run() has returned before
     * @throws ListenException when the supervisor can't listen on an address
     * @throws AppException when the application fails to load at the start
     * @throws SupervisorException when an option needs ext-pcntl or ini_set(), and PHP lacks it
     * @throws \LogicException when the supervisor is running already
     */
    public function run(): int
    {
        if ($this->isClosed) {
            throw ServerClosedException::supervisor();
        }
        if ($this->isRunning()) {
            throw new \LogicException('The supervisor is running already');
        }
        $this->runningPid = (int) getmypid();
        try {
            $signal = $this->serve();
            $this->isClosed = true;

            return $signal;
        } finally {
            $this->manager = $this->server = $this->admin = null;
            $this->runningPid = 0;
            $this->ending->wakeAll();
        }
    }

    /**
     * Stops accepting connections, answers the requests that have arrived, and waits until all processes have ended.
     * The application's option `stopTimeout` limits the time for these answers: see {@see HttpServer::close()}.
     *
     * If a callback of the event loop calls close(), the callback's fiber is suspended. The fiber continues when the
     * loop runs again after {@see run()} has returned. close() has no effect in processes that the supervisor started.
     *
     * Cancellation: ends the processes as {@see kill()} does. Some processes may still exist when this method throws.
     *
     * @throws CancelledException
     */
    public function close(?Cancellation $cancellation = null): void
    {
        $this->isClosed = true;
        if (!$this->isRunning()) {
            return;
        }
        $this->manager?->close();
        if ($this->server !== null) {
            EventLoop::queue($this->server->close(...));
        }
        $this->ending->waitOrKill($cancellation, $this->kill(...));
    }

    /**
     * Ends all processes immediately; their requests get no response. Does not wait: the processes have ended when
     * {@see run()} returns. Has no effect in a process that the supervisor has started.
     */
    public function kill(): void
    {
        $this->isClosed = true;
        if ($this->isRunning()) {
            $this->manager?->kill();
            $this->server?->kill();
            $this->admin?->kill();
        }
    }

    private function isRunning(): bool
    {
        return $this->runningPid === getmypid();
    }

    /** @return int as {@see run()} returns it */
    private function serve(): int
    {
        RequestFunctions::logTo($this->logger);
        $canFork = self::canFork();
        $processes = $this->options->processes ?? ($canFork && !$this->options->watch
            ? min((new CpuCount())->usable(), SupervisorOptions::MAX_PROCESSES)
            : 1);
        if (!$canFork) {
            $this->checkSingleProcess($processes);
        }
        $all = $this->listen();
        StrayOutput::closeEarlierBuffers();
        $admin = $this->options->admin === null ? [] : \array_slice($all, -1);
        $sockets = array_diff_key($all, $admin);
        $readyMessage = self::readyMessage($processes, array_keys($sockets), array_keys($admin));
        try {
            return $canFork
                ? $this->supervise($processes, $sockets, $admin, $readyMessage)
                : $this->serveHere($sockets, $admin, $readyMessage);
        } catch (\Throwable $failure) {
            $this->server?->kill();
            $this->admin?->kill();
            Listeners::close($all);
            throw $failure;
        }
    }

    private function checkSingleProcess(int $processes): void
    {
        $needsPcntl = array_keys([
            'More than one process' => $processes > 1,
            'Watching files' => $this->options->watch,
            'Tracing blocks' => $this->options->traceBlocks === true,
            'A limit of requests' => $this->options->maxRequests !== null,
            'A limit of memory' => $this->options->maxMemoryBytes !== null,
        ], true, true);
        if ($needsPcntl !== []) {
            throw SupervisorException::withoutPcntl($needsPcntl[0]);
        }
    }

    /** @return array<string, resource> sockets by address; the last one is the socket of the admin address */
    private function listen(): array
    {
        $options = new HttpServerOptions(
            certificate: $this->options->certificate,
            key: $this->options->key,
            certificates: $this->options->certificates,
        );

        return Listeners::open(
            [...$this->addresses, ...($this->options->admin === null ? [] : [$this->options->admin])],
            $options,
        );
    }

    /**
     * @param list<string> $addresses
     * @param list<string> $admin
     */
    private static function readyMessage(int $processes, array $addresses, array $admin): string
    {
        $text = 'Listening on '
            . implode(', ', $addresses)
            . " with {$processes} "
            . ($processes === 1 ? 'process' : 'processes')
            . ($admin === [] ? '' : ', and on ' . implode(', ', $admin) . ' (admin address)');

        return strtr($text, ['tcp://' => 'http://', 'tls://' => 'https://']);
    }

    /**
     * @param array<string, resource> $sockets
     * @param array<string, resource> $admin
     */
    private function supervise(int $processes, array $sockets, array $admin, string $readyMessage): int
    {
        $app = WorkingDirectory::absolute($this->app);
        $servers = new ServerFactory($app, $this->options, $this->logger, new Release($app, WorkingDirectory::named()));
        $blockingSetting = FreshCode::blockingSetting();
        if ($blockingSetting !== null) {
            $this->logger->warning(
                "A reload may run old code, because {$blockingSetting} keeps Spindle from clearing OPcache. Restart the"
                    . ' server instead, or set opcache.enable_cli=0',
            );
        }
        $memoryLimit = MemoryLimit::of($this->options, $processes);
        $tracesBlocks = $this->options->traceBlocks ?? $this->options->watch;
        $roles = array_map(
            static fn(int $number): ProcessRole => new ProcessRole(
                "worker {$number}",
                $sockets,
                $servers,
                memoryLimit: $memoryLimit,
                tracesBlocks: $tracesBlocks,
            ),
            range(1, $processes),
        );
        if ($admin !== []) {
            $roles[] = new ProcessRole('admin', $admin, $servers, false);
        }
        $files = $this->options->watch ? new FileWatch(\dirname($app)) : null;

        $this->manager = new ProcessManager($app, $roles, $readyMessage, $this->options, $this->logger, $files);

        return $this->manager->run();
    }

    /**
     * @param array<string, resource> $sockets
     * @param array<string, resource> $admin
     */
    private function serveHere(array $sockets, array $admin, string $readyMessage): int
    {
        $memoryLimit = MemoryLimit::of($this->options, 1);
        $memoryLimit === null ? null : ini_set('memory_limit', $memoryLimit);
        $output = new StrayOutput($this->logger);
        $output->capture();
        $errorHandler = EventLoop::getErrorHandler();
        try {
            $this->serveCaptured($sockets, $admin, $readyMessage, $output);
        } finally {
            EventLoop::setErrorHandler($errorHandler);
            $output->release();
        }

        return 0;
    }

    /**
     * @param array<string, resource> $sockets
     * @param array<string, resource> $admin
     */
    private function serveCaptured(array $sockets, array $admin, string $readyMessage, StrayOutput $output): void
    {
        RequestFunctions::define();
        $servers = new ServerFactory($this->app, $this->options, $this->logger);
        $server = $this->server = $servers->application($sockets);
        EventLoop::setErrorHandler(
            EventLoop::getErrorHandler()
                ?? fn(\Throwable $failure) => HandlerFailure::logUncaught($failure, $this->logger),
        );
        $output->closeBuffers(); // the application's file may have left output buffers open
        $server->closeOutputBuffersWith($output->closeBuffers(...));
        $server->serve($sockets, false);
        if ($admin !== []) {
            $this->admin = $servers->admin($admin, Admin::of($server));
            $this->admin->serve($admin, false);
        }
        $this->logger->info($readyMessage);
        $this->isClosed ? $server->close() : $server->awaitEnd(); // close() may have run while the app was loaded
        $this->admin?->close();
    }
}
