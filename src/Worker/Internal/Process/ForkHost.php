<?php

declare(strict_types=1);

namespace Spindle\Worker\Internal\Process;

use Spindle\Internal\Launcher\Process\Libc;
use Spindle\Internal\Launcher\Process\ProcessTree;
use Spindle\Internal\RandomNumbers;
use Spindle\Worker\Internal\ValueSerializer;
use Spindle\Worker\Internal\WorkerProtocol;

/**
 * Runs in the host, the process whose forks are workers. The host has loaded the autoloaders and the bootstrap file.
 * Before each fork, the host applies the {@see InheritedChanges} of the pool's process. Besides, the host only forks,
 * sends signals, passes on output and waits.
 */
final class ForkHost
{
    private const SIGKILL = 9;
    private const SIGCONT = 18;
    private const READ_BYTES = 1 << 16;

    /**
     * Longest wait for the exit of a worker whose socket or standard error was closed. The wait has a limit, because a
     * task may have closed the socket or the standard error although the worker continues.
     */
    private const EXIT_TIMEOUT_MILLISECONDS = 50;

    private const CHECK_INTERVAL = 1;

    /** @var array<int, int> process ids by worker */
    private array $pids = [];

    /** @var array<int, true> workers that are being ended */
    private array $ending = [];

    /** @var array<int, resource> by worker: pipe with the worker's standard error */
    private array $stderrs = [];

    /** Gives each fork a separate standard error. Without ext-ffi, this is null, and forks share the host's stderr. */
    private readonly ?Libc $libc;

    private readonly InheritedChanges $changes;

    /** Beginning of SPINDLE_COMMAND in the environment of all processes of this host. The worker's number follows. */
    private readonly string $token;

    public function __construct(private readonly PoolLink $link)
    {
        $this->changes = new InheritedChanges();
        $this->libc = Libc::available();
        $this->token = (string) preg_replace('/\.\d+$/D', '', (string) getenv('SPINDLE_COMMAND'));
    }

    /** @return array<string, mixed>|null in a fork: its worker's settings; in the host: null when the pool has ended */
    public function run(): ?array
    {
        set_error_handler(null); // otherwise, a handler of the bootstrap file could throw, in spite of `@`
        // A SIGCHLD just before stream_select() does not interrupt stream_select(). In this case, stream_select()
        // returns when the worker's standard error is closed, or when the pool sends REAP because the worker's socket
        // is closed. If another process keeps both open, stream_select() returns after CHECK_INTERVAL seconds.
        pcntl_async_signals(true);
        pcntl_signal(\SIGCHLD, static fn() => null, false);
        $this->link->send(WorkerProtocol::READY, 0, '');
        while (true) {
            $this->reap();
            $reads = [-1 => $this->link->socket] + $this->stderrs;
            $none = null;
            $seconds = $this->pids === [] ? null : self::CHECK_INTERVAL;
            if ((int) @stream_select($reads, $none, $none, $seconds) === 0) {
                continue;
            }
            foreach ($reads as $id => $_) {
                if ($id >= 0) {
                    if (isset($this->stderrs[$id])) { // an earlier relay() may have reaped the worker
                        $this->relay($id);
                    }
                    continue;
                }
                do {
                    $frame = $this->link->receive();
                    if ($frame === null) {
                        return null;
                    }
                    $settings = $this->handle(...$frame);
                    if ($settings !== null) {
                        return $settings;
                    }
                } while ($this->link->isBuffered());
            }
        }
    }

