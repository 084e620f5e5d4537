<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Process;

use Revolt\EventLoop\CallbackType;
use Revolt\EventLoop\Driver;
use Revolt\EventLoop\Suspension;
use Spindle\Http\Internal\Server\BlockDetector;
use Spindle\Internal\OutputBuffers;

/**
 * Delegates to another event loop driver. While a fiber waits, sets its output buffers aside, so that other fibers do
 * not print into them. Informs the server's {@see BlockDetector} when a fiber is about to wait.
 */
final class FiberOutputDriver implements Driver
{
    public ?BlockDetector $blockDetector = null;

    public function __construct(private readonly Driver $driver) {}

    /**
     * @return Suspension<mixed>
     *
     * @throws \LogicException when the fiber has a buffer that can't be set aside
     */
    public function getSuspension(): Suspension
    {
        $this->blockDetector?->handleWait();
        if (OutputBuffers::$sharedLevel === null || ob_get_level() <= OutputBuffers::$sharedLevel) {
            return $this->driver->getSuspension();
        }
        OutputBuffers::check();

        return new FiberOutputSuspension($this->driver->getSuspension());
    }

    public function run(): void
    {
        $this->driver->run();
    }

    public function stop(): void
    {
        $this->driver->stop();
    }

    public function isRunning(): bool
    {
        return $this->driver->isRunning();
    }

    public function queue(\Closure $closure, mixed ...$args): void
    {
        $this->driver->queue($closure, ...$args);
    }

    public function defer(\Closure $closure): string
    {
        return $this->driver->defer($closure);
    }

    public function delay(float $delay, \Closure $closure): string
    {
        return $this->driver->delay($delay, $closure);
    }

    public function repeat(float $interval, \Closure $closure): string
    {
        return $this->driver->repeat($interval, $closure);
    }

    public function onReadable(mixed $stream, \Closure $closure): string
    {
        return $this->driver->onReadable($stream, $closure);
    }

    public function onWritable(mixed $stream, \Closure $closure): string
    {
        return $this->driver->onWritable($stream, $closure);
    }

    public function onSignal(int $signal, \Closure $closure): string
    {
        return $this->driver->onSignal($signal, $closure);
    }

    public function enable(string $callbackId): string
    {
        return $this->driver->enable($callbackId);
    }

    public function cancel(string $callbackId): void
    {
        $this->driver->cancel($callbackId);
    }

    public function disable(string $callbackId): string
    {
        return $this->driver->disable($callbackId);
    }

    public function reference(string $callbackId): string
    {
        return $this->driver->reference($callbackId);
    }

    public function unreference(string $callbackId): string
    {
        return $this->driver->unreference($callbackId);
    }

    public function setErrorHandler(?\Closure $errorHandler): void
    {
        $this->driver->setErrorHandler($errorHandler);
    }

    public function getErrorHandler(): ?\Closure
    {
        return $this->driver->getErrorHandler();
    }

    public function getHandle(): mixed
    {
        return $this->driver->getHandle();
    }

    public function getIdentifiers(): array
    {
        return $this->driver->getIdentifiers();
    }

    public function getType(string $callbackId): CallbackType
    {
        return $this->driver->getType($callbackId);
    }

    public function isEnabled(string $callbackId): bool
    {
        return $this->driver->isEnabled($callbackId);
    }

    public function isReferenced(string $callbackId): bool
    {
        return $this->driver->isReferenced($callbackId);
    }

    /** @return array<mixed> */
    public function __debugInfo(): array
    {
        return $this->driver->__debugInfo();
    }
}
