<?php

declare(strict_types=1);

namespace Spindle\Http\Middleware;

/** The header fields in which a proxy describes the original request. */
enum ProxyHeaders
{
    case Forwarded;

    case XForwarded;

    /** @return non-empty-list<string> */
    public function names(): array
    {
        return match ($this) {
            self::Forwarded => ['Forwarded'],
            self::XForwarded => ['X-Forwarded-For', 'X-Forwarded-Proto', 'X-Forwarded-Host', 'X-Forwarded-Port'],
        };
    }
}
