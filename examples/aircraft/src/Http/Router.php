<?php

declare(strict_types=1);

namespace Aircraft\Http;

use Psr\Container\ContainerInterface;
use Psr\Http\Message\ResponseInterface;
use Psr\Http\Message\ServerRequestInterface;
use Psr\Http\Server\RequestHandlerInterface;
use Spindle\Http\HttpException;
use Spindle\Http\MatchedRoute;
use Symfony\Component\Routing\Exception\MethodNotAllowedException;
use Symfony\Component\Routing\Exception\ResourceNotFoundException;
use Symfony\Component\Routing\Matcher\CompiledUrlMatcher;
use Symfony\Component\Routing\RequestContext;

/** Passes a request to its handler in {@see Routes}. Variables of the path become attributes. */
final readonly class Router implements RequestHandlerInterface
{
    private RequestContext $context;

    private CompiledUrlMatcher $matcher;

    /**
     * @param array<mixed>            $routes    from {@see Routes::compiled()}
     * @param RequestHandlerInterface $otherwise handles requests without a route
     */
    public function __construct(
        array $routes,
        private ContainerInterface $handlers,
        private RequestHandlerInterface $otherwise,
    ) {
        $this->context = new RequestContext();
        $this->matcher = new CompiledUrlMatcher($routes, $this->context);
    }

    public function handle(ServerRequestInterface $request): ResponseInterface
    {
        // All requests share the matcher. Nothing suspends between these two calls.
        $this->context->setMethod($request->getMethod());
        try {
            $match = $this->matcher->match($request->getUri()->getPath());
        } catch (MethodNotAllowedException $refusal) {
            $allowed = implode(', ', $refusal->getAllowedMethods());
            throw new HttpException(
                405,
                "The method {$request->getMethod()} is not possible here, only {$allowed}",
                ['Allow' => $allowed],
                $refusal,
            );
        } catch (ResourceNotFoundException) {
            return $this->otherwise->handle($request);
        }
        /** @var array{_handler: class-string<RequestHandlerInterface>, _pattern: string, number?: string} $match */
        $route = $request->getAttribute(MatchedRoute::class);
        if ($route instanceof MatchedRoute) {
            $route->setName($match['_pattern']);
        }
        if (isset($match['number'])) {
            $request = $request->withAttribute('number', $match['number']);
        }
        $handler = $this->handlers->get($match['_handler']);
        \assert($handler instanceof RequestHandlerInterface);

        return $handler->handle($request);
    }
}
