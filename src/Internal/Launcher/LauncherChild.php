<?php

declare(strict_types=1);

namespace Spindle\Internal\Launcher;

use Spindle\Internal\FileType;
use Spindle\Internal\Launcher\Process\Files;
use Spindle\Internal\Launcher\Process\ProcessTree;
use Spindle\Internal\Launcher\Process\Signals;
use Spindle\Internal\LoopLimit;
use Spindle\Internal\MalformedFrameException;
use Spindle\Internal\Preload;
use Spindle\Internal\Warnings;
use Spindle\LauncherException;

/** Starts a launcher as a child process, reports its exit, and kills the processes that the launcher has started. */
final class LauncherChild
{
    /** First and longest pause between two checks of a process or its pipe, in microseconds. */
    public const MIN_POLL_MICROSECONDS = 100;
    public const MAX_POLL_MICROSECONDS = 5_000;

    /** Functions that a launcher or its parent needs. The setting disable_functions may have removed them. */
    private const REQUIRED_FUNCTIONS = [
        'getenv', 'getmypid', 'proc_close', 'proc_get_status', 'proc_open', 'readlink', 'scandir', 'stream_select',
        'stream_set_blocking', 'umask', 'usleep',
    ];

    /** Nanoseconds that {@see close()} waits for the exit of the launcher before it kills the launcher. */
    private const CLOSE_TIMEOUT_NANOSECONDS = 5_000_000_000;

    private const KILL_TIMEOUT_NANOSECONDS = 1_000_000_000;

    private const NOT_EXECUTED = 127;

    private const SIGKILL = 9;
    private const SIGCONT = 18;

    public readonly int $pid;

    /**
     * @param string $token random value that marks the environment of each process that the launcher starts
     * @param resource $process
     * @param array{pid: int, running: bool, signaled: bool, exitcode: int, termsig: int} $status result of
     *        proc_get_status() just after the start
     * @param resource $stdin  this process's end of the pipe to the launcher
     * @param resource $stdout this process's end of the pipe from the launcher
     */
    private function __construct(
        private readonly string $token,
        private readonly mixed $process,
        private readonly array $status,
        public readonly mixed $stdin,
        public readonly mixed $stdout,
    ) {
        $this->pid = $status['pid'];
    }

    /**
     * @param list<string> $others      further functions that the caller needs
     * @param string       $alternative end of the message: what to do without these functions; '' for none
     *
     * @throws LauncherException when PHP lacks a function of `$others`, or one that a launcher or its parent needs
     */
    public static function checkFunctions(array $others = [], string $alternative = ''): void
    {
        $missing = array_filter(
            [...self::REQUIRED_FUNCTIONS, ...$others],
            static fn(string $function): bool => !\function_exists($function),
        );
        if ($missing !== []) {
            $functions = implode('(), ', $missing);

            throw LauncherException::cannotStart(
                "this PHP has no {$functions}(); see disable_functions in php.ini{$alternative}",
            );
        }
    }

    /**
     * Starts a launcher with non-blocking pipes. The parameters are those of {@see LauncherProcess::__construct()}.
     *
     * @throws LauncherException when the process can't be started
     */
    public static function start(?string $php, string $startMethod, string $temporaryFilePrefix): self
    {
        self::checkFunctions();
        $token = bin2hex(random_bytes(8));
        $command = [
            PhpBinary::find($php), ...PhpBinary::options(),
            // PHP keeps the file of a main script open, and commands would inherit the descriptor. So -r runs main.php.
            '-r', PhpBinary::requiring(__DIR__ . '/Process/main.php'), '--',
            $token, (string) getmypid(), $startMethod, $temporaryFilePrefix, LauncherProtocol::VERSION,
        ];
        $child = Warnings::suppressed(static function () use ($token, $command): self {
            $failure = HelperCode::failure(HelperCode::LAUNCHER);

            return $failure !== null ? throw LauncherException::cannotStart($failure) : self::open($token, $command);
        });
        if (!LoopLimit::allows($child->stdin) || !LoopLimit::allows($child->stdout)) {
            fclose($child->stdin);
            fclose($child->stdout);
            proc_close($child->process);

            throw LauncherException::cannotStart(
                'its pipes have descriptors above 1023, which the event loop cannot watch with stream_select().'
                . ' Open fewer files in this process, or install ext-ev or ext-uv',
            );
        }
        stream_set_blocking($child->stdin, false);
        stream_set_blocking($child->stdout, false);
        stream_set_read_buffer($child->stdout, 0);
        stream_set_write_buffer($child->stdin, 0);

        return $child;
    }

    public function state(): string
    {
        return ProcessTree::state($this->pid);
    }

    public function kill(): void
    {
        Signals::send($this->pid, self::SIGKILL);
    }

    /** Blocks until the launcher and its processes have ended, then frees the process handle. */
    public function close(): void
    {
        if (\is_resource($this->process)) {
            $this->awaitExit();
            proc_close($this->process);
        }
    }

    /** Returns how the launcher has ended, such as "exit code 1". Blocks until the exit, but for at most 0.1 s. */
    public function describeExit(): string
    {
        // PHP before 8.3 reports an exit code only once. If $this->status has the code, another call would return -1.
        $status = $this->status['running'] ? proc_get_status($this->process) : $this->status;
        for ($attempt = 0; $status['running'] && $attempt < 100; ++$attempt) {
            usleep(1000); // a process closes its pipes a moment before PHP can read its exit status
            $status = proc_get_status($this->process);
        }

        return match (true) {
            $status['signaled'] => "signal {$status['termsig']}",
            $status['exitcode'] === self::NOT_EXECUTED => 'the system could not execute PHP; the'
                . ' environment may be too large (putenv())',
            default => "exit code {$status['exitcode']}",
        };
    }

