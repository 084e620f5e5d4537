<?php

declare(strict_types=1);

namespace Spindle\Internal\Launcher\Process;

use Spindle\Internal\Launcher\LauncherProtocol;

/** Frames that wait to be sent to the pool. While jobs wait for slots, frames are held back for a moment. */
final class OutgoingFrames
{
    /** {@see $areFull} is true above this number of unsent bytes. */
    private const MAX_BYTES = 4 << 20;

    /** Nanoseconds for which frames are held back while jobs wait for slots, so that the pool wakes up less often. */
    private const MAX_DELAY_NANOSECONDS = 2_000_000;

    /** Frames are not held back if together they have this number of bytes or more. */
    private const BURST_BYTES = 1 << 16;

    /** Whether the launcher must start no job and read no output, because the pool does not read frames. */
    public bool $areFull = false;

    /** Time at which frames that are held back are sent, in nanoseconds of the monotonic clock; 0 if there are none. */
    public int $dueAt = 0;

    /** Time at which {@see sendIfDue()} last sent frames, in nanoseconds of the monotonic clock. */
    private int $sentAt = 0;

    /** Whether the pipe to the pool had no space for all bytes. {@see Backend::wait()} ends when the pipe has space. */
    private bool $isPipeFull = false;

    private string $bytes = '';

    /** @param WaitingJobs<LauncherJob> $waiting */
    public function __construct(private readonly Backend $backend, private readonly WaitingJobs $waiting) {}

    public function add(int $type, int $job, string $payload): void
    {
        $this->bytes .= LauncherProtocol::frame($type, $job, $payload);
        $this->areFull = \strlen($this->bytes) > self::MAX_BYTES;
    }

    public function isEmpty(): bool
    {
        return $this->bytes === '';
    }

    public function send(): void
    {
        $this->dueAt = 0;
        $this->bytes = $this->backend->send($this->bytes);
        $this->isPipeFull = $this->bytes !== '';
        $this->areFull = \strlen($this->bytes) > self::MAX_BYTES;
    }

    public function sendIfDue(): void
    {
        if ($this->bytes === '') {
            return;
        }
        $now = hrtime(true);
        if (
            !$this->isPipeFull
            && !$this->waiting->isEmpty()
            && $now - $this->sentAt < self::MAX_DELAY_NANOSECONDS
            && \strlen($this->bytes) < self::BURST_BYTES
        ) {
            $this->dueAt = $this->sentAt + self::MAX_DELAY_NANOSECONDS;

            return;
        }
        $this->sentAt = $now;
        $this->send();
    }
}
