<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal;

use Amp\DeferredCancellation;
use Amp\DeferredFuture;
use Amp\Future;
use Psr\Log\LoggerInterface;
use Revolt\EventLoop;
use Revolt\EventLoop\UnsupportedFeatureException;
use Spindle\Http\Admin;
use Spindle\Http\Application;
use Spindle\Http\HttpServer;
use Spindle\Http\Response;
use Spindle\Internal\IgnoredSignals;
use Spindle\Internal\Terminal;
use Spindle\Remote\Agent;
use Spindle\Remote\BrokerRefusedException;
use Spindle\SpindleException;

use function Amp\async;
use function Amp\Future\await;
use function Amp\Future\awaitAll;
use function Amp\Future\awaitFirst;

/** The work of `spindle work`: the agents, signal handling, and the address for operators. */
final class AgentProcess
{
    // Signal numbers: without pcntl its constants do not exist.
    private const SIGHUP = 1;
    private const SIGINT = 2;
    private const SIGTERM = 15;
    private const SIGNALS = [self::SIGHUP, self::SIGINT, self::SIGTERM];

    /** @var non-empty-array<string, Agent> by queue */
    private readonly array $agents;
    private readonly DeferredCancellation $stop;

    /** Ends running tasks. */
    private readonly DeferredCancellation $end;

    /** Exit status; a second signal changes it. */
    private int $status = ExitStatus::OK;

    /** @var DeferredFuture<int> the status to exit with at once */
    private readonly DeferredFuture $exitStatus;

    private readonly Terminal $terminal;

    /** A server that never listens. The address for operators reports its statistics and checks. */
    private readonly HttpServer $server;

    public function __construct(private readonly WorkOptions $options, private readonly LoggerInterface $log)
    {
        $output = new TaskOutput($log);
        $agent = $options->agent->withPool($options->agent->pool->with(
            onOutput: $output->write(...),
            budget: Agent::budget($options->agent),
        ));
        $agents = [];
        foreach ($options->queues as $queue => $workers) {
            $agents["{$queue}"] = new Agent($options->broker, (string) $queue, $workers, $options->keys, $agent, $log);
        }
        $this->agents = $agents;
        // A key allows running any code, and the broker's address may contain a password: tasks must learn neither.
        foreach (['SPINDLE_KEY_FILE', 'SPINDLE_BROKER'] as $secret) {
            putenv($secret);
            unset($_ENV[$secret], $_SERVER[$secret]);
        }
        $this->stop = new DeferredCancellation();
        $this->end = new DeferredCancellation();
        $this->exitStatus = new DeferredFuture();
        $this->terminal = new Terminal();
        $this->server = new HttpServer(new Application(
            static fn(): Response => Response::text("Not Found\n", 404),
            statistics: $this->agents,
            checks: ['broker' => static function () use ($options): void {
                $options->broker->statistics((string) array_key_first($options->queues));
            }],
        ));
    }

    /**
     * @return int the exit status
     *
     * @throws \Spindle\Http\ListenException
     */
    public function run(): int
    {
        $admin = $this->options->admin === null ? null : $this->openAdmin($this->options->admin);
        $signals = $this->watchSignals();
        try {
            /** @var int $status */
            $status = awaitFirst([async($this->work(...)), $this->exitStatus->getFuture()]);

            return $status;
        } finally {
            array_map(EventLoop::cancel(...), $signals);
            $admin?->kill();
        }
    }

    private function work(): int
    {
        try {
            $runs = array_map(
                fn(Agent $agent): Future
                    => async($agent->run(...), $this->stop->getCancellation(), $this->end->getCancellation()),
                $this->agents,
            );
            try {
                await($runs);
            } finally {
                $this->stop->cancel(); // when one agent fails, the others stop as well
                array_map(static fn(Future $run): Future => $run->ignore(), $runs);
                awaitAll($runs);
            }
            $this->log->info('Stopped');

            return $this->status;
        } catch (SpindleException $failure) {
            $this->log->critical($failure->getMessage());

            return $failure instanceof BrokerRefusedException ? ExitStatus::REFUSED : ExitStatus::TROUBLE;
        }
    }

    private function openAdmin(string $address): HttpServer
    {
        $name = (string) preg_replace('~^\w+://|:\d+$~D', '', $address);
        $admin = Admin::of($this->server)
            ->withLogger($this->log)
            ->withStatusPage()
            ->withHosts($name, ...$this->options->adminHosts);
        $server = new HttpServer($admin, logger: $this->log);
        $this->log->info(
            'Listening on {addresses} for operators',
            ['addresses' => strtr(implode(', ', $server->start($address)), ['tcp://' => 'http://'])],
        );

        return $server;
    }

    /**
     * Handles signals, except SIGINT and SIGTERM if they were ignored when this process started.
     *
     * @return array<string> watchers; empty without pcntl, when signals have their default effect
     */
    private function watchSignals(): array
    {
        $ignored = IgnoredSignals::among([self::SIGINT, self::SIGTERM]);
        $watch = fn(int $signal): string => EventLoop::onSignal($signal, fn() => $this->onSignal($signal));
        try {
            return array_map(EventLoop::unreference(...), array_map($watch, array_diff(self::SIGNALS, $ignored)));
        } catch (UnsupportedFeatureException) {
            return [];
        }
    }

    private function onSignal(int $signal): void
    {
        match (true) {
            !$this->stop->isCancelled() => $signal === self::SIGHUP && !$this->terminal->isGone()
                ? $this->reload()
                : $this->stop(),
            $signal === self::SIGHUP => null,
            !$this->end->isCancelled() => $this->end(
                $signal === self::SIGINT ? ExitStatus::INTERRUPTED : ExitStatus::TERMINATED,
            ),
            !$this->exitStatus->isComplete() => $this->exitStatus->complete($this->status),
            default => null,
        };
    }

    private function end(int $status): void
    {
        $this->status = $status;
        $this->end->cancel();
    }

    private function reload(): void
    {
        foreach ($this->agents as $agent) {
            $agent->reload();
        }
        $this->log->info('Reloaded: new tasks run in new workers');
    }

    private function stop(): void
    {
        $this->log->info('Stopping: running jobs finish, and jobs that have not started are given back');
        $this->server->kill(); // makes the readiness check fail
        $this->stop->cancel();
    }
}
