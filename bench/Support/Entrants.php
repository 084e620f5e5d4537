<?php

declare(strict_types=1);

namespace Spindle\Bench\Support;

/** Selection of Spindle's contestants and checkouts. */
final readonly class Entrants
{
    /** Options of every script that measures Spindle. */
    public const OPTIONS = ['against' => '', 'first' => null];

    /** @param non-empty-list<Checkout> $checkouts the present one first */
    private function __construct(public array $checkouts, public bool $isFirstOnly) {}

    /** @throws UsageException when the given checkout can't be measured */
    public static function of(Options $options): self
    {
        $checkouts = $options->has('against') ? Checkout::withOther($options->text('against')) : [Checkout::alone()];

        return new self($checkouts, $options->has('first'));
    }

    /**
     * Returns the contestants that take part.
     *
     * @template T
     *
     * @param list<T> $spindle contestants, the most significant one first
     *
     * @return ($spindle is non-empty-list<T> ? non-empty-list<T> : list<T>)
     */
    public function some(array $spindle): array
    {
        return $this->isFirstOnly && $spindle !== [] ? [$spindle[0]] : $spindle;
    }

    /**
     * Returns the peers that take part.
     *
     * @template T
     *
     * @param list<T> $peers
     *
     * @return list<T>
     */
    public function peers(array $peers): array
    {
        return $this->isFirstOnly ? [] : $peers;
    }

    /** Returns the checkout that the present one is compared with; null for none. */
    public function other(): ?Checkout
    {
        return $this->checkouts[1] ?? null;
    }

    /** Returns whether {@see Line}s are needed. */
    public function areCompared(): bool
    {
        return $this->isFirstOnly || $this->other() !== null;
    }

    /** @return array<string, string> revisions and folders; empty for one checkout */
    public function describe(): array
    {
        $other = $this->other();

        return $other === null ? [] : ['This' => $this->checkouts[0]->describe(), 'Against' => $other->describe()];
    }
}
