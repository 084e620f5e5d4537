<?php

declare(strict_types=1);

namespace Spindle\Worker\Internal;

/** The generator task whose items an {@see ItemStream} yields. The task runs in a worker or in this process. */
interface ItemSource
{
    /** @return array{mixed, mixed} key and value of an item */
    public function decode(string $item): array;

    /** Called when the reader has taken items. `$size` is the size of these items in bytes. */
    public function acknowledge(int $items, int $size): void;

    /** Called when the reader has released the generator before its end. */
    public function release(): void;
}
