<?php

declare(strict_types=1);

namespace Spindle\Internal\Testing;

use Spindle\Internal\Launcher\PhpBinary;
use Spindle\LauncherException;

/** A process that removes a temporary server when this process dismisses it or ends, for whatever reason. */
final class GuardianProcess
{
    /** @var resource|null */
    private mixed $process;

    /** @var resource the end of its input is the sign to act */
    private readonly mixed $pipe;

    private readonly int $owner;

    /**
     * @param class-string<Removal> $removal
     *
     * @throws ServerException
     * @throws LauncherException when there is no command-line PHP
     */
    public function __construct(private readonly string $removal, private readonly string $directory)
    {
        $this->owner = (int) getmypid();
        $command = [
            PhpBinary::find(null),
            ...PhpBinary::options(),
            __DIR__ . '/guardian.php',
            (string) $this->owner,
            $removal,
            $directory,
        ];
        [$this->process, $this->pipe] = Program::startGuardian($command);
    }

    public function isDismissed(): bool
    {
        return $this->process === null;
    }

    /** Whether it was not dismissed, and this process is the one that started it and not a fork. */
    public function isOurs(): bool
    {
        return $this->process !== null && $this->owner === getmypid();
    }

    /**
     * @param string $server name of the server in messages
     *
     * @throws \LogicException when it is not ours
     */
    public function check(string $server): void
    {
        if (!$this->isOurs()) {
            throw new \LogicException(
                $this->process === null
                    ? "The {$server} was stopped"
                    : "The {$server} belongs to the parent process of this fork",
            );
        }
    }

    /** Waits until the server has been removed completely. */
    public function dismiss(): void
    {
        if ($this->process === null) {
            return;
        }
        @fwrite($this->pipe, "\n"); // because a fork of this process may have the pipe open, too
        fclose($this->pipe);
        proc_close($this->process);
        $this->process = null;
        clearstatcache();
        if (is_dir($this->directory)) { // the guardian was killed
            $this->removal::remove($this->directory);
        }
    }
}
