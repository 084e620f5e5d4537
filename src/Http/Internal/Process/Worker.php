<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Process;

use Amp\DeferredFuture;
use Psr\Log\LoggerInterface;
use Revolt\EventLoop;
use Revolt\EventLoop\DriverFactory;
use Spindle\Http\AppException;
use Spindle\Http\HttpServer;
use Spindle\Http\Internal\Message\Failure;
use Spindle\Internal\FatalError;
use Spindle\Internal\Launcher\Process\Libc;
use Spindle\Internal\Launcher\Process\Signals;
use Spindle\Internal\LoopTurn;

/** What a fork of the supervisor does: it makes a server, serves, and ends when it is told to or the supervisor is gone. */
final class Worker
{
    /** What it can be asked; it answers with JSON: {@see HttpServer::statistics()}, or whether it stops and {@see HttpServer::check()}. */
    public const STATISTICS = 'statistics';
    public const HEALTH = 'health';

    /** Has a process say where it is and end, whatever runs in it. Its own code alone uses this signal, which the system ignores. */
    public const END_AT_ONCE = \SIGURG;

    /** @see https://man7.org/linux/man-pages/man2/pr_set_pdeathsig.2const.html */
    private const PR_SET_PDEATHSIG = 1;

    /** How PHP's message begins. */
    private const OUT_OF_MEMORY = 'Allowed memory size';

    private ?Link $link = null;
    private ?HttpServer $server = null;
    private readonly StrayOutput $output;

    /** @var DeferredFuture<null> complete when all is done */
    private readonly DeferredFuture $done;

    /** Not that of what this process forks. */
    private int $pid = 0;

    private bool $stopping = false;

    /** Whether the supervisor knows how this ends. */
    private bool $told = false;

    public function __construct(private readonly Duty $duty, private readonly Channel $channel, private readonly LoggerInterface $logger)
    {
        $this->done = new DeferredFuture();
        $this->output = new StrayOutput($logger);
    }

    /** Throws nothing: the supervisor's code, which called this, is not to go on in this process. */
    public function run(): never
    {
        $this->pid = (int) getmypid();
        register_shutdown_function($this->lastWords(...));
        try {
            $this->standAlone();
            $this->serve();
            exit(0);
        } catch (AppException $failure) {
            $this->tell(Message::Failed, $failure->getMessage());
        } catch (\Throwable $failure) {
            $this->tell(Message::Dying, 'failed: ' . $failure::class . ": {$failure->getMessage()} ({$failure->getFile()}, line {$failure->getLine()})");
        }
        exit(1);
    }

    private function standAlone(): void
    {
        foreach ([\SIGTERM, \SIGCHLD] as $signal) {
            pcntl_signal($signal, \SIG_DFL);
        }
        // A terminal sends them to all of its processes, as systemd does others, and the supervisor knows what to do.
        foreach ([\SIGINT, \SIGHUP, \SIGQUIT, \SIGUSR1, \SIGUSR2, ...($this->duty->runsApplication ? [] : [\SIGTERM])] as $signal) {
            pcntl_signal($signal, static fn() => null);
        }
        pcntl_async_signals(true); // so that this is heard where a handler blocks the event loop
        pcntl_signal(self::END_AT_ONCE, $this->endAtOnce(...), false); // also out of a system call that would go on
        mt_srand(random_int(0, \PHP_INT_MAX)); // or all of them would draw the same numbers
        self::dieWithTheSupervisor();
        EventLoop::setDriver(new FiberOutputDriver((new DriverFactory())->create()));
        FreshCode::prepare();
        if ($this->duty->memoryLimit !== null) {
            ini_set('memory_limit', $this->duty->memoryLimit);
        }
        if ($this->duty->runsApplication) {
            RequestFunctions::define();
            $this->output->capture();
        }
    }

    /** Even where a handler does not return, so that the end of the channel is not seen. */
    private static function dieWithTheSupervisor(): void
    {
        if (\extension_loaded('FFI')) {
            try {
                (new Libc())->functions->prctl(self::PR_SET_PDEATHSIG, \SIGKILL, 0, 0, 0);
            } catch (\FFI\Exception) {
                // Not allowed here, or this is not Linux.
            }
        }
    }

    private function serve(): void
    {
        $this->link = $link = new Link($this->channel, $this->obey(...), static function (): void {
            Signals::send((int) getmypid(), \SIGKILL);
        });
        $this->server = $server = ($this->duty->server)($link);
        EventLoop::setErrorHandler(EventLoop::getErrorHandler() ?? $this->uncaught(...));
        if ($this->duty->runsApplication) {
            EventLoop::unreference(EventLoop::onSignal(\SIGTERM, function () use ($server): void {
                $this->tell(Message::Dying, 'was sent SIGTERM');
                $this->finish($server->stop(...));
            }));
        }
        if ($this->duty->runsApplication) {
            $this->output->tidy(); // what the application has left open as it was loaded
            $server->tidyOutput($this->output->tidy(...));
        }
        $server->serve($this->duty->sockets);
        LoopTurn::await(); // from then on the loop watches for SIGTERM, which would kill this process before
        $link->send(Message::Ready, 0, pack('e2', ...$server->timeouts()));
        $this->done->getFuture()->await();
        $server->unanswered() === 0 ? $this->tell(Message::Drained) : $this->told = true; // the server has said so
    }

