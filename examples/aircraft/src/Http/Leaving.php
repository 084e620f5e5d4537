<?php

declare(strict_types=1);

namespace Aircraft\Http;

use Amp\Cancellation;
use Psr\Http\Message\ServerRequestInterface;

/** For what nobody needs any more when the client has left. */
final class Leaving
{
    private function __construct() {}

    /** @return Cancellation|null null where the server can't tell */
    public static function of(ServerRequestInterface $request): ?Cancellation
    {
        $leaving = $request->getAttribute(Cancellation::class);

        return $leaving instanceof Cancellation ? $leaving : null;
    }
}
