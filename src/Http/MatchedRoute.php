<?php

declare(strict_types=1);

namespace Spindle\Http;

/**
 * Reports to the server which route a request belongs to, so that it can count by route. A router calls
 * `$request->getAttribute(MatchedRoute::class)?->name('/aircraft/{number}')`. There would be too many different paths
 * to count.
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
