<?php

declare(strict_types=1);

namespace Spindle\Internal\Launcher;

use Revolt\EventLoop;
use Spindle\Internal\FrameReader;
use Spindle\Internal\Launcher\Process\Files;
use Spindle\Internal\Launcher\Process\ProcessTree;
use Spindle\Internal\Launcher\Process\Signals;
use Spindle\Internal\LoopLimit;
use Spindle\Internal\MalformedFrameException;
use Spindle\Internal\Preload;
use Spindle\Internal\Warnings;
use Spindle\LauncherException;

/** A launcher process as its parent sees it: starts the process, exchanges frames with it, and notices its death. */
final class LauncherProcess
{
    /** Maximum bytes of a frame from a launcher. A longer frame means that another program has written to the pipe. */
    private const MAX_FRAME_BYTES = 64 << 20;

    private const READ_BYTES = 1 << 16;

    /** Bytes per write: the capacity of a pipe. */
    private const MAX_WRITE_BYTES = 1 << 16;

    /** Functions that a launcher or its parent needs. The setting disable_functions may have removed them. */
    private const REQUIRED_FUNCTIONS = [
        'getenv', 'getmypid', 'proc_close', 'proc_get_status', 'proc_open', 'readlink', 'scandir', 'stream_select',
        'stream_set_blocking', 'umask', 'usleep',
    ];

    /** How long {@see close()} waits for the exit of the launcher before it kills the launcher, in nanoseconds. */
    private const CLOSE_TIMEOUT_NANOSECONDS = 5_000_000_000;

    /** How long {@see endAndRead()} reads frames of a launcher that was asked to exit, in nanoseconds. */
    private const LAST_FRAMES_NANOSECONDS = 2_000_000_000;

    /** First and longest pause between two checks whether the launcher has exited, in microseconds. */
    private const MIN_EXIT_POLL_MICROSECONDS = 100;
    private const MAX_EXIT_POLL_MICROSECONDS = 5_000;

    /** Exit code of the child process when the system could not execute PHP in it. */
    private const NOT_EXECUTED = 127;

    private const SIGKILL = 9;
    private const SIGCONT = 18;

    /** Random value in the environment of all processes that the launcher starts, by which they are found. */
    private readonly string $token;

    private readonly int $pid;

    /** Id of the process that started the launcher. A fork of that process has another id. */
    private readonly int $ownerPid;

    /** @var resource */
    private readonly mixed $process;

    /** @var array{pid: int, running: bool, signaled: bool, exitcode: int, termsig: int} status just after the start */
    private readonly array $status;

    /** @var resource this process's end of the pipe to the launcher */
    private readonly mixed $launcherStdin;

    /** @var resource this process's end of the pipe from the launcher */
    private readonly mixed $launcherStdout;

    private readonly FrameReader $frames;
    private readonly string $readCallbackId;

    /** Null unless bytes wait for space in the pipe. */
    private ?string $writeCallbackId = null;

    private readonly Heartbeat $heartbeat;

    /** @var array<array-key, string>|null environment for commands that was queued last */
    private ?array $environment = null;

    /** Frames for the next {@see send()}. */
    private string $queued = '';

    /** Bytes to write; the first $written of them have been written. */
    private string $unsent = '';

    /** Written bytes are removed from $unsent when they are at least half of it, because a removal copies the rest. */
    private int $written = 0;

    private bool $closed = false;

