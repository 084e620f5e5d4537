<?php

declare(strict_types=1);

namespace Spindle\Internal\Launcher\Process;

use Spindle\Internal\Launcher\LauncherProtocol;

/** Starts each process with posix_spawn: in its own process group, no signal blocked, only descriptors 0 to 2 open. */
final class Spawner
{
    /** Descriptor of the launcher that refers to the standard output of the pool's process. */
    private const STDOUT_OF_POOL = 3;

    private const MAX_CACHED_ACTIONS = 512;
    private const ENOENT = 2;
    private const E2BIG = 7;
    private const ENOEXEC = 8;
    private const ENOMEM = 12;
    private const EACCES = 13;
    private const ENOTDIR = 20;

    private const PATH_CACHE_NANOSECONDS = 1_000_000_000;

    /** Bytes reserved for {@see LauncherProtocol::MARKER}: name, token of the launcher, and the longest job id. */
    private const MARKER_BYTES = 96;

    /** @var LibcFunctions */
    private readonly object $c;

    private readonly int $null;

    /** @var Integers */
    private readonly object $pipe;

    /** @var Integers */
    private readonly object $pid;

    private readonly \FFI\CData $attributes;
    private readonly Vector $arguments;
    private readonly Vector $environment;

    /** @var array<string, string> environment that the next jobs inherit, as name => `NAME=value` */
    private array $variables = [];

    /** {@see LauncherJob::$changes} that $environment contains, joined by NUL; "\0" if it must be filled again. */
    private string $appliedChanges = "\0";

    /** @var array<string, string> path by "PATH\0program", plus "\0directory" if PATH has relative directories */
    private array $cachedPaths = [];

    /** Time at which the cached paths last expired, in nanoseconds of the monotonic clock. */
    private int $pathsCachedSince = 0;

    /** @var array<string, \FFI\CData> file actions of posix_spawn, by the sources of the child's three descriptors */
    private array $actions = [];

    public function __construct(private readonly Libc $libc, private readonly string $token)
    {
        $this->c = $libc->functions;
        $this->null = $this->c->open('/dev/null', 2 | Libc::CLOEXEC); // O_RDWR
        $this->pipe = $libc->integers('int[2]');
        $this->pid = $libc->integers('int[1]');
        $this->attributes = $this->attributes();
        $this->arguments = new Vector($libc, $libc->hasArgz);
        $this->environment = new Vector($libc, $libc->hasArgz);
    }

    /** @param list<string> $environment `NAME=value`, for jobs that are started after this call */
    public function useEnvironment(array $environment): void
    {
        $this->variables = [];
        foreach ($environment as $variable) {
            $this->variables[explode('=', $variable, 2)[0]] = $variable;
        }
        $this->appliedChanges = "\0";
    }

    /**
     * Starts the job. Sets the job's pid and the launcher's ends of the job's pipes, which are non-blocking.
     *
     * @return bool false when nothing was started, because descriptors, processes or memory ran out
     *
     * @throws StartFailure when the job can't be started at all
     */
    public function start(LauncherJob $job): bool
    {
        Programs::changeDirectory($job->directory);
        if (\PHP_ZTS !== 0 && $this->c->chdir($job->directory) !== 0) {
            throw new StartFailure(126, "Can't enter the working directory '{$job->directory}'");
        }
        umask($job->umask);
        $path = $this->resolve($job);
        $this->arguments->fillJoined($job->arguments === '' ? "sh\0-c\0--\0{$job->line}" : $job->arguments);
        $this->fillEnvironment($job);
        if (!$this->openPipes($job)) {
            $this->closePipes($job);

            return false;
        }

        try {
            $error = $this->spawnOrFallBack($path, $job);
        } catch (StartFailure $failure) {
            $this->closePipes($job);

            throw $failure;
        }
        if ($error !== 0) {
            $this->closePipes($job);
            if ($error === Libc::EAGAIN || $error === self::ENOMEM) {
                return false;
            }

            throw $this->failure($error, $path, $job);
        }

        $job->pid = $this->pid[0];
        foreach ($job->childEnds as $end) {
            $this->c->close($end);
        }
        $job->childEnds = [];

        return true;
    }

