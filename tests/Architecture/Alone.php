<?php

declare(strict_types=1);

namespace Spindle\Tests\Architecture;

use Spindle\Command\Command;
use Spindle\Command\CommandPool;
use Spindle\Http\Response;
use Spindle\Http\Testing\TestClient;
use Spindle\Postgres\ConnectionFailedException;
use Spindle\Postgres\PostgresPool;
use Spindle\Remote\BrokerUnavailableException;
use Spindle\Remote\RedisBroker;
use Spindle\Worker\WorkerPool;

/** Runs in a process whose autoloader knows only one capability and its requirements: see {@see CapabilitiesTest}. */
final class Alone
{
    /**
     * @param list<string> $classes
     *
     * @return array<string, string> why a class can't be loaded, by class
     */
    public static function failures(array $classes): array
    {
        $failures = [];
        foreach ($classes as $class) {
            try {
                if (!self::isClass($class)) {
                    $failures[$class] = 'no file has it';
                }
            } catch (\Error $error) {
                $failures[$class] = $error->getMessage();
            }
        }

        return $failures;
    }

    /**
     * @param list<string> $names of classes and functions
     *
     * @return array<string, string> file, or extension as "ext-name", that defines each name; '' if neither does
     */
    public static function definitions(array $names): array
    {
        $definitions = [];
        foreach ($names as $name) {
            try {
                $reflection = match (true) {
                    \function_exists($name) => new \ReflectionFunction($name),
                    self::isClass($name) => new \ReflectionClass($name),
                    default => null,
                };
            } catch (\Error) {
                $reflection = null; // The class can't be loaded: see failures().
            }
            $extension = $reflection?->getExtensionName();
            $definitions[$name] = \is_string($extension)
                ? 'ext-' . strtolower($extension)
                : (string) $reflection?->getFileName();
        }

        return $definitions;
    }

    /** @return array{string} answer of a small call: "hello", or the class of an expected exception */
    public static function call(string $capability): array
    {
        return [match ($capability) {
            'Command' => trim((new CommandPool(1))->execute(Command::of('echo', 'hello'))->stdout()),
            'Worker' => implode('', iterator_to_array((new WorkerPool(1))->map(['olleh'], strrev(...)))),
            'Postgres' => self::failure(static fn() => (new PostgresPool(
                'postgres://user@' . self::closedAddress() . '/test',
            ))->query('select 1')),
            'Http' => (string) (new TestClient(static fn(): Response => Response::text('hello')))->get('/')->getBody(),
            'Remote' => self::failure(
                static fn() => (new RedisBroker('redis://' . self::closedAddress()))->statistics('queue'),
            ),
            'Cli' => trim((string) shell_exec(
                escapeshellarg(\PHP_BINARY) . ' vendor/spindle/spindle/bin/spindle run ::: "echo hello" 2>&1',
            )),
            default => throw new \ValueError("There is no call for '{$capability}'"),
        }];
    }

    /** @phpstan-assert-if-true class-string $name */
    private static function isClass(string $name): bool
    {
        return class_exists($name) || interface_exists($name) || trait_exists($name);
    }

    /** @param \Closure(): mixed $call */
    private static function failure(\Closure $call): string
    {
        try {
            return get_debug_type($call());
        } catch (ConnectionFailedException|BrokerUnavailableException $exception) {
            return $exception::class;
        }
    }

    private static function closedAddress(): string
    {
        $server = stream_socket_server('tcp://127.0.0.1:0');

        return $server === false ? '' : (string) stream_socket_get_name($server, false);
    }
}