    /**
     * @param string|null $php PHP command-line binary that runs the launcher; null finds a binary
     * @param string $startMethod auto, posix_spawn or proc_open
     * @param string $temporaryFilePrefix beginning of the paths of files that the launcher removes if this process was
     *        killed
     * @param \Closure(int, int, string, int, int): void $onFrame called for each frame: type, job, and payload as
     *        bytes, offset and length
     * @param \Closure(string): void $onDeath called once when the launcher dies, with the cause, such as an exit code
     * @param (\Closure(): void)|null $onFork called once in a fork of this process, in place of the other callbacks
     *
     * @throws LauncherException when the process can't be started
     */
    public function __construct(
        ?string $php,
        string $startMethod,
        string $temporaryFilePrefix,
        \Closure $onFrame,
        private readonly \Closure $onDeath,
        private readonly ?\Closure $onFork = null,
    ) {
        self::checkFunctions();
        $this->ownerPid = (int) getmypid();
        $this->token = bin2hex(random_bytes(8));
        $command = [
            PhpBinary::find($php), ...PhpBinary::options(),
            // PHP keeps a main script open, and commands would inherit its descriptor. So the file is included.
            '-r', 'require ' . var_export(__DIR__ . '/Process/main.php', true) . ';', '--',
            $this->token, (string) $this->ownerPid, $startMethod, $temporaryFilePrefix,
        ];
        [$this->process, $this->status, $pipes] = Warnings::suppressed(static function () use ($command): array {
            LauncherCode::check();

            return self::open($command);
        });
        [$this->launcherStdin, $this->launcherStdout] = $pipes;
        $this->pid = $this->status['pid'];
        if (!LoopLimit::allows($this->launcherStdin) || !LoopLimit::allows($this->launcherStdout)) {
            fclose($this->launcherStdin);
            fclose($this->launcherStdout);
            proc_close($this->process);

            throw LauncherException::cannotStart(
                'its pipes have descriptors above 1023, which the event loop cannot watch with stream_select().'
                . ' Open fewer files in this process, or install ext-ev or ext-uv',
            );
        }
        stream_set_blocking($this->launcherStdin, false);
        stream_set_blocking($this->launcherStdout, false);
        stream_set_read_buffer($this->launcherStdout, 0);
        stream_set_write_buffer($this->launcherStdin, 0);
        $this->frames = new FrameReader($onFrame, self::MAX_FRAME_BYTES);
        // Loads the classes that a wait for space in the pipe needs.
        EventLoop::cancel(EventLoop::onWritable($this->launcherStdin, static fn() => null));
        // The callback holds only a weak reference, so that a pool without any other reference is destroyed.
        $weak = \WeakReference::create($this);
        $read = static function () use ($weak): void {
            $weak->get()?->read();
        };
        $this->readCallbackId = EventLoop::unreference(EventLoop::onReadable($this->launcherStdout, $read));
        $this->heartbeat = new Heartbeat(static function () use ($weak): void {
            $weak->get()?->check();
        });
    }

    public function __destruct()
    {
        $this->close();
    }

    /** @return array<string, mixed> properties without the environment and unsent commands, which may be secret */
    public function __debugInfo(): array
    {
        return ['pid' => $this->pid, 'unsentBytes' => $this->unsentBytes(), 'closed' => $this->closed];
    }

    /** Returns whether this process started the launcher. A fork has the same pipes, but must not use them. */
    public function isOurs(): bool
    {
        return $this->ownerPid === getmypid();
    }

    /** Keeps the event loop running until {@see releaseLoop()}, for a fiber that waits for a frame. */
    public function keepLoop(): void
    {
        EventLoop::reference($this->readCallbackId);
        $this->heartbeat->setBusy(true);
    }

    /** Lets the event loop end although the launcher is running. */
    public function releaseLoop(): void
    {
        EventLoop::unreference($this->readCallbackId);
        $this->heartbeat->setBusy(false);
    }

    /** @param array<array-key, string> $variables environment of the commands that are queued from now on */
    public function useEnvironment(array $variables): void
    {
        if ($variables !== $this->environment) {
            $this->environment = $variables;
            $this->queue(Environment::frame($variables));
        }
    }

    public function queue(string $frames): void
    {
        $this->queued .= $frames;
    }

