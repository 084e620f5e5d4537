<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Middleware;

use Psr\Http\Message\ResponseInterface;
use Spindle\Http\Internal\Message\Fields;

/** @see https://www.rfc-editor.org/rfc/rfc9110#section-12.5.5 */
final class Vary
{
    /** Adds request fields to Vary. Caches then store a separate response for each value of these fields. */
    public static function by(ResponseInterface $response, string ...$fields): ResponseInterface
    {
        $line = $response->getHeaderLine('Vary');
        $known = Fields::members(array_values($response->getHeader('Vary')));
        $new = array_filter($fields, static fn(string $field): bool => !\in_array(strtolower($field), $known, true));
        if ($new === [] || \in_array('*', $known, true)) {
            return $response;
        }

        return $response->withHeader('Vary', ($line === '' ? '' : "{$line}, ") . implode(', ', $new));
    }
}
