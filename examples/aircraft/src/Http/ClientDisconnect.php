<?php

declare(strict_types=1);

namespace Aircraft\Http;

use Amp\Cancellation;
use Psr\Http\Message\ServerRequestInterface;

/** Cancels work whose client has disconnected. */
final class ClientDisconnect
{
    private function __construct() {}

    /** @return Cancellation|null null where the server can't detect this */
    public static function of(ServerRequestInterface $request): ?Cancellation
    {
        $leaving = $request->getAttribute(Cancellation::class);

        return $leaving instanceof Cancellation ? $leaving : null;
    }
}
