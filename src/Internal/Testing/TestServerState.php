<?php

declare(strict_types=1);

namespace Spindle\Internal\Testing;

use Spindle\Internal\Launcher\Process\Files;
use Spindle\Internal\Launcher\Process\Signals;

/** The parts of a temporary server outside of this process: its directory, and the processes that work in it. */
final class TestServerState
{
    /** Maximum seconds for the removal of both. */
    private const REMOVAL_TIMEOUT = 0.7;

    /** Maximum seconds for the end of killed processes. */
    private const KILL_TIMEOUT = 5.0;

    private const SIGKILL = 9;

    /**
     * @param string $directory directory with a unique name
     * @param string $programs  pattern for the names of the server's programs
     */
    public function __construct(public readonly string $directory, private readonly string $programs) {}

    /**
     * Returns live processes, also without parents, with the directory's name in their command line or working
     * directory.
     *
     * @return array<int, string> names of programs by pid; none without /proc
     */
    public function processes(): array
    {
        $processes = [];
        foreach (Files::in('/proc') as $entry) {
            $line = (int) $entry > 0 ? @file_get_contents("/proc/{$entry}/cmdline") : false;
            if ($line !== false && preg_match("~^(?:[^\\0]*/)?({$this->programs})[: \\0]~", $line, $match) === 1
                && (
                    str_contains($line, basename($this->directory))
                    || str_starts_with((string) @readlink("/proc/{$entry}/cwd"), "{$this->directory}/")
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

    public function kill(): void
    {
        Wait::until(function (): bool {
            $this->signal(self::SIGKILL);

            return $this->processes() === [];
        }, self::KILL_TIMEOUT);
    }

    /**
     * Kills the processes and removes the directory.
     *
     * @param (\Closure(): void)|null $between removes what is named in the directory's files
     */
    public function remove(?\Closure $between = null): void
    {
        Wait::until(function () use ($between): bool { // a process that was just being started may still make files
            $this->kill();
            if ($between !== null) {
                $between();
            }
            exec('rm -rf -- ' . escapeshellarg($this->directory) . ' 2>&1');
            clearstatcache();

            return !file_exists($this->directory);
        }, self::REMOVAL_TIMEOUT);
    }
}
