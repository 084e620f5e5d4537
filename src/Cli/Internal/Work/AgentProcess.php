<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Work;

use Amp\DeferredFuture;
use Amp\Future;
use Psr\Log\LoggerInterface;
use Revolt\EventLoop;
use Spindle\Cli\Internal\ExitStatus;
use Spindle\Http\Admin;
use Spindle\Http\Application;
use Spindle\Http\HttpServer;
use Spindle\Http\Response;
use Spindle\Internal\IgnoredSignals;
use Spindle\Internal\Launcher\LauncherChild;
use Spindle\Internal\Launcher\PhpBinary;
use Spindle\Internal\Launcher\Process\Libc;
use Spindle\Internal\Release;
use Spindle\Internal\ReleaseMismatchException;
use Spindle\Internal\SignalWatch;
use Spindle\Internal\Terminal;
use Spindle\Internal\WorkingDirectory;
use Spindle\Remote\Agent;
use Spindle\Remote\BrokerRefusedException;
use Spindle\SpindleException;

use function Amp\async;
use function Amp\Future\await;
use function Amp\Future\awaitFirst;

/** Runs the agents of `spindle work`, one per queue. Handles signals, and serves the admin address. */
final class AgentProcess
{
    // Signal numbers, because the constants do not exist without pcntl.
    private const SIGHUP = 1;
    private const SIGINT = 2;
    private const SIGTERM = 15;
    private const SIGNALS = [self::SIGHUP, self::SIGINT, self::SIGTERM];

    /** @var non-empty-array<string, Agent> by queue */
    private readonly array $agents;

    /** Whether the agents are being closed, because of the first signal to stop or because an agent has failed. */
    private bool $isStopping = false;

    /** Exit status after the agents have stopped. The second signal kills the agents, and changes this status. */
    private int $status = ExitStatus::OK;

    /** @var DeferredFuture<int> exit status, set by the third signal so that {@see run()} returns immediately */
    private readonly DeferredFuture $immediateExit;

    private readonly Terminal $terminal;

    private readonly Release $release;

    private readonly WorkerTrial $trial;

    /** Whether SIGHUP has arrived since the start of the last trial. */
    private bool $isReloadRequested = false;

    private ?HttpServer $admin = null;

    /** Holds the agents and the broker's health check for {@see Admin}. This server is never started. */
    private readonly HttpServer $monitored;

    public function __construct(private readonly WorkOptions $options, private readonly LoggerInterface $log)
    {
        $output = new TaskOutput($log, $options->json);
        $budget = Agent::budget($options->agent);
        $pool = $options->agent->pool->with(onOutput: $output->ofQueue(''), resultBudget: $budget);
        $agents = [];
        foreach ($options->queues as $queue => $workers) {
            $agent = $options->agent->withPool($pool->with(onOutput: $output->ofQueue((string) $queue)));
            $agents["{$queue}"] = new Agent($options->broker, (string) $queue, $workers, $options->keys, $agent, $log);
        }
        $this->agents = $agents;
        // Tasks must not see these variables: the key allows running any code, and the address may contain a password.
        foreach (['SPINDLE_KEY_FILE', 'SPINDLE_BROKER'] as $secret) {
            putenv($secret);
            unset($_ENV[$secret], $_SERVER[$secret]);
        }
        $this->immediateExit = new DeferredFuture();
        $this->terminal = new Terminal();
        $this->trial = new WorkerTrial($pool);
        $bootstrap = $pool->bootstrap;
        $this->release = new Release(WorkingDirectory::named(), ...($bootstrap === null ? [] : [$bootstrap]));
        $this->monitored = new HttpServer(new Application(
            static fn(): Response => Response::text("Not Found\n", 404),
            statistics: $this->agents,
            checks: ['broker' => static function () use ($options): void {
                $options->broker->statistics((string) array_key_first($options->queues));
            }],
        ));
    }

    /** @throws \Spindle\Http\ListenException|\Spindle\LauncherException */
    public function run(): int
    {
        // Without these checks, the agent would claim jobs before it fails.
        LauncherChild::checkFunctions(['ini_set', 'putenv', 'stream_socket_server']); // for the workers
        PhpBinary::find(null);
        $signals = $this->watchSignals();
        $this->warnOfZombies();
        try {
            /** @var int $status */
            $status = awaitFirst([async($this->start(...)), $this->immediateExit->getFuture()]);

            return $status;
        } finally {
            array_map(EventLoop::cancel(...), $signals);
            $this->admin?->kill();
        }
    }

    private function warnOfZombies(): void
    {
        if (getmypid() === 1 && Libc::available() === null) {
            $this->log->warning(
                'Ended processes of tasks remain as zombies: this is process 1, and FFI is not available. Use an init'
                    . ' process (docker run --init)',
            );
        }
    }

