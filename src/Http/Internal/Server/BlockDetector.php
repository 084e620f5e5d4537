<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Server;

use Revolt\EventLoop;

/**
 * Logs a warning when code holds the event loop for too long, with the request that it handles.
 *
 * The time of the code begins when the loop was last seen to run other code: at a turn of the timer, or when a handler
 * began or waited. So it is measured up to a quarter of the limit too long when a handler goes on after a wait.
 */
final class BlockDetector
{
    /** Turns of the timer in the time of the limit. */
    private const TURNS = 4;

    /** Nanoseconds for which code may hold the loop. Far in the future of hrtime() if there is no limit. */
    public readonly int $limit;

    /**
     * When the code that runs now has held the loop for too long, by hrtime(). While no request is open, 0: the next
     * request compares only this number, and then starts the timer. Each request sets this number, which takes more
     * time if it has a native type.
     *
     * @var int
     */
    public $dueAt;

    private ?string $timer = null;

    private readonly RequestName $requests;

    /** @param float $limit seconds; 0 or INF for no limit */
    public function __construct(float $limit, private readonly Service $service)
    {
        $isLimited = $limit > 0 && $limit !== \INF;
        $this->limit = $isLimited ? Service::nanoseconds($limit) : \PHP_INT_MAX >> 1;
        $this->dueAt = $isLimited ? 0 : \PHP_INT_MAX;
        $this->requests = new RequestName($service);
    }

    /** Handles a new request after {@see $dueAt}, before it is one of the open requests. */
    public function handleRequest(int $now): void
    {
        $this->timer === null ? $this->start() : $this->report($now, '');
    }

    /** Handles the return of a handler after {@see $dueAt}. */
    public function handleReturn(int $now, ServerExchange $exchange): void
    {
        if ($this->timer !== null) {
            $this->report($now, RequestName::route($exchange));
            $this->dueAt = $now + $this->limit;
        }
    }

    /** Handles that the current fiber is about to wait. */
    public function handleWait(): void
    {
        if ($this->timer === null) {
            return;
        }
        $now = (int) hrtime(true);
        if ($now > $this->dueAt) {
            $this->report($now, $this->requests->routeOfFiber());
        }
        $this->dueAt = $now + $this->limit;
    }

    public function stop(): void
    {
        if ($this->timer !== null) {
            EventLoop::cancel($this->timer);
            [$this->timer, $this->dueAt] = [null, 0];
        }
    }

    /** Starts the timer, which runs as long as requests are open, so that idle connections cost nothing. */
    private function start(): void
    {
        $interval = $this->limit / self::TURNS / 1e9;
        $this->timer = EventLoop::unreference(EventLoop::repeat($interval, $this->handleTurn(...)));
    }

    private function handleTurn(): void
    {
        $now = (int) hrtime(true);
        if ($now > $this->dueAt) {
            $this->report($now, '');
        }
        $this->service->hasOpenRequest() ? $this->dueAt = $now + $this->limit : $this->stop();
    }

    /** @param string $route of the request whose code held the loop; '' if it is unknown */
    private function report(int $now, string $route): void
    {
        $seconds = \sprintf('%.2f', ($now - $this->dueAt + $this->limit) / 1e9);
        [$message, $context] = $route === ''
            ? ["The event loop was blocked for {$seconds} s{requests}", ['requests' => $this->requests->openRequests()]]
            : ["The handler of {route} blocked the event loop for {$seconds} s", ['route' => $route]];
        // a logger may suspend, but the code that is interrupted here must not
        EventLoop::queue($this->service->logger->warning(...), "{$message}. Other requests had to wait", $context);
    }
}
