<?php

declare(strict_types=1);

namespace Spindle\Internal\Launcher\Process;

use Spindle\Internal\Launcher\Protocol;

/**
 * One command in the launcher, from the frame that asked for it to the frame that reports it.
 */
final class Job
{
    /** Process id; 0 until it is started and again once its exit was taken. */
    public int $pid = 0;

    /** Unix time of the start, in seconds. */
    public float $startedAt = 0.0;

    /** Start, and last sign of life, on the monotonic clock in nanoseconds. */
    public int $started = 0;
    public int $lastOutput = 0;

    /** Why it is being ended: 0, or one of Protocol's TIMED_OUT, IDLE, CANCELLED. */
    public int $ending = 0;

    /** When what is left of it gets SIGKILL, on the monotonic clock; 0 unless it is being ended. */
    public int $killAt = 0;

    /** SIGKILL has been sent to what was left of it. */
    public bool $killed = false;
    public int $exitCode = -1;
    public int $signal = 0;
    public int $ended = 0;

    /** Bytes of memory that it had at most; 0 where the system does not tell. */
    public int $memoryPeak = 0;

    public string $stdout = '';
    public string $stderr = '';

    /** Output sent for a streamed command that the pool has not yet said it took, in bytes. */
    public int $untaken = 0;

    /** Whether the pool will send more input; and input that was taken from $input but not yet reported so. */
    public bool $inputFollows;

    /** With FFI: descriptors of our ends of its pipes; -1 when there is none. */
    public int $out = -1;
    public int $err = -1;
    public int $in = -1;

    /** @var array<int, int> the child's ends of its pipes by what they become there, open only while it is started */
    public array $childEnds = [];

    /** @var array<int, resource> without FFI: our ends of its pipes, by the child's descriptor */
    public array $pipes = [];

    /** @var list<string> `NAME=value`, what it starts from: the launcher's environment when it got the job */
    public array $inherited = [];

    /** @var resource|null without FFI: the process handle */
    public mixed $process = null;

    /**
     * @param list<string> $changes   `NAME=value` to set, `NAME` to remove, against the launcher's environment
     * @param list<string> $arguments the program first; empty for what only the shell can run
     * @param float        $timeout   in seconds; 0 for none
     * @param float        $idleTimeout in seconds; 0 for none
     * @param string       $line      the shell line, also where the arguments were split from it; '' for a program
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
        $this->inputFollows = ($flags & Protocol::INPUT_FOLLOWS) !== 0;
    }

    /**
     * The environment that the job gets, without its marker.
     *
     * @param array<string, string> $variables name => `NAME=value`, what it starts from
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
        unset($variables[Protocol::MARKER]);

        return $variables;
    }

    /**
     * Where its program is looked up: PATH in its own environment.
     *
     * @param array<string, string> $variables as for {@see environment()}
     */
    public function path(array $variables): ?string
    {
        $variable = ($this->changes === [] ? $variables : $this->environment($variables))['PATH'] ?? null;

        return $variable === null ? null : substr($variable, 5);
    }
}
