<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Process;

/** Slots whose process is replaced, by new code or after its limits. At most one replacement starts at a time. */
final class ProcessReplacement
{
    /** @var array<string, Slot> waiting slots by their role's name, in order */
    private array $waiting = [];

    private ?Slot $starting = null;

    private bool $reloading = false;

    /** @var array<string, true> roles that this reload, or the last one, has replaced */
    private array $replaced = [];

    /** @param array<Slot> $slots */
    public function __construct(private readonly array $slots) {}

    /**
     * Begins a reload. A running one is abandoned: it may hang, and only the newest code is needed.
     *
     * @return Slot|null slot whose successor has to end, because it may have loaded older code
     */
    public function reload(): ?Slot
    {
        $abandoned = $this->starting;
        $this->starting = null;
        $this->reloading = true;
        $this->replaced = [];
        array_map($this->replace(...), $this->slots);

        return $abandoned;
    }

    public function isReloading(): bool
    {
        return $this->reloading;
    }

    public function replace(Slot $slot): void
    {
        $this->waiting[$slot->role->name] = $slot;
    }

    /** @return Slot|null slot whose successor has to be started now; {@see succeeded()} or {@see failed()} follows */
    public function next(): ?Slot
    {
        return $this->starting === null ? $this->starting = array_shift($this->waiting) : null;
    }

    /** @return bool whether this was the last one of a reload */
    public function succeeded(): bool
    {
        $this->replaced[(string) $this->starting?->role->name] = true;
        $this->starting = null;

        return $this->waiting === [] && $this->endReload();
    }

    /** @return int|null replacements of the reload that ends here; null without a reload */
    public function failed(): ?int
    {
        $this->starting = null;
        $this->waiting = [];
        $replaced = \count($this->replaced);

        return $this->endReload() ? $replaced : null;
    }

    private function endReload(): bool
    {
        $ended = $this->reloading;
        $this->reloading = false;

        return $ended;
    }
}
