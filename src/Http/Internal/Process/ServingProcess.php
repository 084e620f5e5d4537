<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Process;

use Amp\DeferredFuture;
use Psr\Log\LoggerInterface;
use Revolt\EventLoop;
use Revolt\EventLoop\Driver;
use Revolt\EventLoop\DriverFactory;
use Revolt\EventLoop\Internal\AbstractDriver;
use Spindle\Http\AppException;
use Spindle\Http\HttpServer;
use Spindle\Http\Internal\Message\HandlerFailure;
use Spindle\Http\Internal\Server\RequestName;
use Spindle\Internal\Async\LoopTurn;
use Spindle\Internal\FatalError;
use Spindle\Internal\Launcher\Process\Libc;
use Spindle\Internal\Launcher\Process\Signals;
use Spindle\Internal\PhpSettings;
use Spindle\Internal\RandomNumbers;
use Spindle\Internal\SignalWatch;

/** A process forked by the supervisor. It serves until a message or signal stops it, or the supervisor ends. */
final class ServingProcess
{
    /** Questions for {@see HttpServer::statistics()}, and for the results of {@see HttpServer::runHealthChecks()}. */
    public const STATISTICS = 'statistics';
    public const HEALTH = 'health';

    /** Signal that makes a process report its position in the code, and end. Without a handler, it has no effect. */
    public const REPORT_SIGNAL = \SIGURG;

    /**
     * Signal that makes a process report what blocks its event loop. Without a handler, it has no effect. Terminals
     * also send it when their size changes.
     */
    public const TRACE_SIGNAL = \SIGWINCH;

    /** Nanoseconds after an answered ping in which only a terminal, not the supervisor, sends {@see TRACE_SIGNAL}. */
    private const MIN_BLOCK_NANOSECONDS = 400_000_000;

    /** Maximum frames of a backtrace. They are enough to name a function with its callers. */
    private const MAX_FRAMES = 20;

    /** @see https://man7.org/linux/man-pages/man2/pr_set_pdeathsig.2const.html */
    private const PR_SET_PDEATHSIG = 1;

    private const OUT_OF_MEMORY_PREFIX = 'Allowed memory size';

    private ?SupervisorLink $link = null;
    private ?HttpServer $server = null;
    private readonly StrayOutput $output;

    /** @var DeferredFuture<null> complete when the process may end */
    private readonly DeferredFuture $done;

    /** Pid of this process. If a handler forks, the fork has the same value here, but another getmypid(). */
    private int $pid = 0;

    private bool $stopping = false;

    /** Time of the last answer to a ping, by hrtime(). */
    private int $pingedAt = \PHP_INT_MAX;

    private bool $endReported = false;

    /** @param Driver $inheritedLoop kept in memory: its destructor would reset this process's signal handlers */
    public function __construct(
        private readonly ProcessRole $role,
        private readonly Channel $channel,
        private readonly LoggerInterface $logger,
        public readonly Driver $inheritedLoop,
    ) {
        $this->done = new DeferredFuture();
        $this->output = new StrayOutput($logger);
    }

    /** Serves, then ends the process. Throws nothing, because the supervisor's code must not run in this process. */
    public function run(): never
    {
        $this->pid = (int) getmypid();
        register_shutdown_function($this->reportEnd(...));
        try {
            $this->serve($this->prepare());
            exit(0);
        } catch (AppException $failure) {
            $this->send(Message::Failed, $failure->getMessage());
        } catch (\Throwable $failure) {
            $this->send(
                Message::Ending,
                'failed: '
                    . $failure::class
                    . ": {$failure->getMessage()} ({$failure->getFile()}, line {$failure->getLine()})",
            );
        }
        exit(1);
    }

