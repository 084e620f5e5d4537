<?php

declare(strict_types=1);

namespace Spindle\Http;

/**
 * Where a router says which of its routes a request belongs to, so that the server can count by route:
 * `$request->getAttribute(MatchedRoute::class)?->name('/aircraft/{number}')`. Paths themselves are too many to count by.
 */
final class MatchedRoute
{
    private ?string $name = null;

    public function name(string $pattern): void
    {
        $this->name = $pattern;
    }

    public function getName(): ?string
    {
        return $this->name;
    }
}
