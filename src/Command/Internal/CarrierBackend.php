<?php

declare(strict_types=1);

namespace Spindle\Command\Internal;

use Amp\CancelledException;
use Amp\DeferredCancellation;
use Amp\Future;
use Spindle\Command\CommandCarrier;
use Spindle\Command\CommandResult;
use Spindle\Command\PortableCommand;

/** Runs commands through a carrier, one per slot. Other commands wait here, and lanes take turns. */
final class CarrierBackend implements CommandBackend
{
    private int $concurrency = 0;

    /**
     * @var array<int, non-empty-array<int, array{PendingCommand, string}>> waiting commands, as bytes, by lane and id
     */
    private array $waiting = [];

    /**
     * @var array<int, array{PendingCommand, DeferredCancellation, DeferredCancellation}>
     *        carried commands, each with the cancellations that recall and end it, by id
     */
    private array $carried = [];

    /** @var array<int, Future<mixed>> calls of the carrier that have not returned, by id */
    private array $under = [];

    /**
     * @param \Closure(PendingCommand, CommandResult): void $finished
     * @param \Closure(PendingCommand, \Throwable): void    $lost     called when there is no outcome
     */
    public function __construct(
        private readonly CommandCarrier $carrier,
        private readonly \Closure $finished,
        private readonly \Closure $lost,
    ) {}

    public function refresh(int $concurrency): void
    {
        $this->concurrency = $concurrency;
    }

    /** @throws \ValueError when the command can't be encoded as bytes */
    public function assign(PendingCommand $ticket, int $concurrency): void
    {
        $this->concurrency = $concurrency;
        $this->waiting[$ticket->lane][$ticket->id] = [$ticket, PortableCommand::encode($ticket->command)];
        $this->carry();
    }

    public function cancel(PendingCommand $ticket): void
    {
        isset($this->carried[$ticket->id]) ? $this->carried[$ticket->id][2]->cancel() : $this->takeBack($ticket);
    }

    public function withdraw(PendingCommand $ticket): void
    {
        isset($this->carried[$ticket->id]) ? $this->carried[$ticket->id][1]->cancel() : $this->takeBack($ticket);
    }

    public function release(PendingCommand $ticket): void
    {
        unset($this->carried[$ticket->id]);
        $this->carry();
    }

    public function unsent(): int
    {
        return 0;
    }

    public function flush(): void {}

    public function tickets(): array
    {
        $tickets = $this->running();
        foreach ($this->waiting as $lane) {
            $tickets += array_map(static fn(array $waiting): PendingCommand => $waiting[0], $lane);
        }

        return $tickets;
    }

    public function running(): array
    {
        return array_map(static fn(array $carried): PendingCommand => $carried[0], $this->carried);
    }

    public function resize(int $concurrency, int $before): void
    {
        $this->concurrency = $concurrency;
        $this->carry();
    }

    public function capacity(int $concurrency): int
    {
        return CommandCarrier::MOST;
    }

    public function close(): void
    {
        $carried = $this->carried;
        $this->carried = $this->waiting = [];
        foreach ($carried as [, , $end]) {
            $end->cancel();
        }
    }

    public function awaitEnd(): void
    {
        foreach ($this->under as $future) {
            $future->await();
        }
    }

    /** Fills the slots with waiting commands. */
    private function carry(): void
    {
        while ($this->waiting !== [] && \count($this->carried) < $this->concurrency) {
            $lane = array_key_first($this->waiting);
            $tickets = $this->waiting[$lane];
            [$ticket, $command] = reset($tickets);
            unset($this->waiting[$lane], $tickets[$ticket->id]);
            if ($tickets !== []) {
                $this->waiting[$lane] = $tickets; // now the last lane in turn
            }
            $this->give($ticket, $command);
        }
    }

    private function give(PendingCommand $ticket, string $command): void
    {
        [$recall, $end] = [new DeferredCancellation(), new DeferredCancellation()];
        $this->carried[$ticket->id] = [$ticket, $recall, $end];
        $this->under[$ticket->id] = \Amp\async(function () use ($ticket, $command, $recall, $end): void {
            try {
                $outcome = $this->carrier->carry($command, $recall->getCancellation(), $end->getCancellation());
                $this->over($ticket, fn() => ($this->finished)($ticket, ResultFactory::carried($ticket, $outcome)));
            } catch (CancelledException) {
                $this->over($ticket, fn() => $this->neverRan($ticket));
            } catch (\Throwable $failure) {
                $this->over($ticket, fn() => ($this->lost)($ticket, $failure));
            }
        });
    }

    /** @param \Closure(): void $tell */
    private function over(PendingCommand $ticket, \Closure $tell): void
    {
        unset($this->under[$ticket->id]);
        if (isset($this->carried[$ticket->id])) { // not after the pool was closed
            $tell();
        }
    }

    private function takeBack(PendingCommand $ticket): void
    {
        if (isset($this->waiting[$ticket->lane][$ticket->id])) {
            $rest = $this->waiting[$ticket->lane];
            unset($rest[$ticket->id]);
            $this->waiting = array_filter(
                [$ticket->lane => $rest] + $this->waiting,
                static fn(array $lane): bool => $lane !== [],
            );
            $this->neverRan($ticket);
        }
    }

    private function neverRan(PendingCommand $ticket): void
    {
        $ticket->cancelled = true;
        ($this->finished)($ticket, ResultFactory::cancelled($ticket, 'cancelled before it was started'));
    }
}
