<?php

declare(strict_types=1);

namespace Spindle\Remote\Internal;

use Spindle\Remote\Internal\Redis\EngineStream;

/**
 * Ends what this process has with engines, after all destructors of the application: sends the last requests, and waits
 * until the engines have read them. This happens after exit(), exceptions and fatal errors too, but not if exit() or an
 * exception ends a destructor.
 */
final class ProcessEnd
{
    /** @var list<self> objects whose destructors PHP calls when the process ends; empty before {@see prepare()} */
    private static array $objects = [];

    private static bool $hasBegun = false;

    private function __construct(private readonly bool $isLast) {}

    public function __destruct()
    {
        if (!$this->isLast) {
            // PHP calls the destructor of an object that a destructor creates at the end after all others.
            self::$objects[] = new self(true);
        } elseif (!self::$hasBegun) {
            self::$hasBegun = true;
            ReceivedOutcomes::sendAll();
            EngineStream::endAll();
        }
    }

    public static function prepare(): void
    {
        if (self::$objects === []) {
            self::$objects[] = new self(false);
            // After a fatal error, PHP only calls the destructors of objects that shutdown functions have created.
            register_shutdown_function(static fn() => self::$objects[] = new self(false));
        }
    }

    /** Returns whether no answer of an engine is awaited any more. */
    public static function hasBegun(): bool
    {
        return self::$hasBegun;
    }
}
