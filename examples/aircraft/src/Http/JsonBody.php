<?php

declare(strict_types=1);

namespace Aircraft\Http;

use Psr\Http\Message\ServerRequestInterface;
use Spindle\Http\HttpException;

final class JsonBody
{
    private const DEPTH = 8;

    private function __construct() {}

    /**
     * @return array<array-key, mixed>
     *
     * @throws HttpException when it is not there, or no JSON object
     */
    public static function of(ServerRequestInterface $request): array
    {
        ContentType::ensure($request, 'application/(?:[\w.-]+\+)?json', 'JSON', 'application/json');
        try {
            $fields = json_decode((string) $request->getBody(), false, self::DEPTH, \JSON_THROW_ON_ERROR);
        } catch (\JsonException $malformed) {
            throw new HttpException(400, "The body is no JSON: {$malformed->getMessage()}", previous: $malformed);
        }
        return $fields instanceof \stdClass ? (array) $fields : throw new HttpException(400, 'The body must be a JSON object');
    }
}
