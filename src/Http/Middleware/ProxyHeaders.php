<?php

declare(strict_types=1);

namespace Spindle\Http\Middleware;

/** The header fields in which a proxy describes the original request. */
enum ProxyHeaders
{
    case Forwarded;

    /** X-Forwarded-For, -Proto, -Host and -Port */
    case XForwarded;
}
