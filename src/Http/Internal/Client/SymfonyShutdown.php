<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Client;

use Amp\CancelledException;
use Amp\TimeoutCancellation;
use Psr\Log\LoggerInterface;
use Revolt\EventLoop\UncaughtThrowable;
use Spindle\Internal\FatalError;
use Spindle\Internal\Shutdown;

use function Amp\Future\awaitAll;

/**
 * Waits at the end of the script for the heads of all responses, but at most {@see MAX_SECONDS}. Destructors run after
 * this wait, and can't replace it. Before PHP 8.4, a destructor can't wait. In later versions, PHP may destroy parts of
 * a response before its destructor runs.
 */
final class SymfonyShutdown
{
    private const MAX_SECONDS = 10.0;

    public static bool $isWaitOver = false;

    /** @var \WeakMap<SymfonyReceiver, array{LoggerInterface|null}>|null the logger of each response */
    private static ?\WeakMap $receivers = null;

    /** Registers the wait. If the first call came from a destructor at the script's end, PHP would ignore the wait. */
    public static function register(): void
    {
        if (self::$receivers === null) {
            self::$receivers = new \WeakMap();
            Shutdown::afterApplication(self::awaitHeads(...));
        }
    }

    public static function add(SymfonyReceiver $receiver, ?LoggerInterface $logger): void
    {
        if (self::$receivers !== null && !self::$isWaitOver) {
            self::$receivers[$receiver] = [$logger]; // in an array, because isset() returns false for null
        }
    }

    /** Returns whether the wait at the script's end included this request. Destructors may begin requests after it. */
    public static function hasWaitedFor(SymfonyReceiver $receiver): bool
    {
        return self::$isWaitOver && isset(self::$receivers[$receiver]);
    }

    private static function awaitHeads(): void
    {
        if (FatalError::last() !== null) {
            return;
        }
        $heads = [];
        foreach (self::pending() as [$receiver, $logger]) {
            $heads[] = $receiver->continueDetached($logger);
        }
        try {
            if ($heads !== []) {
                awaitAll($heads, new TimeoutCancellation(self::MAX_SECONDS));
            }
        } catch (UncaughtThrowable $failure) {
            throw $failure;
        } catch (CancelledException|\Error) {
            // The time is over. Or the event loop can't run, because exit() was called in a fiber.
        } finally {
            self::$isWaitOver = true;
            foreach (self::pending() as [$receiver, $logger]) {
                $receiver->abandon($logger);
            }
        }
    }

    /** @return list<array{SymfonyReceiver, ?LoggerInterface}> */
    private static function pending(): array
    {
        $pending = [];
        foreach (self::$receivers ?? [] as $receiver => [$logger]) {
            if ($receiver->isAwaitingHead()) {
                $pending[] = [$receiver, $logger];
            }
        }

        return $pending;
    }
}
