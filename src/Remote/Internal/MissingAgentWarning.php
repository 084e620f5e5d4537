<?php

declare(strict_types=1);

namespace Spindle\Remote\Internal;

use Psr\Log\LoggerInterface;
use Spindle\Internal\OwnLoop;
use Spindle\Internal\SafeLogger;
use Spindle\Internal\WeakTimer;
use Spindle\Remote\Broker;
use Spindle\Remote\BrokerException;

/** Logs one warning if no agent (`spindle work`) serves the queue while a {@see QueueClient} awaits outcomes. */
final class MissingAgentWarning
{
    private const DELAY_SECONDS = 5.0;

    /** Seconds between two checks while agents serve the queue. */
    private const INTERVAL_SECONDS = 30.0;

    private ?string $timer = null;
    private bool $isWaiting = false;
    private bool $isLogged = false;
    private readonly int $ownerPid;
    private readonly OwnLoop $loop;

    private function __construct(private readonly LoggerInterface $logger, private readonly string $queue)
    {
        $this->ownerPid = (int) getmypid();
        $this->loop = new OwnLoop();
    }

    public function __destruct()
    {
        $this->stop();
    }

    public static function of(?LoggerInterface $logger, string $queue): ?self
    {
        return $logger === null ? null : new self(new SafeLogger($logger), $queue);
    }

    public function ofFork(): self
    {
        return new self($this->logger, $this->queue);
    }

    public function start(?Broker $broker, RemoteActivity $activity): void
    {
        if ($broker !== null && !$this->isWaiting && !$this->isLogged) {
            $this->isWaiting = true;
            $this->checkAfter(self::DELAY_SECONDS, $broker, $activity);
        }
    }

    public function stop(): void
    {
        $this->isWaiting = false;
        $this->loop->cancel($this->timer);
    }

    private function checkAfter(float $seconds, Broker $broker, RemoteActivity $activity): void
    {
        $this->loop->cancel($this->timer);
        $weak = \WeakReference::create($activity);
        $check = static fn(self $warning) => $warning->check($broker, $weak->get());
        $this->timer = WeakTimer::after($seconds, $this, $check);
    }

    private function check(Broker $broker, ?RemoteActivity $activity): void
    {
        $this->timer = null;
        if ($activity === null || $this->ownerPid !== getmypid()) {
            return;
        }
        if (!$activity->awaitsOutcomes()) {
            $this->isWaiting = false; // the next submission calls start() again

            return;
        }
        try {
            $hasAgents = ($broker->statistics($this->queue)['agents'] ?? 1) > 0;
        } catch (BrokerException) {
            $hasAgents = true; // unknown
        }
        if (!$this->isWaiting) {
            return; // the wait has ended during the request
        }
        if ($hasAgents) {
            $this->checkAfter(self::INTERVAL_SECONDS, $broker, $activity);

            return;
        }
        $this->isLogged = true;
        $this->logger->warning(
            'No agent serves the queue {queue}, so its jobs wait. Start one: spindle work --queue {queue}',
            ['queue' => $this->queue],
        );
    }
}
