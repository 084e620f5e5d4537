<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Remote;

use PHPUnit\Framework\Attributes\After;
use Spindle\Remote\Broker;
use Spindle\Remote\Delivery;
use Spindle\Remote\Job;
use Spindle\Remote\JobStatus;
use Spindle\Remote\MailboxMessage;
use Spindle\Remote\Settlement;
use Spindle\Remote\SettlementKind;
use Spindle\Tests\CatchesThrown;
use Spindle\Tests\Eventually;
use Spindle\Tests\TidyTestCase;

/** The guarantees of every broker, whatever its engine. */
abstract class BrokerContract extends TidyTestCase
{
    use CatchesThrown;

    use Contract\AcceptsJobs;
    use Contract\ClaimsJobs;
    use Contract\SettlesJobs;
    use Contract\SeparatesKeys;
    use Contract\DelaysJobs;
    use Contract\CancelsJobs;
    use Contract\KeepsLeases;
    use Contract\SendsMessages;
    use Contract\CarriesItems;
    use Contract\ReportsStates;

    /** Leases in seconds: of an agent that lives for the whole test, and of one that is soon lost. */
    protected const LONG = 60.0;
    protected const SHORT = 0.2;

    private const RETENTION = 600.0;

    private ?Broker $broker = null;

    /** @var list<\Closure(): void> */
    private array $mailboxes = [];

    private string $queue = '';

    /** Returns another connection to the same engine. */
    abstract protected function connect(): Broker;

    #[After]
    protected function disconnect(): void
    {
        foreach ($this->mailboxes as $close) {
            $close();
        }
        $this->mailboxes = [];
        $this->broker = null;
        $this->queue = '';
    }

    protected function broker(): Broker
    {
        return $this->broker ??= $this->connect();
    }

    protected function queue(): string
    {
        return $this->queue !== '' ? $this->queue : $this->queue = 'test-' . bin2hex(random_bytes(6));
    }

    /** Submits jobs for the mailbox "client" to a queue with a limit of 1,000, and asserts that they are accepted. */
    protected function submit(string|Job ...$jobs): void
    {
        $jobs = array_map(
            static fn(string|Job $job): Job => \is_string($job) ? new Job($job, "do {$job}") : $job,
            array_values($jobs),
        );

        self::assertSame(
            \count($jobs),
            $this->broker()->submit($this->queue(), $jobs, 1000, 'client', false)->accepted,
        );
    }

    /** Takes a lease for a new agent. */
    protected function join(string $owner, float $lease = self::LONG): string
    {
        $this->broker()->renewLease($this->queue(), $owner, $lease, true, '{}');

        return $owner;
    }

    /** @return list<Delivery> */
    protected function claim(string $owner, int $want = 10): array
    {
        return $this->broker()->settleAndClaim($this->queue(), $owner, [], $want, self::RETENTION)->deliveries;
    }

    /** Claims one job, and asserts that it is the only one. */
    protected function claimOne(string $owner): Delivery
    {
        $deliveries = $this->claim($owner);
        self::assertCount(1, $deliveries);

        return $deliveries[0];
    }

    /** Claims until a job is available, while leases of other agents end and delays pass. */
    protected function claimSoon(string $owner): Delivery
    {
        $deliveries = [];
        Eventually::holds(function () use ($owner, &$deliveries): bool {
            $this->broker()->renewLease($this->queue(), $owner, self::LONG, false, '{}');
            $deliveries = $this->claim($owner);

            return $deliveries !== [];
        }, 'a job may be claimed');
        self::assertCount(1, $deliveries);

        return $deliveries[0];
    }

    /** @return list<string> ids of settlements that did not count */
    protected function settle(string $owner, Settlement ...$settlements): array
    {
        $settlements = array_values($settlements);

        return $this->broker()->settleAndClaim($this->queue(), $owner, $settlements, 0, self::RETENTION)->stale;
    }

    /** Settles a job, and asserts that the settlement counts. */
    protected function end(
        string $owner,
        Delivery $delivery,
        SettlementKind $kind = SettlementKind::Done,
        string $frame = 'outcome',
        string $why = '{}',
    ): void {
        self::assertSame(
            [],
            $this->settle(
                $owner,
                new Settlement($delivery->id, $delivery->claimNumber, $kind, frame: $frame, reason: $why),
            ),
        );
    }

    /** Gives a job back, or requests a retry. */
    protected function giveBack(
        string $owner,
        Delivery $delivery,
        SettlementKind $kind = SettlementKind::Release,
        int $crashes = 0,
        int $fails = 0,
        float $delay = 0.0,
    ): void {
        self::assertSame(
            [],
            $this->settle(
                $owner,
                new Settlement($delivery->id, $delivery->claimNumber, $kind, $crashes, $fails, $delay),
            ),
        );
    }

    /** Returns the outcome of a job; null while it has none, and false when it is unknown. */
    protected function outcome(string $id): string|false|null
    {
        $state = $this->broker()->attach($this->queue(), [$id], 'client')[$id];

        return $state->known ? $state->outcome : false;
    }

    /** @return list<string> */
    protected function listed(JobStatus $status): array
    {
        return array_map(strval(...), array_keys($this->broker()->listJobs($this->queue(), $status, 1000)));
    }

    protected function statistic(string $name): int
    {
        return $this->broker()->statistics($this->queue())[$name];
    }

    /** @return list<int> */
    protected function statistics(string ...$names): array
    {
        $statistics = $this->broker()->statistics($this->queue());

        return array_map(static fn(string $name): int => $statistics[$name], array_values($names));
    }

    /** Opens a mailbox, and waits until it is open. */
    protected function post(string $mailbox = 'client'): ReceivedMessages
    {
        $received = new ReceivedMessages();
        $isOpen = false;
        $this->mailboxes[] = $this->broker()->openMailbox(
            $mailbox,
            static fn(MailboxMessage $message) => $received->add($message),
            static function () use (&$isOpen): void {
                $isOpen = true;
            },
        );
        Eventually::holds(static function () use (&$isOpen): bool {
            return $isOpen;
        }, "the mailbox {$mailbox} is open");

        return $received;
    }

    /**
     * @param list<Delivery> $deliveries
     *
     * @return list<string>
     */
    protected static function ids(array $deliveries): array
    {
        return array_map(static fn(Delivery $delivery): string => $delivery->id, $deliveries);
    }
}
