<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Client;

use Psr\Log\LoggerInterface;
use Revolt\EventLoop\UncaughtThrowable;
use Spindle\Internal\FatalError;
use Spindle\Internal\Shutdown;

use function Amp\async;
use function Amp\Future\awaitAll;

/**
 * Waits at the end of the script until the heads of all responses have arrived, so that no request is lost. From PHP
 * 8.4 on, the destructors of the responses wait.
 */
final class SymfonyShutdown
{
    /** @var \WeakMap<SymfonyReceiver, array{int, ?LoggerInterface}>|null the first is the id of the creating process */
    private static ?\WeakMap $receivers = null;

    private function __construct() {}

    public static function add(SymfonyReceiver $receiver, ?LoggerInterface $logger): void
    {
        if (\PHP_VERSION_ID >= 80_400) {
            return;
        }
        if (self::$receivers === null) {
            self::$receivers = new \WeakMap();
            Shutdown::afterApplication(self::awaitHeads(...));
        }
        self::$receivers[$receiver] = [(int) getmypid(), $logger];
    }

    private static function awaitHeads(): void
    {
        if (FatalError::last() !== null) {
            return;
        }
        $heads = [];
        foreach (self::$receivers ?? [] as $receiver => [$process, $logger]) {
            if ($process === getmypid() && $receiver->isAwaitingHead()) {
                $receiver->detach($logger);
                $heads[] = async($receiver->awaitHead(...));
            }
        }
        try {
            awaitAll($heads);
        } catch (UncaughtThrowable $failure) {
            throw $failure;
        } catch (\Error) {
            // The event loop can't run, because exit() was called in a fiber.
        }
    }
}
