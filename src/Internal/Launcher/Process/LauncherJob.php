<?php

declare(strict_types=1);

namespace Spindle\Internal\Launcher\Process;

use Spindle\Internal\Launcher\LauncherProtocol;

/** One command in the launcher, from the frame that requests it to the frame that reports its end. */
final class LauncherJob
{
    /** Process id; 0 before the start and after the exit. */
    public int $pid = 0;

    /** Unix time of the start, in seconds. */
    public float $startedAt = 0.0;

    /** Times of the start and of the last output, on the monotonic clock in nanoseconds. */
    public int $started = 0;
    public int $lastOutput = 0;

    /** Why the job is being ended: TIMED_OUT, IDLE or CANCELLED of LauncherProtocol; 0 if it is not. */
    public int $ending = 0;

    /** When the rest of the job gets SIGKILL, on the monotonic clock; 0 unless it is being ended. */
    public int $killAt = 0;

    /** Whether SIGKILL has been sent to the rest of the job. */
    public bool $killed = false;
    public int $exitCode = -1;
    public int $signal = 0;
    public int $ended = 0;

    /** Maximum memory in bytes; 0 when unknown. */
    public int $memoryPeak = 0;

    public string $stdout = '';
    public string $stderr = '';

    /** Bytes of streamed output that were sent and that the pool has not acknowledged. */
    public int $unacknowledged = 0;

    /** Whether the pool will send more input. */
    public bool $inputFollows;

    /** With FFI: descriptors of our ends of the pipes; -1 for none. */
    public int $out = -1;
    public int $err = -1;
    public int $in = -1;

    /** @var array<int, int> ends of the pipes for the child, by its descriptor; open only during the start */
    public array $childEnds = [];

    /** @var array<int, resource> without FFI: our ends of the pipes, by the child's descriptor */
    public array $pipes = [];

    /** @var list<string> `NAME=value`, the launcher's environment when it received the job */
    public array $inherited = [];

    /** @var resource|null without FFI: process handle */
    public mixed $process = null;

    /**
     * @param list<string> $changes   `NAME=value` to set, `NAME` to remove, relative to the launcher's environment
     * @param list<string> $arguments the program first; empty for a line that only a shell can run
     * @param float        $timeout   in seconds; 0 for none
     * @param float        $idleTimeout in seconds; 0 for none
     * @param string       $line      the shell line, also when the arguments were split from it; '' for a program
     */
    public function __construct(
        public readonly int $id,
        public readonly int $lane,
        public readonly int $flags,
        public readonly float $timeout,
        public readonly float $idleTimeout,
        public readonly string $directory,
        public readonly array $changes,
        public array $arguments,
        public readonly string $line,
        public string $input,
        public readonly int $umask,
    ) {
        $this->inputFollows = ($flags & LauncherProtocol::INPUT_FOLLOWS) !== 0;
    }

    /**
     * Returns the environment of the job, without its marker.
     *
     * @param array<string, string> $variables name => `NAME=value`, before the job's changes
     *
     * @return array<string, string>
     */
    public function environment(array $variables): array
    {
        foreach ($this->changes as $change) {
            [$name, $value] = explode('=', $change, 2) + [1 => null];
            if ($value === null) {
                unset($variables[$name]);
            } else {
                $variables[$name] = $change;
            }
        }
        unset($variables[LauncherProtocol::MARKER]);

        return $variables;
    }

    /**
     * Returns the PATH of the job's environment, where its program is searched.
     *
     * @param array<string, string> $variables see {@see environment()}
     */
    public function path(array $variables): ?string
    {
        $variable = ($this->changes === [] ? $variables : $this->environment($variables))['PATH'] ?? null;

        return $variable === null ? null : substr($variable, 5);
    }
}