    private function prepare(): FiberOutputDriver
    {
        foreach ([\SIGTERM, \SIGCHLD] as $signal) {
            pcntl_signal($signal, \SIG_DFL);
        }
        // Terminals and service managers send most of these signals to all processes. Only the supervisor acts on them.
        foreach ([
            \SIGINT,
            \SIGHUP,
            \SIGQUIT,
            \SIGUSR1,
            \SIGUSR2,
            \SIGXFSZ, // a file has reached its size limit (ulimit -f): with a handler, fwrite() fails and PHP continues
            ...($this->role->runsApplication ? [] : [\SIGTERM]),
        ] as $signal) {
            pcntl_signal($signal, static fn() => null);
        }
        pcntl_async_signals(true); // runs signal handlers even while a request handler blocks the event loop
        pcntl_signal(self::REPORT_SIGNAL, $this->reportPositionAndEnd(...), false); // false: interrupts system calls
        if ($this->role->tracesBlocks) {
            pcntl_signal(self::TRACE_SIGNAL, $this->reportBlock(...));
        }
        RandomNumbers::diverge();
        self::dieWithSupervisor();
        EventLoop::setDriver($loop = new FiberOutputDriver(self::createLoop()));
        FreshCode::clearCaches();
        if ($this->role->memoryLimit !== null) {
            ini_set('memory_limit', $this->role->memoryLimit);
        }
        if ($this->role->runsApplication) {
            RequestFunctions::define();
            $this->output->capture();
        }

        return $loop;
    }

    /**
     * Creates an event loop whose callback ids contain a digit. Ids of the inherited loop contain none, so inherited
     * objects can't cancel callbacks of this process.
     */
    private static function createLoop(): Driver
    {
        $loop = (new DriverFactory())->create();
        if ($loop instanceof AbstractDriver && property_exists(AbstractDriver::class, 'nextId')) {
            (new \ReflectionProperty(AbstractDriver::class, 'nextId'))->setValue($loop, 'a0a');
        }

        return $loop;
    }

    /** Makes the kernel kill this process when the supervisor ends, even if a handler never returns. Needs ext-ffi. */
    private static function dieWithSupervisor(): void
    {
        Libc::available()?->functions->prctl(self::PR_SET_PDEATHSIG, \SIGKILL, 0, 0, 0);
    }

    private function serve(FiberOutputDriver $loop): void
    {
        $this->link = $link = new SupervisorLink($this->channel, $this);
        $this->server = $server = $this->role->createServer($link);
        self::dieWithSupervisor(); // the application may have changed the user or group, which clears PR_SET_PDEATHSIG
        EventLoop::setErrorHandler(
            EventLoop::getErrorHandler()
                ?? fn(\Throwable $failure) => HandlerFailure::logUncaught($failure, $this->logger),
        );
        if ($this->role->runsApplication) {
            SignalWatch::start([\SIGTERM => function () use ($server): void {
                $this->send(Message::Terminated);
                $this->stopServing($server->close(...));
            }]);
        }
        if ($this->role->runsApplication) {
            $this->output->closeBuffers(); // closes buffers that the application has left open while it was loaded
            $server->closeOutputBuffersWith($this->output->closeBuffers(...));
            $loop->blockDetector = $server->blocks();
        }
        $server->serve($this->role->sockets, true);
        LoopTurn::await(); // after this wait, the event loop handles SIGTERM; until then, SIGTERM kills this process
        $link->send(Message::Ready, 0, pack('e2', ...$server->timeouts()));
        $this->done->getFuture()->await();
        // The server has logged any unanswered requests. With the flag, reportEnd() does not report a call of exit().
        $server->unanswered() === 0 ? $this->send(Message::AllAnswered) : $this->endReported = true;
    }

    public function killIfForked(): void
    {
        if (getmypid() !== $this->pid) {
            Signals::send((int) getmypid(), \SIGKILL);
        }
    }

    /** Handles a message of the supervisor that is not an answer to a query. May suspend. */
    public function handleMessage(Message $message, int $number, string $payload): void
    {
        \assert($this->link !== null && $this->server !== null);
        $server = $this->server;
        if (getmypid() !== $this->pid) {
            Signals::send((int) getmypid(), \SIGKILL); // a fork made by a handler must not handle its parent's messages
        }
        match ($message) {
            Message::Ping => $this->handlePing($this->link),
            Message::Question => $this->answerQuestion($number, $payload),
            Message::HandOver => $this->stopServing(static fn() => $server->handOver(self::seconds($payload))),
            Message::Stop => $this->stopServing($server->close(...)),
            Message::Reloaded => $this->role->followReload(),
            default => throw new \UnexpectedValueException("The supervisor sent {$message->name}"),
        };
    }

    public function handleSupervisorEnd(): void
    {
        Signals::send((int) getmypid(), \SIGKILL);
    }

    private function handlePing(SupervisorLink $link): void
    {
        $link->send(Message::Pong);
        $this->pingedAt = (int) hrtime(true);
        if (\ini_get('max_execution_time') !== '0') {
            // A handler may have set a time limit for its own request. At this limit, PHP would end the whole process.
            PhpSettings::set('max_execution_time', '0');
        }
    }