    private function attributes(): \FFI\CData
    {
        $attributes = $this->libc->new('spawn_attributes[1]');
        $this->c->posix_spawnattr_init($attributes);
        $this->c->posix_spawnattr_setflags($attributes, 2 | 4 | 8); // SETPGROUP | SETSIGDEF | SETSIGMASK
        $this->c->posix_spawnattr_setpgroup($attributes, 0);
        $set = $this->libc->new('signal_set[1]');
        $this->c->sigemptyset($set);
        $this->c->posix_spawnattr_setsigmask($attributes, $set);
        $default = pack('Q', self::signalsToReset());
        \FFI::memcpy($set, $default, 8);
        $this->c->posix_spawnattr_setsigdefault($attributes, $set);

        return $attributes;
    }

    /**
     * Returns the signals that a child resets to their default: SIGPIPE, signals that this process ignores, and 32 and
     * 33. glibc reserves 32 and 33, and without the reset, posix_spawn makes the child ignore them. Other signals are
     * left out, because each would cost the child a system call.
     *
     * @return int bit n - 1 for signal n
     */
    private static function signalsToReset(): int
    {
        preg_match('/^SigIgn:\s*([0-9a-f]{16})$/m', (string) @file_get_contents('/proc/self/status'), $match);
        /** @var array{1: int} $ignored */
        $ignored = unpack('J', (string) hex2bin($match[1] ?? str_repeat('0', 16))); // hexdec() can return a float

        return $ignored[1] | 1 << 13 - 1 | 1 << 32 - 1 | 1 << 33 - 1;
    }

    /**
     * Starts the program. If the file that an earlier search found in PATH was removed or is not executable, searches
     * PATH again. Runs a script without `#!` in a shell.
     *
     * @return int error number; 0 on success
     */
    private function spawnOrFallBack(string $path, LauncherJob $job): int
    {
        $error = $this->spawn($path, $job);
        $isGone = $error === self::ENOENT || $error === self::EACCES;
        if ($isGone && !str_contains($job->program(), '/')) {
            $this->cachedPaths = []; // the program may have moved
            $path = $this->resolve($job);
            $error = $this->spawn($path, $job);
        }
        if ($error !== self::ENOEXEC || !Programs::needsShell(UnusableProgram::head($path))) {
            return $error;
        }
        $this->arguments->fill(Programs::shellCommand($path, $job->argumentList()));

        return $this->spawn(Programs::SHELL, $job);
    }

    private function failure(int $error, string $path, LauncherJob $job): StartFailure
    {
        return match ($error) {
            self::ENOENT => UnusableProgram::failure($path, $job->directory)
                ?? new StartFailure(127, 'No such file or directory: the file exists, but its dynamic loader does not'),
            self::ENOEXEC => UnusableProgram::unknownFormat(),
            self::EACCES, self::ENOTDIR => UnusableProgram::failure($path, $job->directory),
            self::E2BIG => ArgumentSize::failure(
                $job->argumentList(),
                $job->line,
                array_values($job->environment($this->variables)),
            ),
            default => null,
        } ?? new StartFailure(126, $this->libc->message($error));
    }

    /** @throws StartFailure when the program is not found */
    private function resolve(LauncherJob $job): string
    {
        if ($job->startedAt - $this->pathsCachedSince > self::PATH_CACHE_NANOSECONDS) {
            $this->cachedPaths = [];
            $this->pathsCachedSince = $job->startedAt;
        }
        $program = $job->program();
        if (str_contains($program, '/')) {
            return $program;
        }
        $path = $job->path($this->variables) ?? Programs::DEFAULT_PATH;
        $isRelative = preg_match('~(?:^|:)(?!/)~', $path) === 1;
        $key = "{$path}\0{$program}" . ($isRelative ? "\0{$job->directory}" : '');

        return $this->cachedPaths[$key] ??= Programs::find($program, $path);
    }