    /** @throws \Spindle\Http\ListenException */
    private function start(): int
    {
        $failure = $this->tryWorker();
        if ($failure !== null) {
            $this->log->critical($failure);

            return ExitStatus::TROUBLE;
        }
        if ($this->isReloadRequested) {
            $this->reload();
        }
        if ($this->isStopping) {
            $this->log->info('Stopped');

            return $this->status;
        }
        $this->admin = $this->options->admin === null ? null : $this->openAdmin($this->options->admin);

        return $this->work();
    }

    /** @return string|null why no worker can be started; null if one can, or if the agents are being closed */
    private function tryWorker(): ?string
    {
        try {
            $this->trial->run();
        } catch (SpindleException $failure) {
            return $this->isStopping ? null : OptionNames::in($failure->getMessage());
        }

        return null;
    }

    private function work(): int
    {
        $runs = array_map(static fn(Agent $agent): Future => async($agent->run(...))->ignore(), $this->agents);
        $failure = null;
        try {
            await($runs);
        } catch (\Throwable $failure) { // no finally: it can't wait in a fiber that PHP destroys after a third signal
        }
        await($this->closeAgents()); // if one agent has failed, the others must stop
        if ($failure === null) {
            $this->log->info('Stopped');

            return $this->status;
        }
        if (!$failure instanceof SpindleException) {
            throw $failure;
        }
        $this->log->critical(OptionNames::in($failure->getMessage()));

        return $failure instanceof BrokerRefusedException ? ExitStatus::REFUSED : ExitStatus::TROUBLE;
    }

    private function openAdmin(string $address): HttpServer
    {
        $name = (string) preg_replace('~^\w+://|:\d+$~D', '', $address);
        $admin = Admin::of($this->monitored)
            ->withLogger($this->log)
            ->withStatusPage()
            ->withHosts($name, ...$this->options->adminHosts);
        $server = new HttpServer($admin, logger: $this->log);
        $this->log->info(
            'Listening on {addresses} (admin address)',
            ['addresses' => strtr(implode(', ', $server->start($address)), ['tcp://' => 'http://'])],
        );

        return $server;
    }

    /**
     * Handles signals. If SIGINT or SIGTERM was ignored when this process started, as in background jobs, it stays
     * ignored.
     *
     * @return array<string> ids of the watchers; empty without pcntl
     */
    private function watchSignals(): array
    {
        $signals = array_diff(self::SIGNALS, IgnoredSignals::among([self::SIGINT, self::SIGTERM]));

        return SignalWatch::start(array_fill_keys($signals, fn(string $id, int $signal) => $this->onSignal($signal)));
    }

    private function onSignal(int $signal): void
    {
        match (true) {
            !$this->isStopping => $signal === self::SIGHUP && !$this->terminal->isClosed()
                ? $this->reload()
                : $this->stop(),
            $signal === self::SIGHUP => null,
            $this->status === ExitStatus::OK => $this->kill(
                $signal === self::SIGINT ? ExitStatus::INTERRUPTED : ExitStatus::TERMINATED,
            ),
            !$this->immediateExit->isComplete() => $this->immediateExit->complete($this->status),
            default => null,
        };
    }

    /** Replaces the workers if a worker can load the current code. During a trial, requests another trial. */
    private function reload(): void
    {
        $this->isReloadRequested = true;
        while ($this->isReloadRequested && !$this->isStopping && !$this->trial->isRunning()) {
            $failure = $this->loadCurrentCode();
            if (!$this->isReloadRequested && !$this->isStopping) {
                $failure === null ? $this->replaceWorkers() : $this->log->error("Not reloaded: {$failure}");
            }
        }
    }

    /**
     * @return string|null as {@see tryWorker()}
     *
     * @phpstan-impure
     */
    private function loadCurrentCode(): ?string
    {
        $this->isReloadRequested = false;
        try {
            $this->release->changeToCurrent();
        } catch (ReleaseMismatchException $moved) {
            return $moved->getMessage();
        }

        return $this->tryWorker();
    }

    private function replaceWorkers(): void
    {
        foreach ($this->agents as $agent) {
            $agent->reload();
        }
        $this->log->info('Reloaded: new tasks run in new workers');
    }

    private function stop(): void
    {
        $this->log->info('Stopping: running jobs finish, and jobs that have not started go back to their queues');
        $this->monitored->kill(); // makes the readiness check fail
        $this->closeAgents();
        $this->trial->stop();
    }

    /** @return array<string, Future<void>> */
    private function closeAgents(): array
    {
        $this->isStopping = true;

        return array_map(static fn(Agent $agent): Future => async($agent->close(...)), $this->agents);
    }

    private function kill(int $status): void
    {
        $this->status = $status;
        foreach ($this->agents as $agent) {
            $agent->kill();
        }
    }
}
