<?php

declare(strict_types=1);

namespace Spindle\Worker\Internal;

use Revolt\EventLoop;
use Spindle\Internal\FrameHandler;
use Spindle\Internal\FrameReader;
use Spindle\Internal\MalformedFrameException;
use Spindle\Internal\OwnLoop;
use Spindle\Internal\Warnings;
use Spindle\Worker\ResultBudget;

/** The pool's side of a connection to a worker or host. Transfers frames without blocking. Detects a disconnection. */
final class WorkerLink implements FrameHandler
{
    private const MIN_READ_BYTES = 1 << 16;

    /** Maximum bytes of one read, and of one write except the first write of {@see send()}. */
    private const MAX_TRANSFER_BYTES = 1 << 18;

    /** Maximum unread bytes of a frame that the link reads without a reservation in the {@see ResultBudget}. */
    private const MAX_UNRESERVED_BYTES = 1 << 16;

    private readonly FrameReader $frames;
    private readonly string $reading;
    private ?string $writing = null;

    /** @var list<string> frames that were not sent completely */
    private array $unsent = [];

    private int $sent = 0;
    private bool $closed = false;

    private ?ResultBudget $budget = null;

    /** Bytes of the budget that are reserved for the current frame; -1 while the reservation waits. */
    private int $reserved = 0;

    /** @var (\Closure(): bool)|null the reservation, while it waits */
    private ?\Closure $reservation = null;

    private readonly int $ownerPid;

    /** @var (\Closure(int, int, string, int, int): void)|null receives type, id, bytes, offset and length of payload */
    private ?\Closure $onFrame = null;

    /** @var (\Closure(?string): mixed)|null called at the end of the connection; receives a protocol error or null */
    private ?\Closure $onEnd = null;

    private readonly OwnLoop $loop;

    /** @var (\Closure(): void)|null called when PHP destroys the open link, see {@see WorkerEvents::partDestroyed()} */
    public ?\Closure $onDestroyed = null;

    /** @param resource $stream */
    public function __construct(private readonly mixed $stream, int $maxFrameBytes)
    {
        $this->ownerPid = (int) getmypid();
        $this->loop = new OwnLoop();
        stream_set_blocking($stream, false);
        stream_set_read_buffer($stream, 0);
        stream_set_write_buffer($stream, 0);
        $this->frames = new FrameReader($maxFrameBytes);
        // The reference is weak, so that PHP can destroy a pool to which nothing else refers.
        $weak = \WeakReference::create($this);
        $this->reading = EventLoop::unreference(EventLoop::onReadable($stream, static function () use ($weak): void {
            $weak->get()?->read();
        }));
    }

    public function __destruct()
    {
        if (!$this->closed && $this->onDestroyed !== null) {
            ($this->onDestroyed)();
        }
        $this->close();
    }

    /** @return array<string, mixed> without unsent and received data, which may be secret */
    public function __debugInfo(): array
    {
        return ['closed' => $this->closed];
    }

    /**
     * @param \Closure(int, int, string, int, int): void $onFrame
     * @param \Closure(?string): mixed $onEnd
     * @param string $magic prefix that each received frame must have from now on
     */
    public function listen(\Closure $onFrame, \Closure $onEnd, int $maxFrameBytes, string $magic = ''): void
    {
        $this->onFrame = $onFrame;
        $this->onEnd = $onEnd;
        $this->frames->maxFrameBytes = $maxFrameBytes;
        $this->frames->expect($magic);
    }

    /** Sets a budget. The link then reads the rest of a large frame only after the budget has reserved these bytes. */
    public function setBudget(?ResultBudget $budget): void
    {
        $this->budget = $budget;
    }

    /** Sends frames. Bytes that the socket does not accept now are sent when the socket is writable. */
    public function send(string $frames): void
    {
        if ($this->closed || $this->ownerPid !== getmypid()) {
            return;
        }
        $sent = $this->unsent === [] ? (int) Warnings::write($this->stream, $frames) : 0;
        if ($sent === \strlen($frames)) {
            return;
        }
        if ($this->unsent === []) {
            $this->sent = $sent;
            $this->awaitWritable();
        }
        $this->unsent[] = $frames;
    }

    public function onFrame(int $type, int $id, string $bytes, int $at, int $length): void
    {
        if ($this->onFrame !== null && !$this->closed) {
            ($this->onFrame)($type, $id, $bytes, $at, $length);
        }
    }