    private function fillEnvironment(LauncherJob $job): void
    {
        $marker = LauncherProtocol::MARKER . "={$this->token}.{$job->id}";
        $changes = implode("\0", $job->changes);
        // Most jobs have the same changes as the job before. For these jobs, only the marker (the first entry) is new.
        if ($changes === $this->appliedChanges) {
            $this->environment->replaceFirst($marker);

            return;
        }
        $this->environment->fill(
            [str_pad($marker, self::MARKER_BYTES, "\0"), ...array_values($job->environment($this->variables))],
        );
        $this->environment->replaceFirst($marker);
        $this->appliedChanges = $changes;
    }

    /** @return bool false when descriptors ran out, perhaps after some of the pipes were opened */
    private function openPipes(LauncherJob $job): bool
    {
        $flags = $job->flags;
        $piped = [
            ($flags & (LauncherProtocol::INPUT_INLINE | LauncherProtocol::INPUT_FOLLOWS)) !== 0,
            ($flags & (LauncherProtocol::INHERIT_STDOUT | LauncherProtocol::DISCARD_STDOUT)) === 0,
            ($flags & (LauncherProtocol::INHERIT_STDERR | LauncherProtocol::DISCARD_STDERR)) === 0,
        ];
        foreach ($piped as $descriptor => $isPiped) {
            if (!$isPiped) {
                continue;
            }
            if ($this->c->pipe2($this->pipe, Libc::CLOEXEC) !== 0) {
                return false;
            }
            $isInput = $descriptor === 0;
            $job->childEnds[$descriptor] = $this->pipe[$isInput ? 0 : 1];
            $launcherEnd = $this->pipe[$isInput ? 1 : 0];
            match ($descriptor) {
                0 => $job->stdinPipe = $launcherEnd,
                1 => $job->stdoutPipe = $launcherEnd,
                2 => $job->stderrPipe = $launcherEnd,
            };
            // F_SETFL (4): O_NONBLOCK, and O_WRONLY (1) as before. pipe2() would make the child's end non-blocking too.
            $this->c->fcntl($launcherEnd, 4, Libc::NONBLOCK | (int) $isInput);
        }

        return true;
    }

    /** Returns the file actions for the child's descriptors, from a cache: pipes of most jobs have the same numbers. */
    private function actions(LauncherJob $job): \FFI\CData
    {
        $sources = [
            $job->childEnds[0] ?? $this->null,
            $job->childEnds[1]
                ?? (($job->flags & LauncherProtocol::INHERIT_STDOUT) !== 0 ? self::STDOUT_OF_POOL : $this->null),
            $job->childEnds[2] ?? (($job->flags & LauncherProtocol::INHERIT_STDERR) !== 0 ? 2 : $this->null),
        ];
        $key = "{$sources[0]},{$sources[1]},{$sources[2]}";
        if (isset($this->actions[$key])) {
            return $this->actions[$key];
        }
        if (\count($this->actions) >= self::MAX_CACHED_ACTIONS) {
            array_walk($this->actions, $this->c->posix_spawn_file_actions_destroy(...));
            $this->actions = [];
        }
        $actions = $this->libc->new('spawn_actions[1]');
        $this->c->posix_spawn_file_actions_init($actions);
        foreach ($sources as $target => $source) {
            $this->c->posix_spawn_file_actions_adddup2($actions, $source, $target);
        }

        return $this->actions[$key] = $actions;
    }

    /** @return int error number; 0 on success */
    private function spawn(string $path, LauncherJob $job): int
    {
        return $this->c->posix_spawn(
            $this->pid,
            $path,
            $this->actions($job),
            $this->attributes,
            $this->arguments->pointers,
            $this->environment->pointers,
        );
    }

    private function closePipes(LauncherJob $job): void
    {
        foreach ([...$job->childEnds, $job->stdoutPipe, $job->stderrPipe, $job->stdinPipe] as $descriptor) {
            if ($descriptor >= 0) {
                $this->c->close($descriptor);
            }
        }
        $job->childEnds = [];
        $job->stdoutPipe = $job->stderrPipe = $job->stdinPipe = -1;
    }
}
