<?php

declare(strict_types=1);

namespace Spindle\Internal\Launcher;

use Revolt\EventLoop;
use Spindle\Internal\FrameReader;
use Spindle\Internal\LoopCallback;
use Spindle\Internal\MalformedFrameException;
use Spindle\Internal\OwnLoop;
use Spindle\Internal\Warnings;
use Spindle\LauncherException;

/** Exchanges frames with a launcher, and notices the launcher's death. */
final class LauncherProcess
{
    /** Maximum bytes of a frame from a launcher. A longer frame means that another program has written to the pipe. */
    private const MAX_FRAME_BYTES = 64 << 20;

    private const READ_BYTES = 1 << 16;

    /** Maximum bytes per write: the capacity of a pipe. */
    private const MAX_WRITE_BYTES = 1 << 16;

    /** Nanoseconds for which {@see endAndRead()} reads frames of a launcher that was asked to exit. */
    private const LAST_FRAMES_NANOSECONDS = 2_000_000_000;

    private readonly int $ownerPid;

    private readonly LauncherChild $child;

    /** @var \WeakReference<LauncherEvents> weak reference, so that PHP destroys a pool to which nothing else refers */
    private readonly \WeakReference $events;

    private readonly FrameReader $frames;
    private readonly string $readCallbackId;

    private ?string $writeCallbackId = null;

    private readonly Heartbeat $heartbeat;

    private readonly OwnLoop $loop;

    /** @var array<array-key, string>|null environment in the last queued ENVIRONMENT frame; null before that */
    private ?array $environment = null;

    /** Frames for the next {@see send()}. */
    private string $queued = '';

    /** Bytes to write; the first $written of them have been written. */
    private string $unsent = '';

    /** Number of written bytes. write() removes them when they are half of $unsent, because each removal copies. */
    private int $written = 0;

    /** Set when the pipes are closed. At the end of a script, PHP may destroy this object while the pool exists. */
    public bool $isClosed = false;

    /**
     * @param string|null $php PHP command-line binary that runs the launcher; null to search for one
     * @param string $startMethod auto, posix_spawn or proc_open
     * @param string $temporaryFilePrefix path prefix of files that the launcher removes after this process was killed
     *
     * @throws LauncherException when the process can't be started
     */
    public function __construct(
        ?string $php,
        string $startMethod,
        string $temporaryFilePrefix,
        LauncherEvents $events,
    ) {
        $this->events = \WeakReference::create($events);
        $this->child = LauncherChild::start($php, $startMethod, $temporaryFilePrefix);
        $this->loop = new OwnLoop();
        $this->ownerPid = (int) getmypid();
        $this->frames = new FrameReader(self::MAX_FRAME_BYTES);
        // Loads classes that onWritable() needs. Later, PHP may have no free descriptor for the files of these classes.
        EventLoop::cancel(EventLoop::onWritable($this->child->stdin, static fn() => null));
        $weak = \WeakReference::create($this);
        $read = static fn() => $weak->get()?->read();
        $this->readCallbackId = EventLoop::unreference(EventLoop::onReadable($this->child->stdout, $read));
        $this->heartbeat = new Heartbeat($this);
    }

    public function __destruct()
    {
        if (!$this->isClosed && !$this->closeInFork()) {
            $this->events->get()?->onDestroyed();
        }
        $this->close();
    }

    /** @return array<string, mixed> properties without the environment and unsent commands, which may be secret */
    public function __debugInfo(): array
    {
        return ['pid' => $this->child->pid, 'unsentBytes' => $this->unsentBytes(), 'closed' => $this->isClosed];
    }

    /** Returns whether this process started the launcher. A fork has the same pipes, but must not use them. */
    public function belongsToThisProcess(): bool
    {
        return $this->ownerPid === getmypid();
    }

    /**
     * Keeps the event loop running until {@see releaseLoop()}, for a fiber that waits for a frame.
     *
     * @throws LauncherException when the pipes are closed
     */
    public function keepLoop(): void
    {
        if ($this->isClosed) {
            throw LauncherException::closed();
        }
        EventLoop::reference($this->readCallbackId);
        $this->heartbeat->setBusy(true);
    }

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

