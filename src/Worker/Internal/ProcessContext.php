<?php

declare(strict_types=1);

namespace Spindle\Worker\Internal;

use Spindle\Internal\Launcher\HelperCode;
use Spindle\Internal\Launcher\LauncherEvents;
use Spindle\Internal\Launcher\LauncherProcess;
use Spindle\Internal\Launcher\LauncherProtocol;
use Spindle\Internal\Launcher\PhpBinary;
use Spindle\Internal\UnlinkedFile;
use Spindle\LauncherException;
use Spindle\Worker\WorkerStartException;

/** Runs each worker in a separate PHP process. A launcher process starts and ends these processes. */
final class ProcessContext implements Context, LauncherEvents
{
    /** Process limit of the launcher: the largest number, because the pool already limits its workers. */
    private const MAX_PROCESSES = 0x7FFF_FFFF;

    /** Bytes before the output in the payload of an EXITED frame, see {@see LauncherProtocol}. */
    private const EXITED_HEAD_BYTES = 37;

    private ?LauncherProcess $launcher = null;

    /** Whether {@see drain()} was called. After that, the pool still gets output, but no reports of ended workers. */
    private bool $isDraining = false;

    /** @var list<string> command line of a worker */
    private readonly array $command;

    /**
     * @param list<string> $options     options for PHP
     * @param float        $gracePeriod seconds between SIGTERM and SIGKILL
     *
     * @throws \ValueError when the path of PHP or an option contains NUL
     */
    public function __construct(
        private readonly ContextEvents $events,
        private readonly ?string $php,
        array $options,
        private readonly float $gracePeriod,
    ) {
        $main = PhpBinary::script(__DIR__ . '/Process/main.php');
        $this->command = [PhpBinary::find($php, 'WorkerPoolOptions'), ...$options, ...$main];
        if (str_contains(implode('', $this->command), "\0")) { // in a RUN frame, NUL separates the arguments
            throw new \ValueError(
                'The command line of a worker contains a NUL byte. Check the ini setting memory_limit',
            );
        }
    }

    /** Ends the workers and passes on the last output of their tasks, if the script ends without closing the pool. */
    public function __destruct()
    {
        $this->onDestroyed();
        $this->drain();
    }

    public function start(int $id, #[\SensitiveParameter] array $settings): void
    {
        $inherited = InheritedState::current();
        $changed = HelperCode::failure(HelperCode::WORKER);
        if ($changed !== null) {
            throw WorkerStartException::impossible($changed);
        }
        $this->launcher ??= $this->launch();
        $this->launcher->useEnvironment($inherited->environment);
        $strings = implode("\0", [$inherited->directory, '', ...$this->command]);
        $flags = LauncherProtocol::STREAM_STDOUT | LauncherProtocol::STREAM_STDERR | LauncherProtocol::INPUT_INLINE;
        $this->launcher->send(LauncherProtocol::frame(
            LauncherProtocol::RUN,
            $id,
            pack('VveeVVv', 0, $flags, 0.0, 0.0, 0, \strlen($strings), $inherited->umask)
                . $strings
                . serialize($settings),
        ));
    }

    public function end(int $id): void
    {
        // A fork of this process shares the pipes, and must not use them.
        if ($this->launcher?->belongsToThisProcess() === true) {
            $this->launcher->send(LauncherProtocol::frame(LauncherProtocol::CANCEL, $id));
        }
    }

    public function onDisconnected(int $id): void {}

    public function onConnected(WorkerLink $link, int $type, string $data): bool
    {
        return false;
    }

    public function drain(): void
    {
        $this->isDraining = true;
        $this->launcher?->endAndRead();
    }

    public function close(): void
    {
        $this->launcher?->close();
        $this->launcher = null;
        $this->isDraining = false;
    }

    public function onFrame(int $type, int $id, string $bytes, int $at, int $length): void
    {
        $payload = substr($bytes, $at, $length);
        match ($type) {
            LauncherProtocol::STDOUT => $this->printed($id, $payload, false),
            LauncherProtocol::STDERR => $this->printed($id, $payload, true),
            LauncherProtocol::EXITED => $this->exited($id, $payload),
            LauncherProtocol::NOT_STARTED
                => $this->events->onNotStarted($id, WorkerStartException::impossible(substr($payload, 2))),
            LauncherProtocol::REFUSED
                => $this->onDeath('it has too few descriptors to start a process, see ulimit -n'),
            LauncherProtocol::FAILED => $this->onDeath($payload),
            default => null,
        };
    }

    private function printed(int $id, string $bytes, bool $isError): void
    {
        $taken = pack('V', \strlen($bytes));
        $this->launcher?->send(LauncherProtocol::frame(LauncherProtocol::OUTPUT_TAKEN, $id, $taken));
        $this->events->onPrinted($id, $bytes, $isError);
    }

    public function onDeath(string $how): void
    {
        if ($this->isDraining) {
            return;
        }
        $this->close();
        $this->events->onLost($how);
    }

    public function onDestroyed(): void
    {
        if ($this->launcher?->isClosed === false) {
            $this->events->onDestroyed();
        }
    }

    /** Does nothing, because {@see end()} and {@see drain()} have no effect in a fork. */
    public function onFork(): void {}

    /** @throws WorkerStartException */
    private function launch(): LauncherProcess
    {
        try {
            $launcher = new LauncherProcess($this->php, 'auto', UnlinkedFile::prefix(sys_get_temp_dir()), $this);
        } catch (LauncherException $failure) {
            throw WorkerStartException::impossible($failure->getMessage(), $failure);
        }
        $launcher->queue(LauncherProtocol::frame(
            LauncherProtocol::CONFIGURE,
            0,
            pack('VVeCV', self::MAX_PROCESSES, 1, $this->gracePeriod, 0, LauncherProtocol::OUTPUT_WINDOW),
        ));

        return $launcher;
    }

    private function exited(int $id, string $payload): void
    {
        /** @var array{reason: int, code: int, signal: int, peak: int, size: int} $exit */
        $exit = unpack('Creason/lcode/lsignal/estart/eduration/Ppeak/Vsize', $payload);
        $output = substr($payload, self::EXITED_HEAD_BYTES);
        foreach ([substr($output, 0, $exit['size']), substr($output, $exit['size'])] as $isError => $bytes) {
            if ($bytes !== '') {
                $this->events->onPrinted($id, $bytes, $isError === 1);
            }
        }
        if ($this->isDraining) {
            return;
        }
        $this->events->onEnded(
            $id,
            $exit['code'] < 0 ? null : $exit['code'],
            $exit['signal'] === 0 ? null : $exit['signal'],
            $exit['peak'],
        );
    }
}