    /** Kills all processes that the launcher has started. Waits at most about a second until they have ended. */
    public function killTree(bool $ownsPid = true): void
    {
        $ancestor = $ownsPid ? $this->pid : -1; // without a pid, only processes with the token are found
        $findRemaining = fn(): array => array_keys(ProcessTree::find($this->token, [], $ancestor));
        $unkillable = []; // processes that this process may not signal: those of another user
        ProcessTree::kill($findRemaining, static function (int $pid, int $signal) use (&$unkillable): void {
            if (!Signals::send($pid, $signal)) {
                $unkillable[] = $pid;
            }
        });
        $deadline = hrtime(true) + self::KILL_TIMEOUT_NANOSECONDS;
        while (array_diff($findRemaining(), $unkillable) !== [] && hrtime(true) < $deadline) {
            usleep(1000); // the kernel needs a moment to end a killed process
        }
    }

    /** @param list<string> $command */
    private static function open(string $token, array $command): self
    {
        $null = ['null'];
        $stdout = Warnings::suppressed(static fn(): mixed => fopen('php://stdout', 'w'));
        $unwritable = ['file', '/dev/null', 'r'];
        $descriptors = [['pipe', 'r'], ['pipe', 'w'], 3 => match (true) {
            FileType::isOpcacheLock(1) => $unwritable,
            $stdout === false => $null,
            default => $stdout,
        }];
        $replaced = Descriptors::toReplace();
        foreach ($replaced as $descriptor) {
            $descriptors[$descriptor] = $null;
        }
        // Loads classes now. Later, PHP may have no free descriptor for the file of a class, or no access to the file.
        Preload::load(
            HelperCode::class,
            LauncherException::class,
            MalformedFrameException::class,
            LoopLimit::class,
            Files::class,
            ProcessTree::class,
            Signals::class,
        );
        $isClosed = static fn(): bool => !is_link('/proc/self/fd/2') && is_dir('/proc/self/fd');
        if (Warnings::suppressed($isClosed)) {
            $descriptors[2] = $null;
        } elseif (FileType::isOpcacheLock(2)) {
            $descriptors[2] = $unwritable;
        }
        $restore = self::stopIgnoringChildSignal();
        try {
            error_clear_last();
            $command = self::closingDescriptors($replaced, $command);
            $process = Warnings::suppressed(static function () use ($command, $descriptors, &$pipes): mixed {
                return proc_open($command, $descriptors, $pipes, null, null);
            });
            $status = $process === false ? null : proc_get_status($process);
        } catch (\Error $error) {
            throw LauncherException::cannotStart("{$error->getMessage()}; see disable_functions in php.ini");
        } finally {
            $restore();
        }
        if ($process === false || $status === null) {
            throw LauncherException::cannotStart(error_get_last()['message'] ?? 'proc_open failed');
        }

        /** @var array{resource, resource} $pipes */
        return new self($token, $process, $status, ...$pipes);
    }

    /**
     * Returns a shell command that closes the given descriptors, then executes the given command. A launcher without
     * FFI can't mark descriptors as close-on-exec, so its commands would inherit them. The shell only closes
     * descriptors up to 9, because sh accepts only one digit. Returns the given command unchanged in three cases: there
     * is nothing to close, there is no shell, or real and effective ids may differ. Some shells would reset ids that
     * differ.
     *
     * @param list<int>    $descriptors descriptors that are /dev/null in the launcher
     * @param list<string> $command
     *
     * @return list<string>
     */
    private static function closingDescriptors(array $descriptors, array $command): array
    {
        $closed = array_filter($descriptors, static fn(int $descriptor): bool => $descriptor <= 9);
        $hasShell = static fn(): bool => is_executable('/bin/sh');
        if ($closed === [] || !ProcessCredentials::areReal() || !Warnings::suppressed($hasShell)) {
            return $command;
        }
        $closings = implode(' ', array_map(static fn(int $descriptor): string => "{$descriptor}<&-", $closed));

        return ['/bin/sh', '-c', "exec \"\$@\" {$closings}", 'sh', ...$command];
    }

    /**
     * Sets the default handler for SIGCHLD if this process ignores the signal, because a child would also ignore it.
     *
     * @return \Closure(): mixed restores the handler that was set before
     */
    private static function stopIgnoringChildSignal(): \Closure
    {
        if (!\function_exists('pcntl_signal_get_handler')) {
            return static fn() => null;
        }
        $handler = pcntl_signal_get_handler(\SIGCHLD);
        if ($handler !== \SIG_IGN) {
            return static fn() => null;
        }
        pcntl_signal(\SIGCHLD, \SIG_DFL);

        return static fn() => pcntl_signal(\SIGCHLD, $handler);
    }

    /** Waits for the exit. Kills the launcher after a timeout. Kills its processes unless its exit code is 0. */
    private function awaitExit(): void
    {
        $deadline = hrtime(true) + self::CLOSE_TIMEOUT_NANOSECONDS;
        $pause = self::MIN_POLL_MICROSECONDS;
        $status = proc_get_status($this->process);
        while ($status['running']) {
            if (hrtime(true) > $deadline) {
                $this->kill();

                break;
            }
            if ($pause === self::MAX_POLL_MICROSECONDS && $this->state() === 'T') {
                Signals::send($this->pid, self::SIGCONT);
            }
            usleep($pause);
            $pause = min(2 * $pause, self::MAX_POLL_MICROSECONDS);
            $status = proc_get_status($this->process);
        }
        // If the exit is unknown (code -1 without a signal), another process may have the pid of the launcher.
        if ($status['exitcode'] !== 0) {
            $this->killTree($status['running'] || $status['signaled'] || $status['exitcode'] > 0);
        }
    }
}
