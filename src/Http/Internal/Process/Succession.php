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
        $this->starting = null;

        return $this->waiting === [] && $this->endReload();
    }

    /**
     * The others keep what they have.
     *
     * @return bool whether this was a reload
     */
    public function failed(): bool
    {
        $this->starting = null;
        $this->waiting = [];

        return $this->endReload();
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
