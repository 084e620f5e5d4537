<?php

declare(strict_types=1);

namespace Spindle\Worker\Internal\Process;

use Amp\Future\UnhandledFutureError;
use Revolt\EventLoop;
use Revolt\EventLoop\CallbackType;
use Revolt\EventLoop\Driver;
use Revolt\EventLoop\Internal\AbstractDriver;
use Revolt\EventLoop\Internal\DriverCallback;

/**
 * Removes callbacks that a task leaves in the event loop, so that they do not make the next task fail. Cancels only
 * timers and deferred callbacks that would keep the loop running. Unreferenced callbacks stay, because libraries may
 * need them, for example for open connections. Spindle's own timers stay, because the next tasks can use the same
 * objects, such as a pool. Runs queued calls, for example of `Amp\async()`, until each call has ended or waits.
 */
final class LoopCallbacks
{
    /** Largest number of loop turns after one task. Without a limit, a callback could queue itself again forever. */
    private const MAX_TURNS = 100;

    private Driver $driver;

    /** @var \SplQueue<mixed>|null callbacks that the loop runs next; null if the driver does not have this queue */
    private ?\SplQueue $queue = null;

    /** @var array<string> identifiers of the callbacks that stay */
    private array $known = [];

    /** Reference to the driver's $nextId, the identifier of the next callback; null if the driver has no $nextId. */
    private ?string $nextId = null;

    private ?string $knownNextId = null;

    private function __construct()
    {
        $this->useDriver();
    }

    /** @param bool $isBeforeTasks whether no task has run yet; if so, all present callbacks stay */
    public static function find(bool $isBeforeTasks): ?self
    {
        if (!class_exists(EventLoop::class, false)) {
            return null;
        }
        $callbacks = new self();
        if ($isBeforeTasks) {
            $callbacks->rememberKnown();
        }

        return $callbacks;
    }

    /**
     * Cancels timers and runs queued calls that the last task has left. A worker that has loaded Revolt calls this
     * method after each task. To list all identifiers is slow, so this method first checks $nextId and $queue.
     */
    public function removeLeftovers(): void
    {
        $isUnchanged = $this->nextId === $this->knownNextId
            && ($this->nextId !== null || EventLoop::getIdentifiers() === $this->known)
            && $this->queue?->isEmpty() !== false;
        if (EventLoop::getDriver() !== $this->driver) {
            $this->useDriver();
        } elseif ($isUnchanged) {
            return;
        }
        for ($turn = 0; $turn < self::MAX_TURNS; ++$turn) {
            if ($this->queue?->isEmpty() === false) {
                $this->runLoop();
            } elseif (!$this->cancelTimers()) {
                break;
            }
        }
        $this->rememberKnown();
    }

    private function rememberKnown(): void
    {
        $this->known = $this->driver->getIdentifiers();
        $this->knownNextId = $this->nextId;
    }

    private function useDriver(): void
    {
        $this->driver = EventLoop::getDriver();
        $this->known = [];
        $queue = self::property($this->driver, 'microtaskQueue');
        $this->queue = $queue instanceof \SplQueue ? $queue : null;
        unset($this->nextId); // otherwise, an assignment would change the property of the previous driver
        $nextId = &self::property($this->driver, 'nextId');
        if (\is_string($nextId)) {
            $this->nextId = &$nextId;
        } else {
            $this->nextId = null;
        }
        $this->knownNextId = null;
    }

    /** @return mixed reference to a private property of Revolt's driver; null if there is no such property */
    private static function &property(Driver $driver, string $name): mixed
    {
        $none = null;
        if (!$driver instanceof AbstractDriver || !property_exists(AbstractDriver::class, $name)) {
            return $none;
        }
        $read = \Closure::bind(static function &(AbstractDriver $driver) use ($name): mixed {
            return $driver->{$name}; // @phpstan-ignore property.dynamicName (a private property)
        }, null, AbstractDriver::class);

        return $read($driver);
    }

    /** @return bool whether timers were cancelled. If so, `finally` blocks of their fibers may have set new timers */
    private function cancelTimers(): bool
    {
        $left = array_diff($this->driver->getIdentifiers(), $this->known);
        $ids = array_filter($left, $this->isLeftTimer(...));
        if ($ids === []) {
            return false;
        }
        try {
            array_map($this->driver->cancel(...), $ids);
            // Destroys the fibers that waited for the timers. These fibers are in reference cycles, so otherwise PHP
            // would destroy them during another task.
            gc_collect_cycles();
        } catch (\Throwable $thrown) {
            self::report($thrown);
        }

        return true;
    }

    private function isLeftTimer(string $id): bool
    {
        $isTimer = match ($this->driver->getType($id)) {
            CallbackType::Defer, CallbackType::Delay, CallbackType::Repeat => true,
            default => false,
        };

        return $isTimer
            && $this->driver->isEnabled($id)
            && $this->driver->isReferenced($id)
            && !$this->isOfSpindle($id);
    }

    private function isOfSpindle(string $id): bool
    {
        $callbacks = self::property($this->driver, 'callbacks');
        $callback = \is_array($callbacks) ? $callbacks[$id] ?? null : null;

        return $callback instanceof DriverCallback
            && str_starts_with(
                (string) (new \ReflectionFunction($callback->closure))->getFileName(),
                \dirname(__DIR__, 3) . \DIRECTORY_SEPARATOR,
            );
    }

    /** Runs one turn of the loop. If the loop has no error handler, {@see report()} gets exceptions of callbacks. */
    private function runLoop(): void
    {
        $handler = $this->driver->getErrorHandler();
        $this->driver->setErrorHandler($handler ?? self::report(...));
        $suspension = $this->driver->getSuspension();
        $turn = $this->driver->defer(static fn() => $suspension->resume());
        try {
            $suspension->suspend();
        } catch (\Throwable $broken) { // the loop cannot run, but the worker continues
            self::report($broken);
        } finally {
            $this->driver->cancel($turn);
            $this->driver->setErrorHandler($handler);
        }
    }

    private static function report(\Throwable $thrown): void
    {
        $thrown = $thrown instanceof UnhandledFutureError ? $thrown->getPrevious() ?? $thrown : $thrown;
        error_log(
            'A callback that a task left in the event loop threw ' . $thrown::class
                . ": {$thrown->getMessage()} in {$thrown->getFile()}:{$thrown->getLine()}",
        );
    }
}
