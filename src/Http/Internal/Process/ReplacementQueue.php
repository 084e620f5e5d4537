<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Process;

/** Queue of slots whose process has to be replaced, due to a reload or a limit. Allows one replacement at a time. */
final class ReplacementQueue
{
    /** @var array<string, Slot> waiting slots by their role's name, in order */
    private array $waiting = [];

    private ?Slot $starting = null;

    public bool $isReloading = false;

    /** @var array<string, true> names of the roles whose process was replaced since the last {@see reload()} */
    private array $replaced = [];

    /** @param array<Slot> $slots */
    public function __construct(private readonly array $slots) {}

    /**
     * Begins a reload. Cancels the current replacement: its new process may hang, or may have loaded older code.
     *
     * @return Slot|null slot whose successor the caller has to end; null if no successor was starting
     */
    public function reload(): ?Slot
    {
        $abandoned = $this->starting;
        $this->starting = null;
        $this->isReloading = true;
        $this->replaced = [];
        array_map($this->add(...), $this->slots);

        return $abandoned;
    }

    public function add(Slot $slot): void
    {
        $this->waiting[$slot->role->name] = $slot;
    }

    /**
     * Begins the next replacement. When it ends, the caller has to call {@see succeeded()} or {@see failed()}.
     *
     * @return Slot|null slot whose successor the caller has to start; null if no slot waits, or a successor is starting
     */
    public function next(): ?Slot
    {
        return $this->starting === null ? $this->starting = array_shift($this->waiting) : null;
    }

    /** @return bool whether this replacement was the last one of a reload, so that the reload is complete */
    public function succeeded(): bool
    {
        $this->replaced[(string) $this->starting?->role->name] = true;
        $this->starting = null;

        return $this->waiting === [] && $this->endReload();
    }

    /**
     * Ends the current replacement without success, and empties the queue.
     *
     * @return int|null number of processes that the reload has replaced; null if no reload was in progress
     */
    public function failed(): ?int
    {
        $this->starting = null;
        $this->waiting = [];
        $replaced = \count($this->replaced);

        return $this->endReload() ? $replaced : null;
    }

    private function endReload(): bool
    {
        $ended = $this->isReloading;
        $this->isReloading = false;

        return $ended;
    }
}
