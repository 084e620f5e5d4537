<?php

declare(strict_types=1);

namespace Spindle\Http;

use Spindle\Internal\ReleaseMismatchException;
use Spindle\SpindleException;

/** The file that should return an application is missing, has failed, or has not returned an application. */
final class AppException extends \RuntimeException implements SpindleException
{
    private const EXPECTED_RETURN = 'it has to return a Psr\Http\Server\RequestHandlerInterface'
        . ' (such as a Spindle\Http\Application), a Psr\Container\ContainerInterface that has one, or a closure.'
        . ' The closure has a request as its parameter and returns a response,'
        . ' or it has no parameters and returns a response, a handler or a container';

    private const ADVICE_AFTER_ANSWER = '. If the file answers a request, as a front controller does with $app->run(),'
        . ' leave this call out, and return the application';

    private function __construct(public readonly string $app, string $message, ?\Throwable $previous = null)
    {
        parent::__construct($message, 0, $previous);
    }

    /** @internal */
    public static function missing(string $app): self
    {
        return new self($app, "{$app} is not a readable file");
    }

    /** @internal */
    public static function malformed(string $app, \ParseError $error): self
    {
        return new self(
            $app,
            "{$error->getFile()} could not be parsed: {$error->getMessage()} on line {$error->getLine()}",
            $error,
        );
    }

    /** @internal */
    public static function threw(string $app, \Throwable $failure, string $position, bool $isFromFrontController): self
    {
        return new self(
            $app,
            "{$app} threw " . $failure::class . ": {$failure->getMessage()} ({$position})"
                . ($isFromFrontController ? self::ADVICE_AFTER_ANSWER : ''),
            $failure,
        );
    }

    /**
     * @internal
     *
     * @param string $source file, container or factory that returned the value, such as "The container in app.php"
     */
    public static function returned(string $app, string $source, mixed $value): self
    {
        $what = $value === 1 ? '1, as a file without a return statement does' : self::describe($value);

        return new self($app, "{$source} returned {$what}: " . self::EXPECTED_RETURN);
    }

    /**
     * @internal
     *
     * @param string $source container or factory that returned the closure, such as "The container in app.php"
     * @param mixed  $value  what the closure returned, which is not a response
     */
    public static function noResponse(string $app, string $source, mixed $value): self
    {
        return self::noHandler($app, $source, 'returned ' . self::describe($value) . ' instead of a response');
    }

    /**
     * @internal
     *
     * @param string $source file, container or factory that returned the closure, such as "The container in app.php"
     * @param string $reason such as "needs 2 arguments"
     */
    public static function noHandler(string $app, string $source, string $reason): self
    {
        return new self($app, "{$source} returned a closure that {$reason}: " . self::EXPECTED_RETURN);
    }

    /** @internal */
    public static function withOtherLoop(string $app): self
    {
        return new self(
            $app,
            "{$app} replaced the event loop, which receives the supervisor's messages: remove the call of"
                . ' EventLoop::setDriver(). The environment variable REVOLT_DRIVER selects the driver of the loop',
        );
    }

    /** @internal */
    public static function unusable(string $app, ReleaseMismatchException|ListenException $failure): self
    {
        return new self($app, $failure->getMessage(), $failure);
    }

    /** @internal Creates the exception for an error that a worker process has reported. */
    public static function reported(string $app, string $message): self
    {
        return new self($app, $message);
    }

    private static function describe(mixed $value): string
    {
        return get_debug_type($value) . (\is_scalar($value) ? ' ' . var_export($value, true) : '');
    }
}
