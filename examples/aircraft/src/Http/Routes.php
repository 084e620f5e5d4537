<?php

declare(strict_types=1);

namespace Aircraft\Http;

use Psr\Http\Server\RequestHandlerInterface;
use Symfony\Component\Routing\Matcher\Dumper\CompiledUrlMatcherDumper;
use Symfony\Component\Routing\Route;
use Symfony\Component\Routing\RouteCollection;

/** The routes. The OpenAPI description lists the same ones, and a test compares them. */
final class Routes
{
    /** @var list<array{string, string, class-string<RequestHandlerInterface>}> routes without variables first */
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
        ['GET', '/openapi.json', DescribeApi::class],
    ];

    /** Any segment except the names of other paths. Its handler checks whether it is a valid number. */
    private const NUMBER = '(?!(?:import|export|events)(?:/|$))[^/]+';

    private const COMPILED = __DIR__ . '/../../routes.php';

    private function __construct() {}

    /** @return array<mixed> routes for Symfony's matcher */
    public static function compiled(): array
    {
        $routes = require self::COMPILED;

        return \is_array($routes) ? $routes : throw new \LogicException(self::COMPILED . ' returns no array');
    }

    /** Compiles the routes into a file, because compiling takes longer than most requests. Needed after each change. */
    public static function compile(): void
    {
        $text = self::dumper()->dump();
        file_put_contents(self::COMPILED, preg_replace('/^<\?php\n/', "<?php\n\ndeclare(strict_types=1);\n", $text));
    }

    /** @return array<mixed> the expected result of compiled() */
    public static function current(): array
    {
        return self::dumper()->getCompiledRoutes();
    }

    private static function dumper(): CompiledUrlMatcherDumper
    {
        $routes = new RouteCollection();
        foreach (self::ALL as [$method, $pattern, $handler]) {
            $routes->add(
                "{$method} {$pattern}",
                new Route(
                    $pattern,
                    ['_handler' => $handler, '_pattern' => $pattern],
                    requirements: ['number' => self::NUMBER],
                    methods: $method === 'GET' ? ['GET', 'HEAD'] : [$method],
                ),
            );
        }

        return new CompiledUrlMatcherDumper($routes);
    }
}
