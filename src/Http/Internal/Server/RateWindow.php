<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Server;

/**
 * Checks whether a client sends a body fast enough. A window ends when the waits for the body have taken
 * HttpServerOptions::$rateWindow seconds in total. In each window, the client must transfer a minimum number of bytes.
 */
final class RateWindow
{
    /** Bytes that the transport had received and sent when the window began. */
    private int $receivedBefore = 0;
    private int $sentBefore = 0;

    /** Nanoseconds for which the server has waited in this window, without the current wait. */
    private int $waited = 0;

    /** Nanoseconds for which the server has waited in previous windows. */
    private int $waitedBefore = 0;

    /** Start of the current wait by hrtime(); 0 if there is none. */
    private int $waitingSince = 0;

    private int $request = 0;

    /** @param int $minBytes minimum bytes per window */
    public function __construct(private readonly Transport $transport, private readonly int $minBytes) {}

    /**
     * Starts a wait, or continues the current one.
     *
     * @param int $request number of the request, unique per connection
     *
     * @return int time by hrtime(): the window ends rateWindow seconds after this time, unless this wait ends earlier
     */
    public function startWait(int $request): int
    {
        if ($this->request !== $request) {
            $this->request = $request;
            $this->restart();
        }
        $this->waitingSince = $this->endWait();
        if ($this->waited === 0) {
            [$this->receivedBefore, $this->sentBefore] = [$this->transport->receivedBytes, $this->transport->sentBytes];
        }

        return $this->waitingSince - $this->waited;
    }

    /** @return int now by hrtime(), even if there is no wait to end */
    public function endWait(): int
    {
        $now = hrtime(true);
        if ($this->waitingSince !== 0) {
            $this->waited += $now - $this->waitingSince;
            $this->waitingSince = 0;
        }

        return $now;
    }

    /** Returns whether enough bytes were transferred. Includes sent bytes: a handler may respond while it reads. */
    public function isFastEnough(): bool
    {
        $received = $this->transport->receivedBytes - $this->receivedBefore;
        $sent = $this->transport->sentBytes - $this->sentBefore;

        return $received + $sent >= $this->minBytes;
    }

    /** Returns the nanoseconds for which the server has waited in all windows, including the current wait. */
    public function waited(int $now): int
    {
        return $this->waitedBefore + $this->waited + ($this->waitingSince === 0 ? 0 : $now - $this->waitingSince);
    }

    /** Begins a new window. Does not count a wait that was not ended. */
    public function restart(): void
    {
        $this->waitedBefore += $this->waited;
        $this->waited = $this->waitingSince = 0;
    }
}
