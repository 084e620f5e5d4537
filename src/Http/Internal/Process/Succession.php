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

    /** Whether all are replaced at present, and whether that is to begin anew afterwards. */
    private bool $reloading = false;
    private bool $again = false;

    /** @var array<string, true> those that this reload, or the last one, has replaced */
    private array $renewed = [];

    /** @param array<Slot> $slots */
    public function __construct(private readonly array $slots) {}

    /** @return bool whether it begins now, not after another that is under way */
    public function reload(): bool
    {
        if ($this->reloading) {
            $this->again = true;

            return false;
        }
        $this->reloading = true;
        $this->renewed = [];
        array_map($this->replace(...), $this->slots);

        return true;
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
        $name = (string) $this->starting?->duty->name;
        if (!isset($this->waiting[$name])) { // it was begun before this reload
            $this->renewed[$name] = true;
        }
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
        if ($this->again) {
            $this->again = false;
            $this->reload();
        }

        return $ended;
    }
}
