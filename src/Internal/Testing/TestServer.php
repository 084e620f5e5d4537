<?php

declare(strict_types=1);

namespace Spindle\Internal\Testing;

use Spindle\Internal\Launcher\Process\Files;
use Spindle\Internal\Launcher\Process\Signals;

final class TestServer
{
    private const SIGKILL = 9;
    private const SIGCONT = 18;

    private const KILL_TIMEOUT = 2.0;

    private const MAX_LOG_LINES = 20;

    /** @var resource|null process of the last {@see start()}; null before it, and after isRunning() noticed the end */
    private mixed $process = null;

    private readonly string $logFile;

    /**
     * @param string $name name of the server in messages
     * @param list<string> $command command that runs the server in the foreground
     * @param (\Closure(): int)|null $pid returns the server's pid, 0 while unknown; null if $command starts no
     *                                  other process for the server
     */
    public function __construct(
        private readonly string $name,
        private readonly array $command,
        private readonly TestServerState $state,
        private readonly ?\Closure $pid = null,
    ) {
        $this->logFile = "{$state->directory}/log";
    }

    /**
     * @param \Closure(): bool $isReady
     * @param float            $timeout maximum wait, in seconds
     *
     * @throws ServerException when the server ended, or was killed because it was not ready before the timeout
     */
    public function start(\Closure $isReady, float $timeout): void
    {
        $this->process = Program::start($this->command, $this->logFile);
        $ready = false;
        $inTime = Wait::until(function () use ($isReady, &$ready): bool {
            $ready = $isReady();

            return $ready || !$this->isRunning();
        }, $timeout);
        if (!$inTime) {
            $this->kill();

            throw ServerException::late($this->name, $timeout, $this->endOfLog());
        }
        if (!$ready) {
            throw ServerException::ended($this->name, $this->endOfLog());
        }
    }

    /** Returns the pid of the server's first process; 0 while unknown, null when the server is not running. */
    public function pid(): ?int
    {
        if ($this->process === null || !$this->isRunning()) {
            return null;
        }

        return $this->pid !== null ? ($this->pid)() : proc_get_status($this->process)['pid'];
    }

    /**
     * Sends the signals one after the other until the server has ended. If no signal ends the server, kills it.
     *
     * @param array<int, float> $signals seconds to wait after each signal, by signal
     */
    public function stop(array $signals): void
    {
        foreach ($signals as $signal => $seconds) {
            $this->signal($signal);
            $this->state->signal(self::SIGCONT); // all processes, because a suspended one handles no other signal
            if (Wait::until(fn(): bool => !$this->isRunning(), $seconds)) {
                return;
            }
        }
        $this->kill();
    }

    /** Kills only the server's first process, as the OOM killer would. Children of PostgreSQL notice this and exit. */
    public function kill(): void
    {
        $this->signal(self::SIGKILL);
        Wait::until(fn(): bool => !$this->isRunning(), self::KILL_TIMEOUT);
    }

    /** @throws ServerException when the log can't be read */
    public function log(): string
    {
        error_clear_last();
        $log = Files::read($this->logFile);

        return $log !== false ? $log : throw ServerException::noLog(error_get_last()['message'] ?? '');
    }

    private function endOfLog(): string
    {
        return implode(
            "\n",
            \array_slice(explode("\n", trim((string) Files::read($this->logFile))), -self::MAX_LOG_LINES),
        );
    }

    private function signal(int $signal): void
    {
        $pid = (int) $this->pid();
        if ($pid > 0) {
            Signals::send($pid, $signal);
        } elseif (\is_resource($this->process)) {
            proc_terminate($this->process, $signal); // the pid of the server is not known yet
        }
    }

    private function isRunning(): bool
    {
        if ($this->process !== null && !proc_get_status($this->process)['running']) {
            proc_close($this->process);
            $this->process = null;
        }

        return $this->process !== null;
    }
}
