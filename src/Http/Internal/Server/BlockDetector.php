<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Server;

use Revolt\EventLoop;
use Spindle\Http\BackgroundWork;

/**
 * Logs a warning when code runs for too long without returning to the event loop. The warning names the request.
 *
 * A measurement begins when a handler starts, and each time that a timer runs. In worker processes, a measurement also
 * begins when a fiber begins to wait. No measurement begins at the end of a wait. So the measurement of code after a
 * wait may have begun too early: by at most a quarter of the limit, which is the interval of the timer.
 */
final class BlockDetector
{
    /** The timer runs this number of times within the limit. */
    private const TURNS = 4;

    /** Nanoseconds for which code may block the event loop. Without a limit, the number is larger than any duration. */
    public readonly int $limit;

    /**
     * Time by hrtime(). Code that still runs at this time has blocked the event loop for too long. While no request is
     * open, the time is 0, so that the next request calls {@see handleRequest()}, which starts the timer. There is no
     * native type, because each request sets this property, and checking a type takes time.
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

    /** Starts the timer, or reports that earlier code blocked the loop. Called when a request begins after $dueAt. */
    public function handleRequest(int $now): void
    {
        $this->timer === null ? $this->start() : $this->report($now, null);
    }

    /** Reports that a handler blocked the loop. Called when the handler has returned after {@see $dueAt}. */
    public function handleReturn(int $now, ServerExchange $exchange): void
    {
        if ($this->timer !== null) {
            $this->report($now, $exchange);
            $this->dueAt = $now + $this->limit;
        }
    }

    /** Ends the measurement of code: before a fiber waits, and before and after a function of BackgroundWork runs. */
    public function handleWait(): void
    {
        $this->service->killIfForked(); // before the event loop resumes handlers of the parent process
        if ($this->timer === null) {
            return;
        }
        $now = (int) hrtime(true);
        if ($now > $this->dueAt) {
            $this->report($now, $this->requests->ofFiber());
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

    /** Starts the timer. The timer runs only while there is work, so idle connections cost no CPU time. */
    private function start(): void
    {
        $interval = $this->limit / self::TURNS / 1e9;
        $this->timer = EventLoop::unreference(EventLoop::repeat($interval, OwnCallback::of($this->handleTurn(...))));
    }

    /** Ends the current measurement. Stops the timer if neither a request is open nor BackgroundWork runs. */
    public function handleTurn(): void
    {
        if ($this->timer === null) {
            return;
        }
        $now = (int) hrtime(true);
        if ($now > $this->dueAt) {
            $this->report($now, null);
        }
        $isBusy = $this->service->hasOpenRequest() || BackgroundWork::running() > 0;
        $isBusy ? $this->dueAt = $now + $this->limit : $this->stop();
    }

    /** @param ServerExchange|null $exchange the request whose code blocked the event loop; null if it is unknown */
    private function report(int $now, ?ServerExchange $exchange): void
    {
        $seconds = \sprintf('%.2F', ($now - $this->dueAt + $this->limit) / 1e9);
        [$message, $context] = match (true) {
            $exchange !== null => [
                "The handler of {route} blocked the event loop for {$seconds} s",
                ['route' => RequestName::route($exchange)] + $exchange->logFields(),
            ],
            BackgroundWork::isCurrent() => ["A function of BackgroundWork blocked the event loop for {$seconds} s", []],
            default => [
                "The event loop was blocked for {$seconds} s{requests}",
                ['requests' => $this->requests->openRequests()],
            ],
        };
        // queued, because a logger may suspend, and the caller of this method must not be suspended
        EventLoop::queue($this->service->logger->warning(...), "{$message}. Other requests had to wait", $context);
    }
}
