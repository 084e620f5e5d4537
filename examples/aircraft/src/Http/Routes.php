<?php

declare(strict_types=1);

namespace Aircraft\Http;

use Psr\Http\Server\RequestHandlerInterface;
use Symfony\Component\Routing\Matcher\Dumper\CompiledUrlMatcherDumper;
use Symfony\Component\Routing\Route;
use Symfony\Component\Routing\RouteCollection;

/** Which request is whose. The OpenAPI description has the same, and a test compares them. */
final class Routes
{
    /** @var list<array{string, string, class-string<RequestHandlerInterface>}> those without variables first */
    public const ALL = [
        ['GET', '/aircraft', ListAircraft::class],
        ['POST', '/aircraft', AddAircraft::class],
        ['POST', '/aircraft/import', ImportAircraft::class],
        ['GET', '/aircraft/export', ExportAircraft::class],
        ['GET', '/aircraft/events', FollowAircraft::class],
        ['GET', '/aircraft/{number}', GetAircraft::class],
        ['PUT', '/aircraft/{number}', UpdateAircraft::class],
        ['DELETE', '/aircraft/{number}', DeleteAircraft::class],
        ['GET', '/aircraft/{number}/certificate', RenderCertificate::class],
        ['POST', '/reports', MakeReport::class],
        ['GET', '/sleep', Sleep::class],
        ['GET', '/openapi.json', Describe::class],
    ];

    /** Anything but what is a path of its own: whether it is a number is for the handler to say. */
    private const NUMBER = '(?!(?:import|export|events)(?:/|$))[^/]+';

    private const COMPILED = __DIR__ . '/../../routes.php';

    private function __construct() {}

    /** @return array<mixed> for Symfony's matcher */
    public static function compiled(): array
    {
        $routes = require self::COMPILED;

        return \is_array($routes) ? $routes : throw new \LogicException(self::COMPILED . ' returns no array');
    }

    /** What compiled() gives has to be made anew after a change of the routes, and is kept, for that takes longer than most requests. */
    public static function compile(): void
    {
        $text = self::dumper()->dump();
        file_put_contents(self::COMPILED, preg_replace('/^<\?php\n/', "<?php\n\ndeclare(strict_types=1);\n", $text));
    }

    /** @return array<mixed> what compiled() should give */
    public static function current(): array
    {
        return self::dumper()->getCompiledRoutes();
    }

    private static function dumper(): CompiledUrlMatcherDumper
    {
        $routes = new RouteCollection();
        foreach (self::ALL as [$method, $pattern, $handler]) {
            $routes->add("{$method} {$pattern}", new Route($pattern, ['_handler' => $handler, '_pattern' => $pattern], requirements: ['number' => self::NUMBER], methods: $method === 'GET' ? ['GET', 'HEAD'] : [$method]));
        }

        return new CompiledUrlMatcherDumper($routes);
    }
}