    /** Reports what blocks the event loop. The blocking code continues, although the signal may have ended its wait. */
    private function reportBlock(): void
    {
        if (getmypid() !== $this->pid || hrtime(true) - $this->pingedAt < self::MIN_BLOCK_NANOSECONDS) {
            return;
        }
        $block = BlockTrace::describe(debug_backtrace(\DEBUG_BACKTRACE_IGNORE_ARGS, self::MAX_FRAMES));
        if ($block !== null) {
            $this->link?->send(Message::Blocked, 0, ($this->server?->requestName()->clause() ?? '') . ": {$block}");
        }
    }

    /**
     * Reports the position in the code, and kills the process. The code at this position must not continue: the signal
     * may have interrupted a wait, and the code could believe that the wait has succeeded.
     */
    private function reportPositionAndEnd(): void
    {
        if (getmypid() !== $this->pid) {
            return;
        }
        $position = BlockTrace::position(debug_backtrace(\DEBUG_BACKTRACE_IGNORE_ARGS, 10));
        if ($position !== '') {
            $clause = $this->server?->requestName()->clause() ?? '';
            $this->send(Message::Position, $position . $clause, (int) ($clause === RequestName::IN_BACKGROUND_WORK));
        }
        Signals::send($this->pid, \SIGKILL);
    }

    /**
     * Answers a question unless its deadline has passed. Several questions may arrive while a check blocks the process.
     * The checks must not run again for each of these late questions.
     */
    private function answerQuestion(int $number, string $payload): void
    {
        \assert($this->link !== null && $this->server !== null);
        [$until, $question] = explode(' ', $payload, 2) + ['', ''];
        if (hrtime(true) >= (int) $until) {
            return;
        }
        if ($question === self::STATISTICS) {
            $this->link->send(Message::Answer, $number, $this->server->statistics()->toJson());
        } elseif ($question === self::HEALTH) {
            $this->link->send(Message::PreliminaryAnswer, $number, $this->health($this->server->lateChecks()));
            $this->link->send(Message::Answer, $number, $this->health($this->server->runHealthChecks()));
        } else {
            throw new \UnexpectedValueException("The supervisor sent an unknown question: {$question}");
        }
    }

    /** @param array<string, string|null> $checks */
    private function health(array $checks): string
    {
        return json_encode(
            ['stopping' => $this->stopping, 'full' => $this->server?->isFull() === true, 'checks' => $checks],
            \JSON_THROW_ON_ERROR | \JSON_INVALID_UTF8_SUBSTITUTE,
        );
    }

    private static function seconds(string $payload): float
    {
        /** @var array{1: float} $seconds */
        $seconds = unpack('e', $payload);

        return $seconds[1];
    }

    /** @param \Closure(): void $end suspends until no connection is left; then the process ends */
    private function stopServing(\Closure $end): void
    {
        $this->stopping = true;
        $end();
        if (!$this->done->isComplete()) {
            $this->done->complete();
        }
    }

    /** Reports a fatal error, or an exit() of the application. PHP calls this method at the end of the process. */
    private function reportEnd(): void
    {
        if (getmypid() !== $this->pid) {
            return;
        }
        PhpSettings::set('memory_limit', '-1'); // the end may be due to this limit, and a report needs memory
        register_shutdown_function($this->reportStatistics(...)); // runs after the shutdown function of the server
        $error = FatalError::last();
        $request = $this->server?->requestName()->clauseAtEnd() ?? '';
        if ($error !== null) {
            $advice = str_starts_with($error['message'], self::OUT_OF_MEMORY_PREFIX)
                ? '; --memory-limit sets this limit'
                : '';
            $this->send(
                Message::Ending,
                'failed: '
                    . strtok($error['message'], "\n")
                    . " ({$error['file']}, line {$error['line']}){$request}{$advice}",
            );
        } elseif (!$this->endReported) {
            $this->send(Message::Ending, "called exit(){$request}");
        }
    }

    private function reportStatistics(): void
    {
        $this->output->close();
        if ($this->server !== null && $this->role->runsApplication) {
            $this->send(Message::Statistics, $this->server->statistics()->toJson());
        }
    }

    /** Sends a message about the end of this process. Waits until the message is sent. */
    private function send(Message $message, string $payload = '', int $number = 0): void
    {
        $this->endReported = true;
        $this->channel->send($message, $number, $payload);
        $this->channel->finish();
    }
}
