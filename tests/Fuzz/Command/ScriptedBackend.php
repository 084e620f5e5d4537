<?php

declare(strict_types=1);

namespace Spindle\Tests\Fuzz\Command;

use Spindle\Internal\Launcher\Process\Backend;
use Spindle\Internal\Launcher\Process\JobScheduler;
use Spindle\Internal\Launcher\Process\LauncherJob;
use Spindle\Internal\Launcher\Process\StartFailure;

/** Passes given pieces to the supervisor, then ends all jobs in turn, and records everything. It starts no process. */
final class ScriptedBackend implements Backend
{
    /** @var list<string> calls of the supervisor, in order */
    public array $asked = [];

    /** Bytes that the supervisor has sent. */
    public string $sent = '';

    /** @var array<int, LauncherJob> */
    private array $jobs = [];

    /** @param list<string> $pieces */
    public function __construct(private readonly JobScheduler $scheduler, private array $pieces) {}

    public function name(): string
    {
        return 'scripted';
    }

    public function maxConcurrency(): int
    {
        return 1000;
    }

    public function useEnvironment(array $environment): void
    {
        $this->asked[] = 'environment '
            . json_encode($environment, \JSON_INVALID_UTF8_SUBSTITUTE | \JSON_THROW_ON_ERROR);
    }

    public function start(LauncherJob $job): bool
    {
        if ($job->program() === 'missing') {
            throw new StartFailure(127, 'No such program');
        }
        $this->asked[] = 'start ' . bin2hex(serialize([
            $job->id, $job->lane, $job->flags, $job->timeout, $job->idleTimeout, $job->directory, $job->changes,
            $job->argumentList(), $job->line, $job->input, $job->inputFollows,
        ]));
        $this->jobs[$job->id] = $job;

        return true;
    }

    public function wait(int $deadline, bool $isOutputPaused): void
    {
        if ($this->pieces !== []) {
            $this->scheduler->received(array_shift($this->pieces));
        } elseif ($this->jobs !== []) {
            $job = array_shift($this->jobs);
            $this->scheduler->output($job, false, "output of {$job->id}");
            $this->scheduler->output($job, true, "errors of {$job->id}");
            $this->scheduler->exited($job, $job->id % 256, 0);
            // until an earlier deadline, frames are being gathered
        } elseif ($deadline === 0 || $deadline > hrtime(true) + 50_000_000) {
            $this->scheduler->poolEnded();
        } else {
            usleep((int) max(0, ($deadline - hrtime(true)) / 1000));
        }
    }

    public function awaitExit(int $nanoseconds): void {}

    public function processes(): array
    {
        return []; // commands have no processes here
    }

    public function send(string $bytes): string
    {
        $this->sent .= $bytes;

        return '';
    }

    public function feed(LauncherJob $job): void
    {
        if (isset($this->jobs[$job->id])) {
            $this->asked[] = "feed {$job->id} " . \strlen($job->input);
        }
    }

    public function listen(LauncherJob $job, bool $listen): void
    {
        $this->asked[] = "listen {$job->id} " . var_export($listen, true);
    }

    public function abandon(LauncherJob $job): void
    {
        $this->asked[] = "abandon {$job->id}";
    }

    public function signal(int $pid, int $signal): void
    {
        $this->asked[] = "signal {$pid} {$signal}";
    }

    public function hasNoProcesses(): bool
    {
        return true;
    }
}