    /** Sends the queued frames, then `$frames`. What the pipe has no space for is sent after the launcher has read. */
    public function send(#[\SensitiveParameter] string $frames = ''): void
    {
        if ($this->closed || ($frames === '' && $this->queued === '')) {
            return;
        }
        $this->heartbeat->noteSent();
        $this->unsent .= $this->queued . $frames;
        $this->queued = '';
        if ($this->writeCallbackId === null) {
            $this->write();
        }
    }

    /** Returns the number of bytes that are queued, or that the pipe had no space for. */
    public function unsentBytes(): int
    {
        return \strlen($this->queued) + \strlen($this->unsent) - $this->written;
    }

    /** Reads frames that have arrived. Notices whether the launcher has died. */
    public function read(): void
    {
        if ($this->closed || $this->closeInFork()) {
            return;
        }
        $bytes = Warnings::read($this->launcherStdout, self::READ_BYTES);
        if ($bytes === '' || $bytes === false) {
            if (feof($this->launcherStdout)) {
                $this->handleDeath();
            }

            return;
        }
        $this->heartbeat->noteAnswer();
        try {
            $this->frames->feed($bytes);
        } catch (MalformedFrameException $malformed) {
            Signals::send($this->pid, self::SIGKILL);
            $this->handleDeath($malformed->getMessage());
        }
    }

    /** Asks the launcher to end its processes and to exit, and closes the pipes. Does not wait for the exit. */
    public function requestEnd(): void
    {
        if ($this->closed) {
            return;
        }
        $this->closed = true;
        EventLoop::cancel($this->readCallbackId);
        $this->heartbeat->stop();
        if ($this->writeCallbackId !== null) {
            EventLoop::cancel($this->writeCallbackId);
        }
        if ($this->isOurs()) {
            $this->sendEnd();
        }
        fclose($this->launcherStdin);
        fclose($this->launcherStdout);
    }

    /** Makes the launcher end its processes, and handles its last frames. Blocks until its pipe closes, at most 2 s. */
    public function endAndRead(): void
    {
        if ($this->closed || !$this->isOurs()) {
            return;
        }
        $this->sendEnd();
        [$this->unsent, $this->written] = ['', 0];
        $deadline = hrtime(true) + self::LAST_FRAMES_NANOSECONDS;
        $pause = self::MIN_EXIT_POLL_MICROSECONDS;
        while (!$this->closed && hrtime(true) < $deadline) {
            $bytes = Warnings::read($this->launcherStdout, self::READ_BYTES);
            if ($bytes !== '' && $bytes !== false) {
                try {
                    $this->frames->feed($bytes);
                } catch (MalformedFrameException) {
                    return;
                }
            } elseif (feof($this->launcherStdout)) {
                return;
            } else {
                usleep($pause);
                $pause = min(2 * $pause, self::MAX_EXIT_POLL_MICROSECONDS);
            }
        }
    }

    /** Asks the launcher to exit, and blocks until its exit. In a fork, only closes the fork's ends of the pipes. */
    public function close(): void
    {
        $this->requestEnd();
        if ($this->isOurs() && \is_resource($this->process)) {
            $this->awaitExit();
            proc_close($this->process);
        }
    }

    /** @throws LauncherException */
    private static function checkFunctions(): void
    {
        $missing = array_filter(
            self::REQUIRED_FUNCTIONS,
            static fn(string $function): bool => !\function_exists($function),
        );
        if ($missing !== []) {
            $functions = implode('(), ', $missing);

            throw LauncherException::cannotStart("this PHP has no {$functions}(); see disable_functions in php.ini");
        }
    }

    /**
     * @param list<string> $command
     *
     * @return array{
     *     resource,
     *     array{pid: int, running: bool, signaled: bool, exitcode: int, termsig: int}, array{resource, resource}
     * } the process, its status and the pipes
     *
     * @throws LauncherException
     */
    private static function open(array $command): array
    {
        $null = ['file', '/dev/null', 'r+'];
        $stdout = @fopen('php://stdout', 'w');
        $descriptors = [['pipe', 'r'], ['pipe', 'w'], 3 => $stdout === false ? $null : $stdout];
        $replaced = Descriptors::toReplace();
        foreach ($replaced as $descriptor) {
            $descriptors[$descriptor] = $null;
        }
        // Later, no descriptor may be free to load a class file, or the file may not be accessible any more.
        Preload::classes(
            LauncherCode::class,
            LauncherException::class,
            MalformedFrameException::class,
            LoopLimit::class,
            Files::class,
            ProcessTree::class,
            Signals::class,
        );
        if (!@is_link('/proc/self/fd/2') && @is_dir('/proc/self/fd')) {
            $descriptors[2] = $null;
        }
        $restore = self::stopIgnoringChildSignal();
        try {
            error_clear_last();
            $process = @proc_open(self::closingDescriptors($replaced, $command), $descriptors, $pipes, null, null);
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
        return [$process, $status, $pipes];
    }

    /**
     * Returns a command that closes the replaced descriptors up to 9 in a shell before it starts the given command.
     * Without FFI, the launcher's commands would inherit these descriptors as /dev/null. Returns the command unchanged
     * if there is nothing to close, if there is no shell, or if a shell could reset the effective user.
     *
     * @param list<int>    $descriptors
     * @param list<string> $command
     *
     * @return list<string>
     */
    private static function closingDescriptors(array $descriptors, array $command): array
    {
        $closed = array_filter($descriptors, static fn(int $descriptor): bool => $descriptor <= 9);
        if ($closed === [] || !ProcessCredentials::areReal() || !@is_executable('/bin/sh')) {
            return $command;
        }
        $closings = implode(' ', array_map(static fn(int $descriptor): string => "{$descriptor}<&-", $closed));

        return ['/bin/sh', '-c', "exec \"\$@\" {$closings}", 'sh', ...$command];
    }

    /**
     * Sets the default handler for SIGCHLD if the signal is ignored, because a child would ignore it, too.
     *
     * @return \Closure(): void restores the handler that was set before
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

        return static function () use ($handler): void {
            pcntl_signal(\SIGCHLD, $handler);
        };
    }

    /**
     * Sends the rest of the unsent bytes and END. Closing the pipe would not be enough: the launcher would not notice
     * that while a fork of this process has the pipe open. Gives up after ten attempts of at most 10 ms each.
     */
    private function sendEnd(): void
    {
        $rest = substr($this->unsent, $this->written) . LauncherProtocol::frame(LauncherProtocol::END, 0);
        for ($attempt = 0; $attempt < 10; ++$attempt) {
            $rest = substr($rest, (int) Warnings::write($this->launcherStdin, $rest));
            if ($rest === '') {
                return;
            }
            Warnings::suppressed(function (): void {
                [$none, $writes] = [null, [$this->launcherStdin]];
                @stream_select($none, $writes, $none, 0, 10_000); // until the launcher has read
            });
        }
    }

    /** Closes the pipes if this process is a fork, which must not read or send frames. Returns whether it is a fork. */
    private function closeInFork(): bool
    {
        if ($this->isOurs()) {
            return false;
        }
        if (!$this->closed) {
            $this->requestEnd();
            if ($this->onFork !== null) {
                ($this->onFork)();
            }
        }

        return true;
    }

    /** Writes at most one pipe's capacity of the unsent bytes. Waits in the event loop for space for the rest. */
    private function write(): void
    {
        if ($this->closeInFork()) {
            return;
        }
        $isShort = $this->written === 0 && \strlen($this->unsent) <= self::MAX_WRITE_BYTES;
        $written = $this->unsent === ''
            ? 0
            : Warnings::write(
                $this->launcherStdin,
                $isShort ? $this->unsent : substr($this->unsent, $this->written, self::MAX_WRITE_BYTES),
            );
        // After a failed write, all bytes are dropped. read() handles the last frames, then the launcher's death.
        $this->written = $written === false ? \strlen($this->unsent) : $this->written + $written;
        if ($this->written * 2 >= \strlen($this->unsent)) {
            $this->unsent = substr($this->unsent, $this->written);
            $this->written = 0;
        }
        if ($this->unsent === '') {
            if ($this->writeCallbackId !== null) {
                EventLoop::cancel($this->writeCallbackId);
                $this->writeCallbackId = null;
            }
        } elseif ($this->writeCallbackId === null) {
            $weak = \WeakReference::create($this);
            $this->writeCallbackId = EventLoop::onWritable($this->launcherStdin, static function () use ($weak): void {
                $weak->get()?->write();
            });
        }
    }

    /** Sends a ping if one is due. Kills a launcher that has not answered for too long. */
    private function check(): void
    {
        $this->read(); // the answer may have arrived while this process was blocked or stopped
        if ($this->closed) {
            return;
        }
        $death = $this->heartbeat->check(fn(): string => ProcessTree::state($this->pid));
        if ($death !== null) {
            Signals::send($this->pid, self::SIGKILL);
            $this->handleDeath($death);
        } elseif ($this->heartbeat->startPingIfDue()) {
            $this->unsent .= LauncherProtocol::frame(LauncherProtocol::PING, 0);
            if ($this->writeCallbackId === null) {
                $this->write();
            }
        }
    }

    /** Blocks until the launcher has exited. Continues a stopped launcher. After the limit, kills all its processes. */
    private function awaitExit(): void
    {
        $deadline = hrtime(true) + self::CLOSE_TIMEOUT_NANOSECONDS;
        $pause = self::MIN_EXIT_POLL_MICROSECONDS;
        while (proc_get_status($this->process)['running']) {
            if (hrtime(true) > $deadline) {
                Signals::send($this->pid, self::SIGKILL);
                $this->killTree();

                return;
            }
            if ($pause === self::MAX_EXIT_POLL_MICROSECONDS && ProcessTree::state($this->pid) === 'T') {
                Signals::send($this->pid, self::SIGCONT);
            }
            usleep($pause);
            $pause = min(2 * $pause, self::MAX_EXIT_POLL_MICROSECONDS);
        }
    }

    /** @param string|null $how cause of the death; null for the exit status of the process */
    private function handleDeath(?string $how = null): void
    {
        // PHP before 8.3 reports an exit only once. So an exit that the first status has reported is not queried again.
        $status = $this->status['running'] ? proc_get_status($this->process) : $this->status;
        for ($attempt = 0; $status['running'] && $attempt < 100; ++$attempt) {
            usleep(1000); // a process closes its descriptors a moment before it exits
            $status = proc_get_status($this->process);
        }
        $how ??= match (true) {
            $status['signaled'] => "signal {$status['termsig']}",
            $status['exitcode'] === self::NOT_EXECUTED => 'the system could not execute PHP; the'
                . ' environment may be too large (putenv())',
            default => "exit code {$status['exitcode']}",
        };
        $this->killTree();
        $this->close();
        ($this->onDeath)($how);
    }

    /** Kills all processes that the launcher has started, and waits until they have ended, about a second at most. */
    private function killTree(): void
    {
        $findRemaining = fn(): array => array_keys(ProcessTree::find($this->token, [], $this->pid));
        $unkillable = []; // processes of another user, if this process has dropped its privileges
        ProcessTree::kill($findRemaining, static function (int $pid, int $signal) use (&$unkillable): void {
            if (!Signals::send($pid, $signal)) {
                $unkillable[] = $pid;
            }
        });
        for ($attempt = 0; array_diff($findRemaining(), $unkillable) !== [] && $attempt < 1000; ++$attempt) {
            usleep(1000); // the kernel needs a moment to end a killed process
        }
    }
}