    /** Reads everything that has arrived, and does not wait for more. Removes the budget, which could delay reads. */
    public function readAll(): void
    {
        $this->release();
        $this->budget = null;
        while (!$this->closed && $this->read());
    }

    public function close(): void
    {
        if ($this->closed) {
            return;
        }
        $this->closed = true;
        $this->unsent = [];
        $this->release();
        $this->loop->cancel($this->reading);
        $this->loop->cancel($this->writing);
        fclose($this->stream);
    }

    /** @return bool whether bytes were read */
    private function read(): bool
    {
        if ($this->ownerPid !== getmypid()) {
            EventLoop::disable($this->reading);

            return false;
        }
        if ($this->budget !== null && !$this->reserveMissing($this->budget)) {
            return false;
        }
        $bytes = Warnings::read(
            $this->stream,
            max(self::MIN_READ_BYTES, min(self::MAX_TRANSFER_BYTES, $this->frames->missing())),
        );
        if ($bytes === '' || $bytes === false) {
            if (feof($this->stream)) {
                $this->end(null);
            }

            return false;
        }
        try {
            $this->frames->feed($bytes, $this);
        } catch (MalformedFrameException $malformed) {
            $this->end($malformed->getMessage());
        }
        if ($this->reserved > 0 && $this->frames->missing() <= self::MAX_UNRESERVED_BYTES) {
            // The receiver may keep the result and count the bytes again with ResultBudget::forceAcquire(). So the link
            // releases its reservation only in the next turn, after that call. Otherwise, another waiting result could
            // reserve these bytes before the receiver calls forceAcquire().
            EventLoop::defer($this->release(...));
        }

        return true;
    }

    /** Reserves the unread bytes of a large frame. Returns whether bytes may be read now. */
    private function reserveMissing(ResultBudget $budget): bool
    {
        $missing = $this->frames->missing();
        if ($this->reserved !== 0 || $missing <= self::MAX_UNRESERVED_BYTES) {
            return $this->reserved >= 0;
        }
        $this->reserved = -1;
        $weak = \WeakReference::create($this);
        $this->reservation = static fn(): bool => $weak->get()?->resume($missing) ?? false;
        if ($budget->reserve($missing, $this->reservation)) {
            $this->reserved = $missing;
            $this->reservation = null;

            return true;
        }
        EventLoop::disable($this->reading);

        return false;
    }

    /** @return bool whether the link uses the reservation; false if the link was closed or the budget was removed */
    private function resume(int $reserved): bool
    {
        if ($this->closed || $this->budget === null) {
            return false;
        }
        $this->reserved = $reserved;
        $this->reservation = null;
        EventLoop::enable($this->reading);

        return true;
    }

    private function release(): void
    {
        [$reserved, $this->reserved] = [$this->reserved, 0];
        [$reservation, $this->reservation] = [$this->reservation, null];
        if ($reserved > 0) {
            $this->budget?->release($reserved);
        } elseif ($reservation !== null) {
            $this->budget?->withdraw($reservation);
        }
    }

    private function end(?string $protocolError): void
    {
        $this->close();
        if ($this->onEnd !== null) {
            ($this->onEnd)($protocolError);
        }
    }

    private function write(): void
    {
        if ($this->ownerPid !== getmypid() && $this->writing !== null) {
            EventLoop::disable($this->writing);

            return;
        }
        while ($this->unsent !== []) {
            $rest = \strlen($this->unsent[0]) - $this->sent;
            $sent = Warnings::write(
                $this->stream,
                $this->sent === 0 && $rest <= self::MAX_TRANSFER_BYTES
                    ? $this->unsent[0]
                    : substr($this->unsent[0], $this->sent, self::MAX_TRANSFER_BYTES),
            );
            if ($sent === false) {
                $this->unsent = []; // the worker has disconnected; read() reads the last bytes, and then calls end()
                break;
            }
            if ($sent === 0) {
                break;
            }
            $this->sent += $sent;
            if ($sent === $rest) {
                array_shift($this->unsent);
                $this->sent = 0;
            }
        }
        if ($this->unsent === [] && $this->writing !== null) {
            EventLoop::disable($this->writing);
        }
    }

    private function awaitWritable(): void
    {
        if ($this->writing !== null) {
            EventLoop::enable($this->writing);

            return;
        }
        $weak = \WeakReference::create($this);
        $write = static fn() => $weak->get()?->write();
        $this->writing = EventLoop::unreference(EventLoop::onWritable($this->stream, $write));
    }
}
