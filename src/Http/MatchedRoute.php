<?php

declare(strict_types=1);

namespace Spindle\Http;

/**
 * Reports the route of a request to the server. A router calls
 * `$request->getAttribute(MatchedRoute::class)?->setName('/aircraft/{number}')`. The server counts requests by route,
 * not by path, because the number of different paths has no limit.
 */
final class MatchedRoute
{
    private ?string $name = null;

    public function setName(string $pattern): void
    {
        $this->name = $pattern;
    }

    public function getName(): ?string
    {
        return $this->name;
    }
}