    private function obey(Message $message, int $number, string $payload): void
    {
        \assert($this->link !== null && $this->server !== null);
        $server = $this->server;
        match ($message) {
            Message::Ping => $this->pinged($this->link),
            Message::Question => $this->answer($number, $payload),
            Message::Leave => $this->finish(static fn() => $server->leave(self::seconds($payload))),
            Message::Stop => $this->finish($server->stop(...)),
            default => throw new \UnexpectedValueException("The supervisor said {$message->name}"),
        };
    }

    private function pinged(Link $link): void
    {
        $link->send(Message::Alive);
        if (\ini_get('max_execution_time') !== '0') {
            ini_set('max_execution_time', '0'); // a handler has set it for its request, but it would end the process with all of them
        }
    }

    /** Called in the middle of whatever runs, which does not go on: it may have been woken from a wait that it takes for successful. */
    private function endAtOnce(): void
    {
        if (getmypid() !== $this->pid) {
            return;
        }
        foreach (debug_backtrace(\DEBUG_BACKTRACE_IGNORE_ARGS, 10) as $frame) {
            if (isset($frame['file'], $frame['line'])) {
                $this->tell(Message::Where, "{$frame['file']}, line {$frame['line']}" . ($this->server?->underWay()->clause() ?? ''));
                break;
            }
        }
        Signals::send($this->pid, \SIGKILL);
    }

    /** Nothing when nobody waits any more: a check that blocks this process is not to be run for each who has asked meanwhile. */
    private function answer(int $number, string $payload): void
    {
        \assert($this->link !== null && $this->server !== null);
        [$until, $question] = explode(' ', $payload, 2) + ['', ''];
        if (hrtime(true) >= (int) $until) {
            return;
        }
        if ($question === self::STATISTICS) {
            $this->link->send(Message::Answer, $number, $this->server->statistics()->toJson());
        } elseif ($question === self::HEALTH) {
            $this->link->send(Message::Interim, $number, $this->health($this->server->lateChecks()));
            $this->link->send(Message::Answer, $number, $this->health($this->server->check()));
        } else {
            throw new \UnexpectedValueException("The supervisor asks for {$question}");
        }
    }

    /** @param array<string, string|null> $checks */
    private function health(array $checks): string
    {
        return json_encode(['stopping' => $this->stopping, 'full' => $this->server?->isFull() === true, 'checks' => $checks], \JSON_THROW_ON_ERROR | \JSON_INVALID_UTF8_SUBSTITUTE);
    }

    private static function seconds(string $payload): float
    {
        /** @var array{1: float} $seconds */
        $seconds = unpack('e', $payload);

        return $seconds[1];
    }

    /**
     * What came before goes on, if anything did, and ends with this.
     *
     * @param \Closure(): void $end suspends until no connection is left
     */
    private function finish(\Closure $end): void
    {
        $this->stopping = true;
        $end();
        if (!$this->done->isComplete()) {
            $this->done->complete();
        }
    }

    /** What a callback of the application throws concerns no request, and the others go on. */
    private function uncaught(\Throwable $failure): void
    {
        $this->logger->error('Nothing caught {class}: ' . Failure::message($failure), ['class' => $failure::class, 'exception' => $failure]);
    }

    private function lastWords(): void
    {
        if (getmypid() !== $this->pid) {
            return;
        }
        ini_set('memory_limit', -1); // it may be what ended this
        register_shutdown_function($this->tellCounts(...)); // after what the server does at such an end
        $error = FatalError::last();
        $request = $this->server?->underWay()->clauseAtTheEnd() ?? '';
        if ($error !== null) {
            $advice = str_starts_with($error['message'], self::OUT_OF_MEMORY) ? '; that is its memory_limit, which --memory-limit sets' : '';
            $this->tell(Message::Dying, 'failed: ' . strtok($error['message'], "\n") . " ({$error['file']}, line {$error['line']}){$request}{$advice}");
        } elseif (!$this->told) {
            $this->tell(Message::Dying, "called exit(){$request}");
        }
    }

    private function tellCounts(): void
    {
        $this->output->close();
        if ($this->server !== null && $this->duty->runsApplication) {
            $this->tell(Message::Counted, $this->server->statistics()->toJson());
        }
    }

    private function tell(Message $message, string $payload = ''): void
    {
        $this->told = true;
        $this->channel->send($message, 0, $payload);
        $this->channel->finish();
    }
}
