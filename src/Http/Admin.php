<?php

declare(strict_types=1);

namespace Spindle\Http;

use Amp\Cancellation;
use Psr\Http\Message\ServerRequestInterface;
use Psr\Http\Server\RequestHandlerInterface;
use Psr\Log\LoggerInterface;
use Psr\Log\NullLogger;
use Spindle\Http\Internal\Admin\AllowedHosts;
use Spindle\Http\Internal\Admin\Health;
use Spindle\Http\Internal\Admin\LocalServers;
use Spindle\Http\Internal\Admin\Metrics;
use Spindle\Http\Internal\Admin\ServerOverview;
use Spindle\Http\Internal\Admin\Snapshots;
use Spindle\Http\Internal\Admin\StatusPage;

/**
 * Serves `/metrics` for Prometheus, `/healthz` (whether the application should get requests), `/livez` (whether the
 * event loop runs) and optionally a status page at `/`.
 *
 * The handler does not authenticate clients. Serve the handler at a separate address that only operators can reach.
 *
 *     $server = new HttpServer($application);
 *     $admin = new HttpServer(Admin::of($server)->withStatusPage());
 *     $admin->start('127.0.0.1:9085');
 *     $server->listen('0.0.0.0:8080');
 *     $admin->close();
 *
 * Each request for `/metrics` collects new statistics. Each open status page collects statistics once a second.
 */
final readonly class Admin implements RequestHandlerInterface
{
    private Health $health;

    private function __construct(
        private ServerOverview $overview,
        private ?StatusPage $page = null,
        private LoggerInterface $logger = new NullLogger(),
        private AllowedHosts $hosts = new AllowedHosts(),
    ) {
        $this->health = new Health($overview, $logger);
    }

    /**
     * Creates the handler for one or more servers of this process.
     *
     * @throws \ValueError when the applications of two servers have different statistics with the same name
     */
    public static function of(HttpServer $server, HttpServer ...$more): self
    {
        return self::from(new LocalServers([$server, ...array_values($more)]));
    }

    /** @internal */
    public static function from(ServerOverview $overview): self
    {
        return new self($overview);
    }

    /** Adds the status page. Objects of {@see Application::$statistics} with `in_use` and `max` get a usage bar. */
    public function withStatusPage(): self
    {
        return new self($this->overview, new StatusPage(), $this->logger, $this->hosts);
    }

    /** @param LoggerInterface $logger gets the reasons why checks fail; responses do not contain them */
    public function withLogger(LoggerInterface $logger): self
    {
        return new self($this->overview, $this->page, $logger, $this->hosts);
    }

    /**
     * Allows requests for these host names, in addition to IP addresses and localhost. Requests for other names are
     * answered with 421, so that pages of other sites can't read the data through DNS rebinding.
     *
     * @param string ...$names as in the Host field, without a port; "*" allows all names
     */
    public function withHosts(string ...$names): self
    {
        return new self($this->overview, $this->page, $this->logger, $this->hosts->with(...$names));
    }

    public function handle(ServerRequestInterface $request): Response
    {
        if (!$this->hosts->allows($request)) { // RFC 9110, 15.5.20
            return Response::text(
                'Misdirected Request: this address serves requests for IP addresses,'
                    . " localhost and allowed names (--admin-host)\n",
                421,
            );
        }
        $pathHandler = $this->handlerFor($request->getUri()->getPath());
        if ($pathHandler === null) {
            return Response::text("Not Found\n", 404);
        }
        if (!\in_array($request->getMethod(), ['GET', 'HEAD'], true)) {
            return Response::text("Method Not Allowed\n", 405, ['Allow' => 'GET, HEAD']);
        }

        return $pathHandler($request);
    }

    /** @return (\Closure(ServerRequestInterface): Response)|null */
    private function handlerFor(string $path): ?\Closure
    {
        return match ($path) {
            '/metrics' => $this->metrics(...),
            '/healthz' => $this->health->answer(...),
            '/livez' => static fn(): Response => Response::text("ok\n", headers: ['Cache-Control' => 'no-store']),
            '/' => $this->page === null ? null : $this->page->answer(...),
            '/events' => $this->page === null ? null : $this->events(...),
            default => null,
        };
    }

    private function metrics(): Response
    {
        return Response::binary(
            Metrics::of($this->overview->statistics()),
            Metrics::TYPE,
            headers: ['Cache-Control' => 'no-store'],
        );
    }

    private function events(ServerRequestInterface $request): Response
    {
        $cancellation = $request->getAttribute(Cancellation::class);

        return Response::serverSentEvents(
            (new Snapshots($this->overview))->follow($cancellation instanceof Cancellation ? $cancellation : null),
        );
    }
}
