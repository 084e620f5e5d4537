<?php

declare(strict_types=1);

namespace Spindle\Tests\Architecture;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Spindle\Http\Client\HttpClient;
use Spindle\Http\HttpServer;
use Spindle\Http\Supervisor;
use Spindle\Internal\NotCopyable;
use Spindle\Remote\Agent;
use Spindle\Remote\RedisBroker;
use Spindle\Remote\RemoteCommands;
use Spindle\Remote\RemoteExecutor;
use Spindle\Worker\InlineExecutor;

/** Public classes that own resources cannot be cloned or serialized: the destructor of a copy would release them. */
final class OwnersTest extends TestCase
{
    /** Classes that own processes, sockets or registrations and have no destructor. */
    private const WITHOUT_DESTRUCTOR = [
        HttpClient::class,
        HttpServer::class,
        Supervisor::class,
        Agent::class,
        RedisBroker::class,
        RemoteCommands::class,
        RemoteExecutor::class,
        InlineExecutor::class,
    ];

    /** @param class-string $class */
    #[DataProvider('owners')]
    public function testAnObjectThatOwnsSomethingCannotBeCopied(string $class): void
    {
        self::assertFalse((new \ReflectionClass($class))->isCloneable());
        self::assertContains(NotCopyable::class, (array) class_uses($class));
    }

    /** @return iterable<string, array{class-string}> */
    public static function owners(): iterable
    {
        foreach (PhpFiles::in(\dirname(__DIR__, 2) . '/src') as $path) {
            $class = 'Spindle\\' . strtr(substr($path, 0, -4), '/', '\\');
            if (!str_contains($path, 'Internal/') && class_exists($class) && method_exists($class, '__destruct')) {
                yield $class => [$class];
            }
        }
        foreach (self::WITHOUT_DESTRUCTOR as $class) {
            yield $class => [$class];
        }
    }
}
