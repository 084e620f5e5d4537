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

/** A pool's end of a launcher: starts the process, sends and receives frames, notices its death. */
final class LauncherProcess
{
    /** Maximum bytes of a frame of a launcher. Another program must have written a longer one. */
    private const MAX_FRAME_BYTES = 64 << 20;

    private const READ_BYTES = 1 << 16;

    /** Bytes per write: the capacity of a pipe. */
    private const MAX_WRITE_BYTES = 1 << 16;

    /** Functions that a launcher needs and that disable_functions in php.ini may have removed. */
    private const REQUIRED_FUNCTIONS = [
        'getenv', 'getmypid', 'proc_close', 'proc_get_status', 'proc_open', 'readlink', 'scandir', 'stream_select',
        'stream_set_blocking', 'umask', 'usleep',
    ];

    /** How long to wait for the launcher to exit after hanging up, before it is killed, in nanoseconds. */
    private const CLOSE_TIMEOUT_NANOSECONDS = 5_000_000_000;

    /** How long to read the last frames of a launcher that was asked to end, in nanoseconds. */
    private const LAST_FRAMES_NANOSECONDS = 2_000_000_000;

    /** First and longest interval between two checks of a launcher that is about to exit, in microseconds. */
    private const MIN_EXIT_POLL_MICROSECONDS = 100;
    private const MAX_EXIT_POLL_MICROSECONDS = 5_000;

    /** Exit code of a process that could not become PHP. */
    private const NOT_EXECUTED = 127;

    private const SIGKILL = 9;
    private const SIGCONT = 18;

    private readonly string $token;
    private readonly int $pid;
    private readonly int $owner;

    /** @var resource */
    private readonly mixed $process;

    /** @var array{pid: int, running: bool, signaled: bool, exitcode: int, termsig: int} status just after the start */
    private readonly array $status;

    /** @var resource */
    private readonly mixed $in;

    /** @var resource */
    private readonly mixed $out;

    private readonly FrameReader $frames;
    private readonly string $reading;
    private ?string $writing = null;
    private readonly Heartbeat $heartbeat;

    /** @var array<array-key, string>|null environment of processes, as sent last */
    private ?array $environment = null;
    private string $queued = '';
    private string $unsent = '';

    /** Number of bytes of $unsent that are written. They are cut off rarely, because each cut copies the rest. */
    private int $written = 0;

    private bool $closed = false;

    /**
     * @param string|null                                $php   command-line PHP that runs it; null finds one
     * @param string                                     $startMethod start method: auto, posix_spawn or proc_open
     * @param string                                     $files prefix of the paths of the pool's temporary files
     * @param \Closure(int, int, string, int, int): void $frame type, job, and payload: bytes, offset, length
     * @param \Closure(string): void                     $died  called with the reason of its death
     * @param (\Closure(): void)|null                     $onFork  called in a fork of this process
     *
     * @throws LauncherException when the process can't be started
     */
    public function __construct(
        ?string $php,
        string $startMethod,
        string $files,
        \Closure $frame,
        private readonly \Closure $died,
        private readonly ?\Closure $onFork = null,
    ) {
        self::checkFunctions();
        $this->owner = (int) getmypid();
        $this->token = bin2hex(random_bytes(8));
        $command = [
            PhpBinary::find($php), ...PhpBinary::options(),
            // If the file were the main script, PHP would keep it open, also in the commands.
            '-r', 'require ' . var_export(__DIR__ . '/Process/main.php', true) . ';', '--',
            $this->token, (string) $this->owner, $startMethod, $files,
        ];
        [$this->process, $this->status, $pipes] = Warnings::suppressed(static function () use ($command): array {
            LauncherCode::check();

            return self::open($command);
        });
        [$this->in, $this->out] = $pipes;
        $this->pid = $this->status['pid'];
        if (!LoopLimit::allows($this->in) || !LoopLimit::allows($this->out)) {
            fclose($this->in);
            fclose($this->out);
            proc_close($this->process);

            throw LauncherException::cannotStart(
                'its pipes have descriptors above 1023, which the event loop cannot watch with stream_select().'
                . ' Open fewer files in this process, or install ext-ev or ext-uv',
            );
        }
        stream_set_blocking($this->in, false);
        stream_set_blocking($this->out, false);
        stream_set_read_buffer($this->out, 0);
        stream_set_write_buffer($this->in, 0);
        $this->frames = new FrameReader($frame, self::MAX_FRAME_BYTES);
        EventLoop::cancel(EventLoop::onWritable($this->in, static fn() => null)); // loads classes for a full pipe
        // The callback holds only a weak reference, so that a pool without any other reference is destroyed.
        $weak = \WeakReference::create($this);
        $this->reading = EventLoop::unreference(EventLoop::onReadable($this->out, static function () use ($weak): void {
            $weak->get()?->read();
        }));
        $this->heartbeat = new Heartbeat(static function () use ($weak): void {
            $weak->get()?->check();
        });
    }

