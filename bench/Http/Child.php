<?php

declare(strict_types=1);

namespace Spindle\Bench\Http;

/** A server process. The destructor ends the process, with all processes that it has started. */
final class Child
{
    /** Seconds between SIGTERM and SIGKILL. */
    private const KILL_AFTER = 5.0;

    private const POLL_INTERVAL = 0.005;

    public readonly ProcessTree $tree;

    /** @var resource|null */
    private $process;

    /**
     * @param non-empty-list<string> $command
     * @param string                 $log     file for its output
     * @param string                 $folder  its working directory
     * @param bool                   $endsAll whether it ends its own children, so that they are not killed here
     *
     * @throws \RuntimeException
     */
    public function __construct(array $command, string $log, string $folder, private readonly bool $endsAll = false)
    {
        $process = proc_open(
            $command,
            [['file', '/dev/null', 'r'], ['file', $log, 'a'], ['file', $log, 'a']],
            $pipes,
            $folder,
        );
        if ($process === false) {
            throw new \RuntimeException("{$command[0]} could not be started");
        }
        $this->process = $process;
        $this->tree = new ProcessTree(proc_get_status($process)['pid']);
    }

    public function __destruct()
    {
        $this->stop();
    }

    public function isRunning(): bool
    {
        return $this->process !== null && proc_get_status($this->process)['running'];
    }

    public function stop(): void
    {
        if ($this->process === null) {
            return;
        }
        $pids = $this->endsAll ? \array_slice($this->tree->pids(), 0, 1) : $this->tree->pids();
        proc_terminate($this->process, \SIGTERM);
        for ($end = hrtime(true) + self::KILL_AFTER * 1e9; $this->isRunning() && hrtime(true) < $end;) {
            usleep((int) (self::POLL_INTERVAL * 1e6));
        }
        foreach ($pids as $pid) {
            posix_kill($pid, \SIGKILL);
        }
        proc_close($this->process);
        $this->process = null;
    }
}
