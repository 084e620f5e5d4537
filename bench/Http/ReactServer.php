<?php

declare(strict_types=1);

namespace Spindle\Bench\Http;

use Psr\Http\Message\ServerRequestInterface;

/** ReactPHP's HTTP server, if installed. Its loop runs at the end of the script. */
final class ReactServer
{
    public const SERVER = 'React\Http\HttpServer';
    private const SOCKET = 'React\Socket\SocketServer';
    private const RESPONSE = 'React\Http\Message\Response';
    private const PROMISE = 'React\Promise\Promise';
    private const LOOP = 'React\EventLoop\Loop';

    public static function serve(Site $site): void
    {
        $socket = Foreign::make(self::SOCKET, ($site->isTls() ? 'tls://' : 'tcp://') . $site->address(), [
            'tcp' => ['backlog' => Site::BACKLOG, 'tcp_nodelay' => true],
            'tls' => ['local_cert' => $site->certificate, 'local_pk' => $site->key],
        ]);
        Foreign::call(Foreign::make(self::SERVER, self::handler($site->work)), 'listen', $socket);
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
            Work::Echo => static fn(ServerRequestInterface $request): object
                => new $response(200, ['Content-Type' => 'application/octet-stream'], (string) $request->getBody()),
            Work::Wait => self::later(static fn(): object => new $response(200, $text, Work::TEXT)),
            Work::Burn, Work::Nyholm, Work::Collide, Work::Pieces, Work::PiecesGzip, Work::PiecesLarge
                => throw new \LogicException('ReactPHP does not support this measurement'),
        };
    }

    /** @param \Closure(): object $response */
    private static function later(\Closure $response): \Closure
    {
        $promise = Foreign::found(self::PROMISE);

        return static fn(): object => new $promise(static function (callable $resolve) use ($response): void {
            Foreign::call(self::LOOP, 'addTimer', Work::WAIT_SECONDS, static fn() => $resolve($response()));
        });
    }
}
