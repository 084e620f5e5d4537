<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Middleware;

use Psr\Http\Message\ResponseInterface;

/** @see https://www.rfc-editor.org/rfc/rfc9110#section-12.5.5 */
final class Vary
{
    private function __construct() {}

    /** Has caches keep apart what the request's fields tell apart, beside those that were named already. */
    public static function by(ResponseInterface $response, string ...$fields): ResponseInterface
    {
        $named = $response->getHeaderLine('Vary');
        $known = array_map(trim(...), explode(',', strtolower($named)));
        $new = array_filter($fields, static fn(string $field): bool => !\in_array(strtolower($field), $known, true));
        if ($new === [] || \in_array('*', $known, true)) {
            return $response;
        }

        return $response->withHeader('Vary', ($named === '' ? '' : "{$named}, ") . implode(', ', $new));
    }
}
