<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Process;

/**
 * Whose process is to be replaced: those of all slots for new code, or of one that has done its share; one after the
 * other, so that there is no more than one process too many that starts.
 */
final class Succession
{
    /** @var array<string, Slot> by its duty's name, in this order */
    private array $waiting = [];

    /** The one whose successor starts. */
    private ?Slot $starting = null;

    /** Whether all are replaced at present. */
    private bool $reloading = false;

    /** @var array<string, true> those that this reload, or the last one, has replaced */
    private array $renewed = [];

    /** @param array<Slot> $slots */
    public function __construct(private readonly array $slots) {}

    /**
     * Begins with the first slot. A reload that is under way is given up: it may hang, and the newest code is what is wanted.
     *
     * @return Slot|null whose successor was starting, and is not wanted any more: it may have loaded older code
     */
    public function reload(): ?Slot
    {
        $abandoned = $this->starting;
        $this->starting = null;
        $this->reloading = true;
        $this->renewed = [];
        array_map($this->replace(...), $this->slots);

        return $abandoned;
    }

    public function isReloading(): bool
    {
        return $this->reloading;
    }

    public function replace(Slot $slot): void
    {
        $this->waiting[$slot->duty->name] = $slot;
    }

    /** @return Slot|null whose successor is to be started now; {@see succeeded()} or {@see failed()} follows */
    public function next(): ?Slot
    {
        return $this->starting === null ? $this->starting = array_shift($this->waiting) : null;
    }

    /** @return bool whether this was the last one of a reload */
    public function succeeded(): bool
    {
        $this->renewed[(string) $this->starting?->duty->name] = true;
        $this->starting = null;

        return $this->waiting === [] && $this->endReload();
    }

    /**
     * The others keep what they have.
     *
     * @return int|null how many a reload has replaced before; null when this was none
     */
    public function failed(): ?int
    {
        $this->starting = null;
        $this->waiting = [];
        $renewed = \count($this->renewed);

        return $this->endReload() ? $renewed : null;
    }

    private function endReload(): bool
    {
        $ended = $this->reloading;
        $this->reloading = false;

        return $ended;
    }
}