    /** Sends the queued frames, then `$frames`. If the pipe is full, the event loop sends the rest later. */
    public function send(#[\SensitiveParameter] string $frames = ''): void
    {
        if ($this->isClosed || ($frames === '' && $this->queued === '')) {
            return;
        }
        $this->heartbeat->noteSent();
        $this->unsent .= $this->queued . $frames;
        $this->queued = '';
        if ($this->writeCallbackId === null) {
            $this->write();
        }
    }

    public function unsentBytes(): int
    {
        return \strlen($this->queued) + \strlen($this->unsent) - $this->written;
    }

    /** Reads frames that have arrived, and passes them to {@see LauncherEvents}. Notices the death of the launcher. */
    public function read(): void
    {
        if ($this->isClosed || $this->closeInFork()) {
            return;
        }
        $bytes = Warnings::read($this->child->stdout, self::READ_BYTES);
        if ($bytes === '' || $bytes === false) {
            if (feof($this->child->stdout)) {
                $this->handleDeath();
            }

            return;
        }
        $this->heartbeat->noteAnswer();
        try {
            $this->passOn($bytes);
        } catch (MalformedFrameException $malformed) {
            $this->child->kill();
            $this->handleDeath($malformed->getMessage());
        }
    }

    /** Asks the launcher to end its processes and to exit, and closes the pipes. Does not wait for the exit. */
    public function requestEnd(): void
    {
        if ($this->isClosed) {
            return;
        }
        $this->isClosed = true;
        $this->loop->cancel($this->readCallbackId);
        $this->heartbeat->stop();
        $this->loop->cancel($this->writeCallbackId);
        if ($this->belongsToThisProcess()) {
            $this->sendEnd();
        }
        fclose($this->child->stdin);
        fclose($this->child->stdout);
    }

    /** Makes the launcher end its processes. Handles frames until the launcher closes its pipe, for 2 s at most. */
    public function endAndRead(): void
    {
        if ($this->isClosed || !$this->belongsToThisProcess()) {
            return;
        }
        $this->sendEnd();
        [$this->unsent, $this->written] = ['', 0];
        $deadline = hrtime(true) + self::LAST_FRAMES_NANOSECONDS;
        $pause = LauncherChild::MIN_POLL_MICROSECONDS;
        while (!$this->isClosed && hrtime(true) < $deadline) {
            $bytes = Warnings::read($this->child->stdout, self::READ_BYTES);
            if ($bytes !== '' && $bytes !== false) {
                try {
                    $this->passOn($bytes);
                } catch (MalformedFrameException) {
                    return;
                }
            } elseif (feof($this->child->stdout)) {
                return;
            } else {
                usleep($pause);
                $pause = min(2 * $pause, LauncherChild::MAX_POLL_MICROSECONDS);
            }
        }
    }

    /** Asks the launcher to exit, and blocks until its exit. In a fork, only closes the fork's ends of the pipes. */
    public function close(): void
    {
        $this->requestEnd();
        if ($this->belongsToThisProcess()) {
            $this->child->close();
        }
    }

    /** Sends a ping if one is due. Kills a launcher that did not answer in time. Called by a timer every second. */
    public function check(): void
    {
        $this->read(); // the answer may have arrived while this process was blocked or stopped
        if ($this->isClosed) {
            return;
        }
        $death = $this->heartbeat->check($this->child);
        if ($death !== null) {
            $this->child->kill();
            $this->handleDeath($death);
        } elseif ($this->heartbeat->recordPingIfDue()) {
            $this->unsent .= LauncherProtocol::frame(LauncherProtocol::PING, 0);
            if ($this->writeCallbackId === null) {
                $this->write();
            }
        }
    }

    /**
     * Sends the rest of the unsent bytes, and END. To close the pipe would not be enough: if a fork of this process has
     * the pipe open, the launcher does not notice the close. Gives up after ten attempts of at most 10 ms each.
     */
    private function sendEnd(): void
    {
        $rest = substr($this->unsent, $this->written) . LauncherProtocol::frame(LauncherProtocol::END, 0);
        for ($attempt = 0; $attempt < 10; ++$attempt) {
            $rest = substr($rest, (int) Warnings::write($this->child->stdin, $rest));
            if ($rest === '') {
                return;
            }
            Warnings::suppressed(function (): void {
                [$none, $writes] = [null, [$this->child->stdin]];
                stream_select($none, $writes, $none, 0, 10_000); // until the pipe has space
            });
        }
    }

    /** Closes the pipes if this process is a fork, which must not read or send frames. Returns whether it is a fork. */
    private function closeInFork(): bool
    {
        if ($this->belongsToThisProcess()) {
            return false;
        }
        if (!$this->isClosed) {
            $this->requestEnd();
            $this->events->get()?->onFork();
        }

        return true;
    }

    /** Writes unsent bytes, at most the capacity of a pipe. The event loop calls this method again for the rest. */
    private function write(): void
    {
        if ($this->closeInFork()) {
            return;
        }
        $isShort = $this->written === 0 && \strlen($this->unsent) <= self::MAX_WRITE_BYTES;
        $written = $this->unsent === ''
            ? 0
            : Warnings::write(
                $this->child->stdin,
                $isShort ? $this->unsent : substr($this->unsent, $this->written, self::MAX_WRITE_BYTES),
            );
        // After a failed write, all bytes are dropped. read() handles the last frames, then the launcher's death.
        $this->written = $written === false ? \strlen($this->unsent) : $this->written + $written;
        if ($this->written * 2 >= \strlen($this->unsent)) {
            $this->unsent = substr($this->unsent, $this->written);
            $this->written = 0;
        }
        if ($this->unsent === '') {
            LoopCallback::cancel($this->writeCallbackId);
        } elseif ($this->writeCallbackId === null) {
            $weak = \WeakReference::create($this);
            $write = static fn() => $weak->get()?->write();
            $this->writeCallbackId = EventLoop::onWritable($this->child->stdin, $write);
        }
    }

    /** @throws MalformedFrameException */
    private function passOn(string $bytes): void
    {
        $events = $this->events->get();
        if ($events !== null) {
            $this->frames->feed($bytes, $events);
        }
    }

    /** @param string|null $how cause of the death; null to report the exit status of the process */
    private function handleDeath(?string $how = null): void
    {
        $exit = $this->child->describeExit();
        $this->child->killTree();
        $this->close();
        $this->events->get()?->onDeath($how ?? $exit);
    }
}
