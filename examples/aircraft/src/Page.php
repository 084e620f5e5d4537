<?php

declare(strict_types=1);

namespace Aircraft;

final readonly class Page
{
    /**
     * @param list<Aircraft> $aircraft
     * @param bool           $hasMore whether others follow the last one
     */
    public function __construct(public array $aircraft, public bool $hasMore) {}
}