    public function __destruct()
    {
        $this->close();
    }

    /** @return array<string, mixed> without the environment and commands that are not sent, which may be secret */
    public function __debugInfo(): array
    {
        return ['pid' => $this->pid, 'unsent' => $this->unsent(), 'closed' => $this->closed];
    }

    /** Whether this process started the launcher. A fork shares its pipes. */
    public function isOurs(): bool
    {
        return $this->owner === getmypid();
    }

    /** Keeps the event loop running, because a fiber waits for a frame. */
    public function keepLoop(): void
    {
        EventLoop::reference($this->reading);
        $this->heartbeat->setBusy(true);
    }

    public function releaseLoop(): void
    {
        EventLoop::unreference($this->reading);
        $this->heartbeat->setBusy(false);
    }

    /** @param array<array-key, string> $variables for what follows; sent with the next {@see send()} if changed */
    public function useEnvironment(array $variables): void
    {
        if ($variables !== $this->environment) {
            $this->environment = $variables;
            $this->queue(Environment::frame($variables));
        }
    }

    /** Collects frames for the next {@see send()}. */
    public function queue(string $frames): void
    {
        $this->queued .= $frames;
    }

    /** Sends the collected frames, then these. Bytes that the pipe can't hold now follow as soon as it can. */
    public function send(#[\SensitiveParameter] string $frames = ''): void
    {
        if ($this->closed || ($frames === '' && $this->queued === '')) {
            return;
        }
        $this->heartbeat->noteSent();
        $this->unsent .= $this->queued . $frames;
        $this->queued = '';
        if ($this->writing === null) {
            $this->write();
        }
    }

    /** Bytes that were collected but not sent, or that the launcher has not received. */
    public function unsent(): int
    {
        return \strlen($this->queued) + \strlen($this->unsent) - $this->written;
    }

    /** Processes the frames that have arrived, and notices when the launcher has died. */
    public function read(): void
    {
        if ($this->closed || $this->closeInFork()) {
            return;
        }
        $bytes = Warnings::read($this->out, self::READ_BYTES);
        if ($bytes === '' || $bytes === false) {
            if (feof($this->out)) {
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

    /** Asks the launcher to end, which it does when its processes have ended, and closes the pipes. */
    public function requestEnd(): void
    {
        if ($this->closed) {
            return;
        }
        $this->closed = true;
        EventLoop::cancel($this->reading);
        $this->heartbeat->stop();
        if ($this->writing !== null) {
            EventLoop::cancel($this->writing);
        }
        if ($this->isOurs()) {
            $this->sendEnd();
        }
        fclose($this->in);
        fclose($this->out);
    }

    /** Asks the launcher to end, and processes its frames until then: the last output of its processes. */
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
            $bytes = Warnings::read($this->out, self::READ_BYTES);
            if ($bytes !== '' && $bytes !== false) {
                try {
                    $this->frames->feed($bytes);
                } catch (MalformedFrameException) {
                    return;
                }
            } elseif (feof($this->out)) {
                return;
            } else {
                usleep($pause);
                $pause = min(2 * $pause, self::MAX_EXIT_POLL_MICROSECONDS);
            }
        }
    }

    /** Asks the launcher to end and waits for that; returns immediately in a fork of the process that started it. */
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
     *     array{pid: int, running: bool, signaled: bool, exitcode: int, termsig: int},
     *     array{resource, resource},
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
        // Later, no descriptor may be free, or the class files may be out of reach.
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
        $restore = self::withDefaultChildSignal();
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
     * Returns a command line in which the shell closes the replaced descriptors below 10. Without FFI, commands would
     * inherit them as /dev/null. If the shell would change the effective user, the command is returned unchanged.
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
     * Sets the default handler for SIGCHLD, because children would inherit that it is ignored.
     *
     * @return \Closure(): void restores the present handler
     */
    private static function withDefaultChildSignal(): \Closure
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

    /** Sends END, because a fork of this process may have the pipe open, so that closing it has no effect. */
    private function sendEnd(): void
    {
        $rest = substr($this->unsent, $this->written) . LauncherProtocol::frame(LauncherProtocol::END, 0);
        for ($attempt = 0; $attempt < 10; ++$attempt) {
            $rest = substr($rest, (int) Warnings::write($this->in, $rest));
            if ($rest === '') {
                return;
            }
            Warnings::suppressed(function (): void {
                [$none, $writes] = [null, [$this->in]];
                @stream_select($none, $writes, $none, 0, 10_000); // a launcher reads soon
            });
        }
    }

    /**
     * Closes the pipes in a fork, which must not read or send bytes of the original process.
     *
     * @return bool whether this process is a fork
     */
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

    private function write(): void
    {
        if ($this->closeInFork()) {
            return;
        }
        $isShort = $this->written === 0 && \strlen($this->unsent) <= self::MAX_WRITE_BYTES;
        $written = $this->unsent === ''
            ? 0
            : Warnings::write(
                $this->in,
                $isShort ? $this->unsent : substr($this->unsent, $this->written, self::MAX_WRITE_BYTES),
            );
        // On a failure, reading notices the launcher's death, after its last frames.
        $this->written = $written === false ? \strlen($this->unsent) : $this->written + $written;
        if ($this->written * 2 >= \strlen($this->unsent)) {
            $this->unsent = substr($this->unsent, $this->written);
            $this->written = 0;
        }
        if ($this->unsent === '') {
            if ($this->writing !== null) {
                EventLoop::cancel($this->writing);
                $this->writing = null;
            }
        } elseif ($this->writing === null) {
            $weak = \WeakReference::create($this);
            $this->writing = EventLoop::onWritable($this->in, static function () use ($weak): void {
                $weak->get()?->write();
            });
        }
    }

    /** Requests a sign of life, and kills a launcher that has not given one for too long. */
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
        } elseif ($this->heartbeat->mustPing()) {
            $this->unsent .= LauncherProtocol::frame(LauncherProtocol::PING, 0);
            if ($this->writing === null) {
                $this->write();
            }
        }
    }

    /**
     * Waits until the launcher has exited. Continues it if it is stopped. After the time limit, kills it and its
     * commands.
     */
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

    /** Ends the processes that a dead launcher has left running, and reports how it died. */
    private function handleDeath(?string $how = null): void
    {
        // PHP before 8.3 reports an exit only once.
        $status = $this->status['running'] ? proc_get_status($this->process) : $this->status;
        for ($attempt = 0; $status['running'] && $attempt < 100; ++$attempt) {
            usleep(1000); // a process closes its descriptors a moment before it ends
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
        ($this->died)($how);
    }

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
