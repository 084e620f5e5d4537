<?php

declare(strict_types=1);

namespace Aircraft;

final readonly class Page
{
    /**
     * @param list<Aircraft> $aircraft
     * @param bool           $hasMore whether more aircraft follow
     */
    public function __construct(public array $aircraft, public bool $hasMore) {}
}
