<?php

declare(strict_types=1);

namespace Spindle\Bench\Http;

use Psr\Log\NullLogger;
use Revolt\EventLoop;

use function Amp\delay;

/** amphp/http-server, if installed: with TCP_NODELAY, without compression, with limits that admit all clients. */
final class AmpServer
{
    public const SERVER = 'Amp\Http\Server\SocketHttpServer';
    private const HANDLER = 'Amp\Http\Server\RequestHandler\ClosureRequestHandler';
    private const ERRORS = 'Amp\Http\Server\DefaultErrorHandler';
    private const RESPONSE = 'Amp\Http\Server\Response';
    private const BIND = 'Amp\Socket\BindContext';
    private const TLS = 'Amp\Socket\ServerTlsContext';
    private const CERTIFICATE = 'Amp\Socket\Certificate';

    public static function serve(Site $site): void
    {
        $server = Foreign::call(
            self::SERVER,
            'createForDirectAccess',
            new NullLogger(),
            false,
            Site::BACKLOG,
            Site::BACKLOG,
            Site::BACKLOG,
        );
        Foreign::call($server, 'expose', $site->address(), self::bind($site));
        Foreign::call(
            $server,
            'start',
            Foreign::make(self::HANDLER, self::handler($site->work)),
            Foreign::make(self::ERRORS),
        );
        EventLoop::run();
    }

    private static function bind(Site $site): mixed
    {
        $context = Foreign::call(
            Foreign::call(Foreign::make(self::BIND), 'withTcpNoDelay'),
            'withBacklog',
            Site::BACKLOG,
        );
        if (!$site->isTls()) {
            return $context;
        }
        $certificate = Foreign::make(self::CERTIFICATE, $site->certificate, $site->key);

        return Foreign::call(
            $context,
            'withTlsContext',
            Foreign::call(Foreign::make(self::TLS), 'withDefaultCertificate', $certificate),
        );
    }

    private static function handler(Work $work): \Closure
    {
        $response = Foreign::found(self::RESPONSE);
        $text = ['Content-Type' => 'text/plain; charset=utf-8'];

        return match ($work) {
            Work::Text, Work::Crowd => static fn(): object => new $response(200, $text, Work::TEXT),
            Work::Json => static fn(): object
                => new $response(
                    200,
                    ['Content-Type' => 'application/json'],
                    json_encode(Work::JSON, \JSON_THROW_ON_ERROR),
                ),
            Work::Echo => static function (object $request) use ($response): object {
                \assert(method_exists($request, 'getBody'));
                $body = $request->getBody();
                \assert(\is_object($body) && method_exists($body, 'buffer'));

                return new $response(200, ['Content-Type' => 'application/octet-stream'], $body->buffer());
            },
            Work::Wait => static function () use ($response, $text): object {
                delay(Work::WAIT_SECONDS);

                return new $response(200, $text, Work::TEXT);
            },
            Work::Burn, Work::Nyholm, Work::Collide, Work::Pieces, Work::PiecesGzip, Work::PiecesLarge
                => throw new \LogicException('amphp/http-server does not support this measurement'),
        };
    }
}
