<?php

declare(strict_types=1);

namespace Spindle\Http;

use Psr\Http\Message\ResponseInterface;
use Psr\Http\Message\ServerRequestInterface;
use Psr\Http\Server\RequestHandlerInterface;
use Psr\Log\LoggerInterface;
use Psr\Log\NullLogger;
use Spindle\Http\Internal\App\HandlerResult;
use Spindle\Statistics;

/**
 * A handler with options, logger, statistics and health checks. `app.php` may return an Application or a handler.
 *
 * Under {@see Sapi}, only the handler, the logger and the limits of forms have an effect.
 */
final readonly class Application implements RequestHandlerInterface
{
    /**
     * @internal
     *
     * @var \Closure(ServerRequestInterface): ResponseInterface
     */
    public \Closure $handler;

    /**
     * @param RequestHandlerInterface|\Closure(ServerRequestInterface): ResponseInterface $handler
     * @param array<string, Statistics>      $statistics pools and other objects that the metrics and the status page
     *     show, by name
     * @param array<string, \Closure(): mixed> $checks    health checks by name; `/healthz` answers 503 when one of them
     *     throws, returns false, or takes longer than 0.7 seconds
     * @param HttpServerOptions              $options    limits, deadlines, and certificates by host name (SNI)
     *
     * @throws \TypeError when $statistics or $checks has a value of another type
     */
    public function __construct(
        RequestHandlerInterface|\Closure $handler,
        public array $statistics = [],
        public array $checks = [],
        public HttpServerOptions $options = new HttpServerOptions(),
        public LoggerInterface $logger = new NullLogger(),
    ) {
        self::checkTypes('statistics', Statistics::class, $statistics);
        self::checkTypes('checks', \Closure::class, $checks);
        $this->handler = $handler instanceof \Closure ? $handler : $handler->handle(...);
    }

    public function handle(ServerRequestInterface $request): ResponseInterface
    {
        return HandlerResult::response(($this->handler)($request), $this->handler);
    }

    /**
     * @param class-string $type
     * @param array<array-key, mixed> $values
     */
    private static function checkTypes(string $parameter, string $type, array $values): void
    {
        foreach ($values as $name => $value) {
            if (!$value instanceof $type) {
                throw new \TypeError(\sprintf(
                    'Each value of the parameter %s must be a %s. The value for "%s" is of type %s',
                    $parameter,
                    $type,
                    $name,
                    get_debug_type($value),
                ));
            }
        }
    }
}
