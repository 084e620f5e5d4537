<?php

declare(strict_types=1);

namespace Spindle\Bench\Http;

use Nyholm\Psr7\Response as NyholmResponse;
use Psr\Http\Message\ResponseInterface;
use Psr\Http\Message\ServerRequestInterface;
use Spindle\Http\HttpException;
use Spindle\Http\HttpServer;
use Spindle\Http\HttpServerOptions;
use Spindle\Http\Middleware\Compression;
use Spindle\Http\MiddlewareStack;
use Spindle\Http\Response;

use function Amp\delay;

/**
 * Spindle's server with its default limits, except that connections are kept for any number of requests, as in its
 * peers.
 */
final class SpindleServer
{
    public static function serve(Site $site): void
    {
        $perAddress = $site->work === Work::Crowd ? (new HttpServerOptions())->maxConnectionsPerAddress : \PHP_INT_MAX;
        $options = new HttpServerOptions(
            certificate: $site->certificate,
            key: $site->key,
            headTimeout: (float) $site->deadline,
            maxRequests: \PHP_INT_MAX,
            maxConnectionsPerAddress: $perAddress,
        );
        (new HttpServer(self::handler($site->work), $options))->listen(
            ($site->isTls() ? 'tls://' : '') . $site->address(),
        );
    }

    /** @return \Closure(ServerRequestInterface): ResponseInterface */
    public static function handler(Work $work): \Closure
    {
        return match ($work) {
            Work::Text, Work::Crowd
                => static fn(ServerRequestInterface $request): Response => Response::text(Work::TEXT),
            Work::Json => static fn(ServerRequestInterface $request): Response => Response::json(Work::JSON),
            Work::Echo => static fn(ServerRequestInterface $request): Response
                => Response::binary((string) $request->getBody()),
            Work::Wait => static function (ServerRequestInterface $request): Response {
                delay(Work::WAIT_SECONDS);

                return Response::text(Work::TEXT);
            },
            Work::Nyholm => static fn(ServerRequestInterface $request): ResponseInterface => new NyholmResponse(
                200,
                ['Content-Type' => 'text/plain; charset=utf-8'],
                Work::TEXT,
            ),
            Work::Collide => static function (ServerRequestInterface $request): Response {
                try {
                    $request->getParsedBody();
                } catch (HttpException) {
                    // the refusal is expected
                }

                return Response::text(Work::TEXT);
            },
            Work::Pieces => static fn(ServerRequestInterface $request): Response => Response::stream(Work::pieces()),
            Work::PiecesGzip => (new MiddlewareStack(
                static fn(ServerRequestInterface $request): Response => Response::stream(Work::pieces(), 'text/csv'),
                new Compression(),
            ))->handle(...),
            Work::PiecesLarge => static fn(ServerRequestInterface $request): Response
                => Response::stream(Work::largePieces()),
            Work::Burn => static function (ServerRequestInterface $request): Response {
                Work::burn();

                return Response::text(Work::TEXT);
            },
        };
    }
}
