<?php

declare(strict_types=1);

namespace Spindle\Internal\Testing;

use Spindle\Internal\Launcher\Process\Files;
use Spindle\Internal\Launcher\Process\Signals;

/** What there is of a temporary server outside of this process: its directory and the processes that work in it. */
final class Remains
{
    /** Seconds that the removal of both may take. */
    private const REMOVAL = 0.7;

    /** Seconds that killed processes may take to go. */
    private const DEATH = 5.0;

    private const SIGKILL = 9;

    /**
     * @param string $directory whose name is unique
     * @param string $programs  a pattern of the names of those programs that belong to the server
     */
    public function __construct(public readonly string $directory, private readonly string $programs) {}

    /**
     * The live processes, also when their parents are gone. They are known by the directory's name: in their command
     * line or, where this process may see it, in their working directory.
     *
     * @return array<int, string> names of programs by pid; none where there is no /proc
     */
    public function processes(): array
    {
        $processes = [];
        foreach (Files::in('/proc') as $entry) {
            $line = (int) $entry > 0 ? @file_get_contents("/proc/{$entry}/cmdline") : false;
            if ($line !== false && preg_match("~^(?:[^\\0]*/)?({$this->programs})[: \\0]~", $line, $match) === 1
                && (str_contains($line, basename($this->directory)) || str_starts_with((string) @readlink("/proc/{$entry}/cwd"), "{$this->directory}/"))) {
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

    public function kill(): void
    {
        Wait::until(function (): bool {
            $this->signal(self::SIGKILL);

            return $this->processes() === [];
        }, self::DEATH);
    }

    /**
     * Kills the processes and removes the directory.
     *
     * @param (\Closure(): void)|null $between removes what the directory's files tell of
     */
    public function remove(?\Closure $between = null): void
    {
        Wait::until(function () use ($between): bool { // a process that was just being started makes files yet
            $this->kill();
            if ($between !== null) {
                $between();
            }
            exec('rm -rf -- ' . escapeshellarg($this->directory) . ' 2>&1');
            clearstatcache();

            return !file_exists($this->directory);
        }, self::REMOVAL);
    }
}