    /** @return array<string, mixed>|null */
    private function handle(int $type, int $id, #[\SensitiveParameter] string $payload): ?array
    {
        if ($type === WorkerProtocol::START) {
            return $this->fork($id, $payload);
        }
        if ($type === WorkerProtocol::KILL) {
            /** @var array{1: int} $signal */
            $signal = unpack('V', $payload);
            $this->kill($id, $signal[1]);
        } elseif ($type === WorkerProtocol::REAP) {
            $this->awaitEnd($id);
        }

        return null;
    }

    /** @return array<string, mixed>|null */
    private function fork(int $id, #[\SensitiveParameter] string $bytes): ?array
    {
        /**
         * @var array{inherited: array{
         *     directory: string, moved: bool, umask: int|null, set: array<array-key, string>, unset: list<int|string>,
         * }} $settings
         */
        $settings = ValueSerializer::unserializeData($bytes);
        $refused = $this->changes->apply($settings['inherited']);
        if ($refused !== null) {
            $this->link->send(WorkerProtocol::NOT_STARTED, $id, $refused);

            return null;
        }
        unset($settings['inherited']);
        $pipe = $this->createPipe();
        $pid = @pcntl_fork();
        if ($pid === 0) {
            $this->becomeWorker($id, $pipe);

            return $settings;
        }
        if ($pipe !== null) {
            $reading = $pid > 0 ? fopen("php://fd/{$pipe[0]}", 'r') : false;
            $this->closePipe($pipe);
            if ($reading !== false) {
                stream_set_blocking($reading, false);
                stream_set_read_buffer($reading, 0);
                $this->stderrs[$id] = $reading;
            }
        }
        if ($pid > 0) {
            $this->pids[$id] = $pid;
        } else {
            $this->link->send(
                WorkerProtocol::PRINTED,
                $id,
                'The worker could not be forked: ' . pcntl_strerror(pcntl_get_last_error()) . "\n",
            );
            $this->link->send(WorkerProtocol::ENDED, $id, pack('llP', 255, 0, 0));
        }

        return null;
    }

    /** @param array{int, int}|null $pipe pipe for the worker's standard error; null to use the host's standard error */
    private function becomeWorker(int $id, ?array $pipe): void
    {
        restore_error_handler();
        $this->link->close();
        posix_setpgid(0, 0);
        putenv("SPINDLE_COMMAND={$this->token}.{$id}"); // identifies the processes that the tasks start
        foreach ($this->stderrs as $stream) {
            fclose($stream);
        }
        if ($pipe !== null) {
            $this->libc?->functions->dup2($pipe[1], 2);
            $this->closePipe($pipe);
        }
        pcntl_signal(\SIGCHLD, \SIG_DFL);
        pcntl_async_signals(false);
        RandomNumbers::diverge();
    }

    private function kill(int $id, int $signal): void
    {
        if (!isset($this->pids[$id])) {
            return;
        }
        $this->ending[$id] = true;
        if ($signal === self::SIGKILL) {
            $this->killTree($id, $this->pids[$id]);

            return;
        }
        $pids = $this->processTree($id, $this->pids[$id]);
        foreach ([$signal, self::SIGCONT] as $each) { // a suspended process handles other signals only after SIGCONT
            foreach ($pids as $pid) {
                posix_kill($pid, $each);
            }
        }
    }

    /** @return list<int> process ids of a worker, unless it has exited, and of all processes that its tasks started */
    private function processTree(int $id, int $pid): array
    {
        $jobs = ProcessTree::find($this->token, [$pid => $id], (int) getmypid());
        $pids = array_keys($jobs, $id, true);

        return isset($this->pids[$id]) ? $pids : array_values(array_diff($pids, [$pid]));
    }

    private function killTree(int $id, int $pid): void
    {
        ProcessTree::kill(fn(): array => $this->processTree($id, $pid), posix_kill(...));
    }

    /** Passes on bytes of a worker's standard error. After the last byte, waits for the exit of the worker. */
    private function relay(int $id): void
    {
        $bytes = @fread($this->stderrs[$id], self::READ_BYTES);
        if ($bytes !== '' && $bytes !== false) {
            $this->link->send(WorkerProtocol::PRINTED, $id, '', $bytes);
        } elseif (feof($this->stderrs[$id])) {
            fclose($this->stderrs[$id]);
            unset($this->stderrs[$id]);
            $this->awaitEnd($id);
        }
    }

    /** Waits at most EXIT_TIMEOUT_MILLISECONDS for the exit of a worker, and reports the exit. */
    private function awaitEnd(int $id): void
    {
        for ($i = 0; isset($this->pids[$id]) && $i < self::EXIT_TIMEOUT_MILLISECONDS; ++$i) {
            $this->reap();
            if (isset($this->pids[$id])) {
                usleep(1000);
            }
        }
    }

    private function reap(): void
    {
        while (($pid = pcntl_waitpid(-1, $status, \WNOHANG, $usage)) > 0) {
            $id = array_search($pid, $this->pids, true);
            if ($id === false) {
                continue;
            }
            /** @var int $status */
            $code = pcntl_wifexited($status) ? (int) pcntl_wexitstatus($status) : -1;
            $signal = pcntl_wifsignaled($status) ? (int) pcntl_wtermsig($status) : 0;
            if (isset($this->stderrs[$id])) {
                $bytes = (string) stream_get_contents($this->stderrs[$id]);
                $bytes === '' || $this->link->send(WorkerProtocol::PRINTED, $id, '', $bytes);
                fclose($this->stderrs[$id]);
            }
            unset($this->pids[$id]);
            if (isset($this->ending[$id])) {
                $this->killTree($id, $pid); // a worker that was ended must not leave processes behind
            }
            unset($this->stderrs[$id], $this->ending[$id]);
            /** @var array<string, int> $usage */
            $this->link->send(
                WorkerProtocol::ENDED,
                $id,
                pack('llP', $code, $signal, ($usage['ru_maxrss'] ?? 0) * 1024),
            );
        }
    }

    /** @return array{int, int}|null descriptors to read from and to write to */
    private function createPipe(): ?array
    {
        if ($this->libc === null) {
            return null;
        }
        $pipe = $this->libc->integers('int[2]');

        return $this->libc->functions->pipe2($pipe, 0) === 0 ? [$pipe[0], $pipe[1]] : null;
    }

    /** @param array{int, int} $pipe */
    private function closePipe(array $pipe): void
    {
        $this->libc?->functions->close($pipe[0]);
        $this->libc?->functions->close($pipe[1]);
    }
}
