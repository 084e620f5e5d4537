<?php

declare(strict_types=1);

namespace Aircraft\Http;

use Psr\Http\Message\ResponseInterface;
use Spindle\Http\Response;

/**
 * A problem document: describes an error for programs and for people.
 *
 * @see https://www.rfc-editor.org/rfc/rfc9457
 */
final class Problem
{
    private function __construct() {}

    /**
     * @param array<string, mixed>                   $more    members beyond title, status and detail
     * @param array<string, string|list<string>> $headers
     */
    public static function of(int $status, string $detail, array $more = [], array $headers = []): ResponseInterface
    {
        $title = (new Response($status))->getReasonPhrase();

        return Response::json(
            ['title' => $title, 'status' => $status, 'detail' => $detail] + $more,
            $status,
            ['Content-Type' => 'application/problem+json'] + $headers,
        );
    }
}
