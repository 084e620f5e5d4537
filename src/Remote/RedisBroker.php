<?php

declare(strict_types=1);

namespace Spindle\Remote;

use Amp\Socket\ClientTlsContext;
use Revolt\EventLoop;
use Spindle\Remote\Internal\Redis\Address;
use Spindle\Remote\Internal\Redis\Codec;
use Spindle\Remote\Internal\Redis\Engine;
use Spindle\Remote\Internal\Redis\EngineError;
use Spindle\Remote\Internal\Redis\Mailbox;

/**
 * Queues in Redis 7 or newer, or in Valkey, with an append-only file. Needs predis/predis and amphp/socket.
 *
 * Each queue has streams with a consumer group, and hashes that are authoritative. The scripts in
 * Internal/Redis/scripts change them atomically. All fibers share one connection; each mailbox has its own.
 */
final class RedisBroker implements Broker
{
    /** Fraction of a lease after which an unanswered renewal is sent on another connection. */
    private const RENEWAL_RETRY_FRACTION = 0.125;

    /** No limit, as a number of seconds or dead letters. */
    private const UNLIMITED = 10 ** 11;

    /** Largest size of unsent reports in bytes. Further reports are lost, because a task may outpace the engine. */
    private const MAX_UNSENT_REPORT_BYTES = 1 << 20;

    /** Memory overhead of an unsent report in bytes, because each waits in a fiber. */
    private const REPORT_OVERHEAD_BYTES = 1024;

    private readonly Engine $engine;

    /** Bytes of unsent reports. */
    private int $reports = 0;

    /**
     * Connects at the first use.
     *
     * @param string                $address redis://user:password@host:port/database, rediss:// for TLS, or
     *                                       unix:///path
     * @param ClientTlsContext|null $tls     trusted certificates and own certificate, for rediss://
     * @param float                 $timeout seconds to connect, and to wait for an answer without progress
     *
     * @throws \ValueError
     */
    public function __construct(
        #[\SensitiveParameter]
        string $address,
        ?ClientTlsContext $tls = null,
        float $timeout = 5.0,
    ) {
        $this->engine = new Engine(Address::parse($address), $tls, $timeout);
    }

    /** Forbids copies, which would share the original's resources. */
    private function __clone() {}

    public function tier(): Tier
    {
        return $this->engine->tier();
    }

    public function submit(string $queue, array $jobs, int $backlog, string $mailbox, bool $maybeKnown): SubmitResult
    {
        $connection = (string) $this->engine->connectionNumber();
        try {
            $answer = $this->engine->run(
                'submit',
                $queue,
                Codec::jobs($jobs),
                (string) \count($jobs),
                (string) $backlog,
                $mailbox,
                $maybeKnown ? '1' : '0',
                $connection,
            );
        } catch (BrokerUnavailableException $failure) {
            $error = $failure->getPrevious();

            throw $error instanceof EngineError && $error->kind === 'OOM'
                ? QueueFullException::engine($queue, $error->explanation(), $failure)
                : $failure;
        }

        if ($answer === 'late') {
            throw BrokerUnavailableException::at(
                (string) $this->engine->address,
                'a newer connection of this process was opened meanwhile',
            );
        }
        $numbers = array_map(intval(...), explode(' ', $answer));

        return new SubmitResult($numbers[0], \array_slice($numbers, 1));
    }

    public function states(string $queue, array $ids, string $mailbox): array
    {
        return Codec::states(
            $this->engine->run('states', $queue, Codec::ids($ids), (string) \count($ids), $mailbox),
            $ids,
        );
    }

    public function withdraw(string $queue, array $ids): array
    {
        $at = 0;

        return Codec::readIds($this->engine->run('withdraw', $queue, Codec::ids($ids), (string) \count($ids)), $at);
    }

    public function withdrawUnclaimed(string $queue, array $ids): array
    {
        $at = 0;

        return Codec::readIds(
            $this->engine->run('withdraw', $queue, Codec::ids($ids), (string) \count($ids), 'unclaimed'),
            $at,
        );
    }

    public function dropOutcomes(string $queue, array $ids): void
    {
        $this->engine->run('drop-outcomes', $queue, ...$ids);
    }

    public function openMailbox(string $mailbox, \Closure $onMessage, \Closure $onOpen): \Closure
    {
        $box = new Mailbox($this->engine, $mailbox, $onMessage, $onOpen);

        return $box->close(...);
    }

