<?php

declare(strict_types=1);

namespace Spindle\Internal\Testing;

use Spindle\Internal\Launcher\Process\Files;
use Spindle\Internal\Launcher\Process\Signals;
use Spindle\Internal\Warnings;

/** Finds and kills the processes of a temporary server, and removes the directory of the server. */
final class TestServerState
{
    private const REMOVAL_TIMEOUT = 0.7;

    private const KILL_TIMEOUT = 5.0;

    private const SIGKILL = 9;

    /**
     * @param string $directory directory with a unique name
     * @param string $programs  regular expression for the names of the server's programs
     */
    public function __construct(public readonly string $directory, private readonly string $programs) {}

    /**
     * Finds the server's processes, including orphans. A process belongs to the server if its command line contains the
     * name of `$directory`, or its working directory is below `$directory`.
     *
     * @return array<int, string> names of programs, by pid; empty without /proc
     */
    public function processes(): array
    {
        $processes = [];
        foreach (Files::in('/proc') as $entry) {
            $line = (int) $entry > 0 ? Files::read("/proc/{$entry}/cmdline") : false;
            if ($line !== false && preg_match("~^(?:[^\\0]*/)?({$this->programs})[: \\0]~", $line, $match) === 1
                && (
                    str_contains($line, basename($this->directory))
                    || str_starts_with(self::workingDirectory($entry), "{$this->directory}/")
                )) {
                $processes[(int) $entry] = $match[1];
            }
        }

        return $processes;
    }

    public function signal(int $signal): void
    {
        foreach (array_keys($this->processes()) as $pid) {
            Signals::send($pid, $signal);
        }
    }

    /** Kills all processes of the server, and waits until they have ended, but at most KILL_TIMEOUT. */
    public function kill(): void
    {
        Wait::until(function (): bool {
            $this->signal(self::SIGKILL);

            return $this->processes() === [];
        }, self::KILL_TIMEOUT);
    }

    /** @param (\Closure(): void)|null $afterKill frees shared memory before the file with the memory's id is removed */
    public function remove(?\Closure $afterKill = null): void
    {
        Wait::until(function () use ($afterKill): bool { // repeated, because a new process may still create files
            $this->kill();
            if ($afterKill !== null) {
                $afterKill();
            }
            Program::run(['rm', '-rf', '--', $this->directory]);
            clearstatcache();

            return !file_exists($this->directory);
        }, self::REMOVAL_TIMEOUT);
    }

    private static function workingDirectory(string $pid): string
    {
        return (string) Warnings::suppressed(static fn(): string|false => readlink("/proc/{$pid}/cwd"));
    }
}
