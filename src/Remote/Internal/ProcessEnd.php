<?php

declare(strict_types=1);

namespace Spindle\Remote\Internal;

use Spindle\Internal\Async\FiberSwitch;
use Spindle\Internal\Shutdown;
use Spindle\Remote\Internal\Redis\EngineStream;

/**
 * Sends the requests of {@see LastRequests} objects when the process ends, after the application's destructors. Then
 * waits until the engines have read the requests. This also works after exit(), an exception or a fatal error. If
 * exit() or an exception ends a destructor, no requests are sent.
 */
final class ProcessEnd
{
    /** @var list<self> objects whose destructors PHP calls when the process ends; empty before {@see register()} */
    private static array $objects = [];

    /** @var \WeakMap<LastRequests, true>|null registered objects; null before the first call of {@see register()} */
    private static ?\WeakMap $senders = null;

    /** @var array<int, LastRequests> senders of the {@see keepDuring()} calls that have not returned */
    private static array $kept = [];

    private static bool $isSending = false;

    private function __construct(private readonly bool $wasCreatedAtEnd) {}

    public function __destruct()
    {
        if (!$this->wasCreatedAtEnd) {
            // At the end of the process, PHP calls destructors in the order of object handles, and reuses no handle.
            // So a new object gets the highest handle, and PHP calls the new object's destructor last.
            self::$objects[] = new self(true);
        } elseif (!self::$isSending) {
            self::$isSending = true;
            self::sendAll();
            EngineStream::endAll();
        }
    }

    public static function register(?LastRequests $sender = null): void
    {
        self::$senders ??= new \WeakMap();
        if ($sender !== null) {
            self::$senders[$sender] = true;
        }
        if (self::$objects === []) {
            self::$objects[] = new self(false);
            // After a fatal error, PHP calls only the destructors of objects that shutdown functions have created.
            register_shutdown_function(static fn() => self::$objects[] = new self(false));
            Shutdown::afterApplication(self::noteCancellations(...));
        }
    }

    /**
     * Calls $function, and keeps $sender in memory until the call has ended. If the process ends during the call, PHP
     * destroys the calling fiber. Then $sender must still exist, so that its last requests are sent.
     *
     * @template T
     *
     * @param \Closure(): T $function
     *
     * @return T
     */
    public static function keepDuring(LastRequests $sender, \Closure $function): mixed
    {
        self::$kept[] = $sender;
        $key = array_key_last(self::$kept);
        try {
            $result = $function();
        } catch (\Throwable $failure) { // no finally: it would also run when PHP destroys the fiber
            unset(self::$kept[$key]);

            throw $failure;
        }
        unset(self::$kept[$key]);

        return $result;
    }

    /** Returns whether sending the last requests has begun. From then on, no caller waits for an answer. */
    public static function isSending(): bool
    {
        return self::$isSending;
    }

    private static function noteCancellations(): void
    {
        foreach (self::$senders ?? [] as $sender => $_) {
            $sender->noteCancellations();
        }
    }

    private static function sendAll(): void
    {
        $fibers = [];
        foreach (self::$senders ?? [] as $sender => $_) {
            foreach ($sender->lastRequests() as $request) {
                try {
                    // A broker other than RedisBroker may suspend the fiber of a request. Each request has a separate
                    // fiber, so that this loop continues. $fibers keeps suspended fibers until all requests are sent.
                    FiberSwitch::obstacle() === null ? ($fibers[] = new \Fiber($request))->start() : $request();
                } catch (\Throwable) {
                    // The process ends, so a failed request is not repeated. Without the request, the engine keeps data
                    // until the retention of the data ends, and agents run cancelled tasks.
                }
            }
        }
    }
}