    public function renew(
        string $queue,
        string $owner,
        float $lease,
        bool $isNew,
        string $description,
        int $maxDead = \PHP_INT_MAX,
        float $deadRetention = \INF,
    ): ?float {
        $answer = $this->engine->runHedged(
            $lease * self::RENEWAL_RETRY_FRACTION,
            'renew',
            $queue,
            $owner,
            (string) (int) ($lease * 1000),
            $isNew ? '1' : '0',
            $description,
            (string) min(self::UNLIMITED, $maxDead),
            (string) (int) min(self::UNLIMITED, ceil($deadRetention)),
        );
        if ($answer === 'gone') {
            throw LeaseLostException::of($owner);
        }
        $due = (int) $answer;

        return $due < 0 ? null : $due / 1000;
    }

    public function settle(
        string $queue,
        string $owner,
        array $settlements,
        int $maxClaims,
        float $retention,
        int $firstNumber = 0,
        ?int $lastBegun = null,
        int $maxFrame = \PHP_INT_MAX,
    ): Claim {
        $answer = $this->engine->run(
            'settle',
            $queue,
            $owner,
            Codec::settlements($settlements),
            (string) \count($settlements),
            (string) $maxClaims,
            (string) (int) ceil($retention),
            (string) $firstNumber,
            (string) $lastBegun,
            (string) $maxFrame,
        );
        if ($answer === 'gone') {
            throw LeaseLostException::of($owner);
        }
        $at = 0;
        $stale = Codec::readIds($answer, $at);

        return new Claim(Codec::deliveries($answer, $at), $stale);
    }

    public function claimedJobs(
        string $queue,
        string $owner,
        array $known,
        int $maxFrame = \PHP_INT_MAX,
    ): array {
        $answer = $this->engine->run(
            'claimed-jobs',
            $queue,
            $owner,
            Codec::claims($known),
            (string) \count($known),
            (string) $maxFrame,
        );

        return $answer === 'gone' ? throw LeaseLostException::of($owner) : Codec::deliveries($answer, 0);
    }

    public function putItems(string $queue, string $owner, string $id, int $number, int $offset, array $frames): ?int
    {
        $answer = $this->engine->run('put-items', $queue, $owner, $id, (string) $number, (string) $offset, ...$frames);
        if ($answer === 'gone') {
            throw LeaseLostException::of($owner);
        }
        $untaken = (int) $answer;

        return $untaken < 0 ? null : $untaken;
    }

    public function takeItems(string $queue, string $id, int $offset, int $limit): array
    {
        return Codec::strings($this->engine->run('take-items', $queue, $id, (string) $offset, (string) $limit));
    }

    public function leaveItems(string $queue, string $id): void
    {
        $this->engine->run('leave-items', $queue, $id);
    }

    public function report(string $queue, string $owner, string $id, int $number, string $frame): void
    {
        if ($this->reports > self::MAX_UNSENT_REPORT_BYTES) {
            return;
        }
        $this->reports += self::REPORT_OVERHEAD_BYTES + \strlen($frame);
        EventLoop::queue(function () use ($queue, $owner, $id, $number, $frame): void {
            try {
                $this->engine->run('report', $queue, $owner, $id, (string) $number, $frame);
            } catch (BrokerException) {
                // The report is lost.
            } finally {
                $this->reports -= self::REPORT_OVERHEAD_BYTES + \strlen($frame);
            }
        });
    }

    public function statistics(string $queue): array
    {
        $statistics = [];
        foreach (explode("\n", $this->engine->run('statistics', $queue)) as $line) {
            [$name, $value] = explode(' ', $line);
            $statistics[$name] = (int) $value;
        }

        return $statistics;
    }

    public function list(string $queue, JobStatus $status, int $limit): array
    {
        return Codec::details($this->engine->run('list', $queue, $status->value, (string) $limit));
    }

    public function status(string $queue, string $id): ?JobStatus
    {
        return JobStatus::tryFrom($this->engine->run('status', $queue, $id));
    }

    public function revive(string $queue, array $ids): int
    {
        return (int) $this->engine->run('revive', $queue, Codec::ids($ids), (string) \count($ids));
    }

    public function delete(string $queue, array $ids): int
    {
        return (int) $this->engine->run('delete', $queue, Codec::ids($ids), (string) \count($ids));
    }

    public function repair(string $queue): int
    {
        $auditor = bin2hex(random_bytes(8));
        $repaired = 0;
        [$step, $cursor] = ['check', ''];
        while ($step !== 'ok') {
            [$more, $step, $cursor] = [
                ...explode(' ', $this->engine->run('repair', $queue, $step, $cursor, $auditor), 3),
                '',
            ];
            $repaired += (int) $more;
        }

        return $repaired;
    }

    public function leave(string $queue, string $owner): void
    {
        $this->engine->run('leave', $queue, $owner);
    }
}
