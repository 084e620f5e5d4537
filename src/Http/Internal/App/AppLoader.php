<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\App;

use Psr\Container\ContainerInterface;
use Psr\Http\Message\ResponseInterface;
use Psr\Http\Message\ServerRequestInterface;
use Psr\Http\Server\RequestHandlerInterface;
use Spindle\Http\AppException;
use Spindle\Http\Application;
use Spindle\Http\UnsupportedFunctionException;

final class AppLoader
{
    /**
     * Returns `$app` if it is an Application, creates one for a handler, or loads one from a file.
     *
     * @param RequestHandlerInterface|\Closure(ServerRequestInterface): ResponseInterface|string $app
     *     a string is the path of a file
     *
     * @throws AppException
     */
    public static function of(RequestHandlerInterface|\Closure|string $app): Application
    {
        return match (true) {
            \is_string($app) => self::load($app),
            $app instanceof Application => $app,
            default => new Application($app),
        };
    }

    /** @throws AppException when the file can't be loaded or returns no application */
    public static function load(string $file): Application
    {
        $path = realpath($file);
        if ($path === false || !is_file($path) || !is_readable($path)) {
            throw AppException::missing($file);
        }

        // Code of the file has no class scope and no variables, as in a script.
        $require = \Closure::bind(static fn(): mixed => require func_get_arg(0), null, null);

        // @phpstan-ignore arguments.count (a parameter would be a variable of the file)
        return self::resolve($file, $file, self::call($file, static fn(): mixed => $require($path)), true);
    }

    /**
     * Makes an application from the value that a file, a container or a factory has returned. Calls this value if it is
     * a closure without parameters. If the call returns a response, the closure is a handler, otherwise a factory.
     */
    private static function resolve(string $file, string $source, mixed $value, bool $mayBeFactory): Application
    {
        if ($value instanceof Application) {
            return $value;
        }
        if ($value instanceof RequestHandlerInterface) {
            return new Application($value);
        }
        if (
            $value instanceof ContainerInterface
            && self::call($file, static fn(): bool => $value->has(RequestHandlerInterface::class)) === true
        ) {
            $entry = self::call($file, static fn(): mixed => $value->get(RequestHandlerInterface::class));

            return self::resolve($file, "The container in {$file}", $entry, false);
        }
        if (!$value instanceof \Closure) {
            throw AppException::returned($file, $source, $value);
        }
        if ((new \ReflectionFunction($value))->getNumberOfParameters() > 0) {
            return new Application(self::checkedHandler($file, $source, $value));
        }

        $result = self::call($file, $value);
        if ($result instanceof ResponseInterface) {
            /** @var \Closure(): ResponseInterface $value */
            return new Application($value); // a handler that does not use the request
        }

        return $mayBeFactory
            ? self::resolve($file, "The factory in {$file}", $result, false)
            : throw AppException::noResponse($file, $source, $result);
    }

    /**
     * @return \Closure(ServerRequestInterface): ResponseInterface
     *
     * @throws AppException when the closure can't be called with only a request
     */
    private static function checkedHandler(string $file, string $source, \Closure $closure): \Closure
    {
        $problem = HandlerSignature::problem($closure);
        if ($problem !== null) {
            throw AppException::noHandler($file, $source, $problem);
        }

        /** @var \Closure(ServerRequestInterface): ResponseInterface $closure */
        return $closure;
    }

    /** @param \Closure(): mixed $code code of the application */
    private static function call(string $file, \Closure $code): mixed
    {
        try {
            return $code();
        } catch (\ParseError $error) {
            throw AppException::malformed($file, $error);
        } catch (\Throwable $failure) {
            throw AppException::threw($file, $failure, self::position($failure), self::isFromFrontController($failure));
        }
    }

    /** Returns whether the file itself, not its closure, failed in a handler or in a function such as header(). */
    private static function isFromFrontController(\Throwable $failure): bool
    {
        $isFromFrontController = $failure instanceof UnsupportedFunctionException;
        foreach ($failure->getTrace() as $call) {
            $isFromFrontController = $isFromFrontController || $call['function'] === 'handle'
                && is_a($call['class'] ?? '', RequestHandlerInterface::class, true);
            if ($call['function'] === 'require' && ($call['file'] ?? '') === __FILE__) {
                return $isFromFrontController;
            }
        }

        return false;
    }

    /** Returns where an exception was thrown, or, if Spindle threw it, where the application called Spindle. */
    private static function position(\Throwable $failure): string
    {
        $source = \dirname(__DIR__, 3) . \DIRECTORY_SEPARATOR;
        $calls = [['file' => $failure->getFile(), 'line' => $failure->getLine()], ...$failure->getTrace()];
        foreach ($calls as $call) {
            $file = $call['file'] ?? $source;
            if ($file === __FILE__) {
                break;
            }
            if (isset($call['line']) && !str_starts_with($file, $source)) {
                return "{$file}, line {$call['line']}";
            }
        }

        return "{$failure->getFile()}, line {$failure->getLine()}";
    }
}
