<?php

declare(strict_types=1);

namespace Aircraft\Http;

use Psr\Http\Message\ServerRequestInterface;
use Psr\Http\Message\StreamInterface;
use Spindle\Http\HttpException;

final class JsonBody
{
    private const MAX_DEPTH = 8;

    /** Largest size, many times that of any object here. PHP would decode 8 MB of colliding keys for minutes. */
    private const MAX_BYTES = 65_536;

    private function __construct() {}

    /**
     * @return array<array-key, mixed>
     *
     * @throws HttpException when the body is missing, too long or not a JSON object
     */
    public static function of(ServerRequestInterface $request): array
    {
        ContentType::ensure($request, 'application/(?:[\w.-]+\+)?json', 'JSON', 'application/json');
        try {
            $fields = json_decode(self::text($request->getBody()), false, self::MAX_DEPTH, \JSON_THROW_ON_ERROR);
        } catch (\JsonException $malformed) {
            throw new HttpException(
                400,
                "The body is not valid JSON: {$malformed->getMessage()}",
                previous: $malformed,
            );
        }
        return $fields instanceof \stdClass
            ? (array) $fields
            : throw new HttpException(400, 'The body must be a JSON object');
    }

    private static function text(StreamInterface $body): string
    {
        $body->isSeekable() ? $body->rewind() : null;
        $text = '';
        while (!$body->eof()) {
            $text .= $body->read(self::MAX_BYTES);
            if (\strlen($text) > self::MAX_BYTES) {
                throw new HttpException(413, 'The JSON is longer than ' . self::MAX_BYTES . ' bytes');
            }
        }

        return $text;
    }
}
