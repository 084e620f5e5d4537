<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Remote;

use Spindle\Remote\Letter;

/** All letters that a mailbox has received. */
final class Post
{
    /** Number of letters about available jobs. */
    public int $work = 0;

    /** @var list<array<string, string>> */
    public array $outcomes = [];

    /** @var array<string, int> */
    public array $unwanted = [];

    /** @var list<string> */
    public array $items = [];

    /** @var list<string> */
    public array $taken = [];

    /** @var list<array<string, string>> */
    public array $reports = [];

    public function add(Letter $letter): void
    {
        $this->work += $letter->work ? 1 : 0;
        foreach ($letter->outcomes as $id => $frame) {
            $this->outcomes[] = [$id => $frame];
        }
        $this->unwanted = [...$this->unwanted, ...$letter->unwanted];
        $this->items = [...$this->items, ...$letter->items];
        $this->taken = [...$this->taken, ...$letter->taken];
        foreach ($letter->reports as $id => $frame) {
            $this->reports[] = [$id => $frame];
        }
    }
}
