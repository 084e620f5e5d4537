<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Server;

/**
 * Whether a client takes or sends enough bytes in the time for which it is waited for. A request has one window for all
 * times that it waits, so that nobody escapes by being waited for often and shortly.
 */
final class RateWindow
{
    /** What the transport had moved when the window began. */
    private int $moved = 0;

    /** Nanoseconds in the window for which the client was waited for. */
    private int $waited = 0;

    /** By hrtime(). */
    private int $waitingSince = 0;

    private int $request = 0;

    /** @param int $least bytes that are enough */
    public function __construct(private readonly Transport $transport, private readonly int $least) {}

    /**
     * The client is waited for from now on.
     *
     * @param int $request a number of its own for each request of the connection
     *
     * @return int when the window would have begun, had the client been waited for all the time since; by hrtime()
     */
    public function open(int $request): int
    {
        $this->waitingSince = hrtime(true);
        if ($this->request !== $request) {
            [$this->request, $this->waited] = [$request, 0];
        }
        if ($this->waited === 0) {
            $this->moved = $this->transport->moved;
        }

        return $this->waitingSince - $this->waited;
    }

    /** @return int now, by hrtime() */
    public function close(): int
    {
        $now = hrtime(true);
        $this->waited += $now - $this->waitingSince;

        return $now;
    }

    public function isEnough(): bool
    {
        return $this->transport->moved - $this->moved >= $this->least;
    }

    public function restart(): void
    {
        $this->waited = 0;
    }
}
