<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Server;

/**
 * Whether a client sends enough bytes of a body in the time for which it is waited for. A request has one window for all
 * times that it waits, so that nobody escapes by being waited for often and shortly.
 */
final class RateWindow
{
    /** What the transport had received and sent when the window began. */
    private int $received = 0;
    private int $taken = 0;

    /** Nanoseconds in the window for which the client was waited for. */
    private int $waited = 0;

    /** The same in the windows before. */
    private int $before = 0;

    /** By hrtime(); 0 while the client is not waited for. */
    private int $waitingSince = 0;

    private int $request = 0;

    /** @param int $least bytes that are enough */
    public function __construct(private readonly Transport $transport, private readonly int $least) {}

    /**
     * The client is waited for from now on, or still is, though for something else.
     *
     * @param int $request a number of its own for each request of the connection
     *
     * @return int when the window would have begun, had the client been waited for all the time since; by hrtime()
     */
    public function open(int $request): int
    {
        if ($this->request !== $request) {
            $this->request = $request;
            $this->restart();
        }
        $this->waitingSince = $this->close();
        if ($this->waited === 0) {
            [$this->received, $this->taken] = [$this->transport->received, $this->transport->taken];
        }

        return $this->waitingSince - $this->waited;
    }

    /** @return int now, by hrtime() */
    public function close(): int
    {
        $now = hrtime(true);
        if ($this->waitingSince !== 0) {
            $this->waited += $now - $this->waitingSince;
            $this->waitingSince = 0;
        }

        return $now;
    }

    /** Whether it has sent enough, or, where an answer is made of what it sends, taken enough of that. */
    public function isEnough(): bool
    {
        return $this->transport->received - $this->received + $this->transport->taken - $this->taken >= $this->least;
    }

    /** Nanoseconds for which the client was waited for in all windows. */
    public function waited(int $now): int
    {
        return $this->before + $this->waited + ($this->waitingSince === 0 ? 0 : $now - $this->waitingSince);
    }

    public function restart(): void
    {
        $this->before += $this->waited;
        $this->waited = $this->waitingSince = 0;
    }
}
