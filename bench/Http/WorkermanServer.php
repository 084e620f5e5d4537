<?php

declare(strict_types=1);

namespace Spindle\Bench\Http;

/** Workerman, if available: one worker process and its master, with the event loop that Workerman chooses. */
final class WorkermanServer
{
    public const SERVER = 'Workerman\Worker';
    private const TIMER = 'Workerman\Timer';
    private const RESPONSE = 'Workerman\Protocols\Http\Response';

    /** Returns the name with the version, which Workerman knows even without Composer. */
    public static function label(): string
    {
        $version = \defined(self::SERVER . '::VERSION') ? \constant(self::SERVER . '::VERSION') : null;

        return \is_string($version) ? "workerman/workerman {$version}" : 'workerman/workerman';
    }

    public static function serve(Site $site): void
    {
        $worker = Foreign::make(self::SERVER, "http://{$site->address()}", [
            'socket' => ['backlog' => Site::BACKLOG],
            'ssl' => ['local_cert' => $site->certificate, 'local_pk' => $site->key, 'verify_peer' => false],
        ]);
        \assert(
            property_exists($worker, 'count')
                && property_exists($worker, 'transport')
                && property_exists($worker, 'onMessage'),
        );
        $worker->count = 1;
        $worker->transport = $site->isTls() ? 'ssl' : 'tcp';
        $worker->onMessage = self::handler($site->work);
        $settings = new \ReflectionClass($worker);
        $settings->setStaticPropertyValue('pidFile', getcwd() . '/workerman.pid');
        $settings->setStaticPropertyValue('logFile', getcwd() . '/workerman.log');
        // Workerman reads its command from argv.
        $GLOBALS['argv'] = ['http-contestant.php', 'start'];
        Foreign::call($worker, 'runAll');
    }

    /** @return \Closure(object, object): void */
    private static function handler(Work $work): \Closure
    {
        $response = Foreign::found(self::RESPONSE);

        return match ($work) {
            Work::Text, Work::Crowd => static function (object $connection): void {
                \assert(method_exists($connection, 'send'));
                $connection->send(Work::TEXT);
            },
            Work::Json => static function (object $connection) use ($response): void {
                \assert(method_exists($connection, 'send'));
                $connection->send(new $response(
                    200,
                    ['Content-Type' => 'application/json'],
                    json_encode(Work::JSON, \JSON_THROW_ON_ERROR),
                ));
            },
            Work::Echo => static function (object $connection, object $request): void {
                \assert(method_exists($connection, 'send') && method_exists($request, 'rawBody'));
                $connection->send($request->rawBody());
            },
            Work::Wait => static function (object $connection): void {
                Foreign::call(
                    self::TIMER,
                    'add',
                    Work::WAIT_SECONDS,
                    static fn() => Foreign::call($connection, 'send', Work::TEXT),
                    [],
                    false,
                );
            },
            Work::Collide => static function (object $connection, object $request): void {
                \assert(method_exists($connection, 'send') && method_exists($request, 'rawBody'));
                $body = $request->rawBody();
                \assert(\is_string($body));
                json_decode($body, true);
                $connection->send(Work::TEXT);
            },
            Work::Burn, Work::Nyholm, Work::Pieces, Work::PiecesGzip, Work::PiecesLarge
                => throw new \LogicException('Workerman does not support this measurement'),
        };
    }
}
