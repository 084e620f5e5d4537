<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Answer;

use Psr\Http\Message\ServerRequestInterface;
use Spindle\Http\Internal\Message\Status;
use Spindle\Http\Response;

/** Creates the response to a request for a file: the file, a part of it, 304, or an error. RFC 9110, 13.2.2. */
final class FileAnswer
{
    /** @param array<string, string|list<string>> $headers replace the header fields that are derived from the file */
    public static function of(
        OpenFile $file,
        string $type,
        ServerRequestInterface $request,
        #[\SensitiveParameter]
        array $headers,
    ): Response {
        $now = time();
        $response = self::with(new Response(200, $headers), [
            'Content-Type' => $type,
            'Last-Modified' => HttpDate::of($file->lastModified($now)),
            'ETag' => $file->etag($now),
            'Accept-Ranges' => 'bytes',
        ]);
        // Conditions count only for GET and HEAD. A handler of another method has already acted: 412 would be too late.
        if (!\in_array($request->getMethod(), ['GET', 'HEAD'], true)) {
            return $response->withBody($file->whole());
        }
        $validators = new Validators(
            $response->getHeaderLine('ETag'),
            HttpDate::parse($response->getHeaderLine('Last-Modified'), $now),
            $now,
        );

        return match ($validators->refusal($request)) {
            304 => $response->withStatus(304)->withoutHeader('Content-Type')->withoutHeader('Accept-Ranges'),
            412 => self::error(412, []),
            null => self::content($response, $file, $validators, $request),
        };
    }

    /** Returns the requested range; 416 if no range is in the file; the whole file for several or no usable ranges. */
    private static function content(
        Response $response,
        OpenFile $file,
        Validators $validators,
        ServerRequestInterface $request,
    ): Response {
        $ranges = $request->getMethod() === 'GET' && $validators->allowPart($request)
            ? ByteRange::list($request->getHeaderLine('Range'), $file->size)
            : null;

        return match (true) {
            $ranges === [] => self::error(
                416,
                ['Accept-Ranges' => 'bytes', 'Content-Range' => "bytes */{$file->size}"],
            ),
            $ranges === null || \count($ranges) > 1 => $response->withBody($file->whole()),
            default => $response
                ->withStatus(206)
                ->withHeader('Content-Range', $ranges[0]->contentRange())
                ->withBody($file->part($ranges[0])),
        };
    }

    /** @param array<string, string> $headers */
    private static function error(int $status, #[\SensitiveParameter] array $headers): Response
    {
        return Response::text(Status::reason($status) . "\n", $status, $headers);
    }

    /** @param array<string, string> $headers */
    private static function with(Response $response, #[\SensitiveParameter] array $headers): Response
    {
        foreach ($headers as $name => $value) {
            $response = $response->hasHeader($name) ? $response : $response->withHeader($name, $value);
        }

        return $response;
    }
}
