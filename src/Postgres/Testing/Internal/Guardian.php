<?php

declare(strict_types=1);

namespace Spindle\Postgres\Testing\Internal;

use Spindle\Internal\Launcher\PhpBinary;
use Spindle\LauncherException;
use Spindle\Postgres\Testing\ClusterException;

/** A process that removes a cluster when this one is done with it, or is gone, however it ended. */
final class Guardian
{
    /** @var resource|null */
    private mixed $process;

    /** @var resource its end is the sign to act */
    private readonly mixed $pipe;

    /**
     * @throws ClusterException
     * @throws LauncherException when there is no command-line PHP
     */
    public function __construct(private readonly string $directory)
    {
        $command = [PhpBinary::find(null), ...PhpBinary::options(), __DIR__ . '/guardian.php', (string) getmypid(), $directory];
        [$this->process, $this->pipe] = Program::startGuardian($command);
    }

    /** Returns when nothing of the cluster is left. */
    public function dismiss(): void
    {
        if ($this->process === null) {
            return;
        }
        @fwrite($this->pipe, "\n"); // for where a fork of this process holds the pipe open as well
        fclose($this->pipe);
        proc_close($this->process);
        $this->process = null;
        clearstatcache();
        if (is_dir($this->directory)) { // the guardian was killed
            Leftovers::remove($this->directory);
        }
    }
}
