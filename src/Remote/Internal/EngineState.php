<?php

declare(strict_types=1);

namespace Spindle\Remote\Internal;

use Psr\Log\LoggerInterface;
use Spindle\Internal\Clock;
use Spindle\Remote\BrokerRefusedException;
use Spindle\Remote\BrokerUnavailableException;
use Spindle\Remote\Job;
use Spindle\Remote\LeaseLostException;

/** Logs the start and end of each outage of an agent's engine (Redis or Valkey). All leases share this object. */
final class EngineState
{
    private ?float $unavailableSince = null;

    /** @var array<string, true> reasons logged in this outage; emptied at its end, by a lost lease, or by a refusal */
    private array $loggedReasons = [];

    private ?int $loggedLimit = null;

    public function __construct(private readonly LoggerInterface $logger, private readonly string $queue) {}

    public function isAvailable(): bool
    {
        return $this->unavailableSince === null;
    }

    public function unavailable(BrokerUnavailableException $failure): void
    {
        $this->unavailableSince ??= Clock::now();
        $reason = $failure->getMessage();
        if (!isset($this->loggedReasons[$reason])) {
            $this->loggedReasons[$reason] = true;
            $this->logger->warning($reason);
        }
    }

    /** Logs the limit for results that {@see AgentRun} has lowered, unless it equals the limit that was logged last. */
    public function resultsLimited(int $bytes): void
    {
        if ($bytes !== $this->loggedLimit) {
            $this->loggedLimit = $bytes;
            $this->logger->warning(
                'Results are limited to {bytes} bytes, because the engine accepts no larger values '
                    . '(proto-max-bulk-len, client-query-buffer-limit)',
                ['bytes' => $bytes],
            );
        }
    }

    /** Logs that the engine does not store an item, unless an outage was logged already. */
    public function itemRefused(string $id, BrokerUnavailableException $failure): void
    {
        if ($this->unavailableSince === null) {
            $this->logger->warning(
                'An item of the job {job} could not be stored, and the agent retries: {reason}',
                ['job' => Job::givenId($id), 'reason' => $failure->getMessage()],
            );
        }
    }

    public function failed(BrokerUnavailableException|LeaseLostException|BrokerRefusedException $failure): void
    {
        if ($failure instanceof BrokerUnavailableException) {
            $this->unavailable($failure);

            return;
        }
        $this->loggedReasons = [];
        $failure instanceof LeaseLostException
            ? $this->logger->warning($failure->getMessage())
            : $this->logger->error($failure->getMessage());
    }

    public function available(): void
    {
        if ($this->unavailableSince === null) {
            return;
        }
        $seconds = round(Clock::now() - $this->unavailableSince, 1);
        $this->unavailableSince = null;
        $this->loggedReasons = [];
        $this->logger->info(
            'The engine is available again after {seconds} s (queue {queue})',
            ['seconds' => $seconds, 'queue' => $this->queue],
        );
    }
}
