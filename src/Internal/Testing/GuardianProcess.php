<?php

declare(strict_types=1);

namespace Spindle\Internal\Testing;

use Spindle\Internal\Launcher\PhpBinary;
use Spindle\Internal\Warnings;
use Spindle\LauncherException;

/** Starts a child process that removes a temporary server after {@see dismiss()} or any end of this process. */
final class GuardianProcess
{
    /** @var resource|null process handle; null after {@see dismiss()} */
    private mixed $process;

    /** @var resource pipe to the guardian's standard input. Data or the end of the pipe starts the removal */
    private readonly mixed $pipe;

    private readonly int $ownerPid;

    /**
     * @param class-string<Removal> $removal class that removes the server
     *
     * @throws ServerException
     * @throws LauncherException when there is no command-line PHP
     */
    public function __construct(private readonly string $removal, private readonly string $directory)
    {
        $this->ownerPid = (int) getmypid();
        $command = [
            PhpBinary::find(null),
            ...PhpBinary::options(),
            __DIR__ . '/guardian.php',
            (string) $this->ownerPid,
            $removal,
            $directory,
        ];
        [$this->process, $this->pipe] = Program::startGuardian($command);
    }

    public function isDismissed(): bool
    {
        return $this->process === null;
    }

    /** Returns whether this process has started the guardian, and has not dismissed it. Returns false in a fork. */
    public function belongsToThisProcess(): bool
    {
        return $this->process !== null && $this->ownerPid === getmypid();
    }

    /**
     * @param string $server name of the server in messages
     *
     * @throws \LogicException when the server was stopped, or when this process is a fork
     */
    public function check(string $server): void
    {
        if (!$this->belongsToThisProcess()) {
            throw new \LogicException(
                $this->process === null
                    ? "The {$server} was stopped"
                    : "The {$server} belongs to the parent process of this fork",
            );
        }
    }

    /** Makes the guardian remove the server, and waits until the guardian has ended. */
    public function dismiss(): void
    {
        if ($this->process === null) {
            return;
        }
        Warnings::write($this->pipe, "\n"); // closing the pipe is not enough: a fork may have a copy
        fclose($this->pipe);
        proc_close($this->process);
        $this->process = null;
        clearstatcache();
        if (is_dir($this->directory)) { // the guardian was killed
            $this->removal::remove($this->directory);
        }
    }
}
