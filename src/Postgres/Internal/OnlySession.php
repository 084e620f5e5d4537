<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal;

use Amp\Cancellation;

/** The session of one connection: lent to one at a time, and shared by all while nobody has it alone. */
final class OnlySession implements Lender
{
    private readonly Turn $turn;

    private readonly int $process;

    public function __construct(public readonly Session $session)
    {
        $this->turn = new Turn('The connection is busy with a transaction or a stream. Use that transaction, read the stream to its end first, or take a pool');
        $this->process = (int) getmypid();
    }

    public function isOurs(): bool
    {
        return $this->process === getmypid();
    }

    /** With others, when nobody has it alone. */
    public function share(?Cancellation $cancellation): Session
    {
        $this->ensureOurs();
        if ($this->turn->taken) {
            $this->turn->take($cancellation);
            $this->turn->give();
        }

        return $this->session;
    }

    public function take(?Cancellation $cancellation): Session
    {
        $this->ensureOurs();
        $this->turn->take($cancellation);

        return $this->session;
    }

    public function handOver(Session $session): void
    {
        $this->turn->handOver();
    }

    public function give(Session $session): void
    {
        $this->turn->give();
    }

    private function ensureOurs(): void
    {
        if (!$this->isOurs()) {
            throw new \LogicException('A connection to PostgreSQL can not be used in a fork of the process that opened it; open another');
        }
    }
}
