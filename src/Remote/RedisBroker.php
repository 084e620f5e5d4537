<?php

declare(strict_types=1);

namespace Spindle\Remote;

use Predis\Connection\Resource\StreamFactoryInterface;
use Revolt\EventLoop;
use Spindle\Internal\NotCopyable;
use Spindle\Remote\Internal\Redis\Address;
use Spindle\Remote\Internal\Redis\Codec;
use Spindle\Remote\Internal\Redis\EngineClient;
use Spindle\Remote\Internal\Redis\JobRequests;
use Spindle\Remote\Internal\Redis\Mailbox;
use Spindle\TlsOptions;

/**
 * Stores queues in the engine: a Redis server of version 7.0 or newer, or a Valkey server, with an append-only file.
 *
 * Needs predis/predis 3.0 or newer. All fibers share one connection of a broker object. Each mailbox (a channel for
 * messages from the engine) has a separate connection.
 *
 * A queue consists mainly of Redis hashes, and of Redis streams with a consumer group. If a hash and a stream disagree,
 * the hash is right. Each Lua script in Internal/Redis/scripts runs atomically. The file prelude.lua in that folder
 * describes the Redis keys of a queue.
 */
final class RedisBroker implements Broker
{
    use NotCopyable;

    /**
     * If the renewal of a lease has no answer after this fraction of the lease, it is sent again over a new connection.
     * The new connection then replaces the old one.
     */
    private const RENEWAL_RETRY_FRACTION = 0.125;

    /** Value that renewLease() sends instead of a larger $maxDeadLetters or $deadLetterRetention, such as INF. */
    private const UNLIMITED = 10 ** 11;

    /**
     * While unanswered reports use more bytes than this, new reports are dropped. Otherwise tasks that report faster
     * than the engine answers could fill the memory.
     */
    private const MAX_PENDING_REPORT_BYTES = 1 << 20;

    /** Estimated memory of the fiber that sends a report, in bytes. */
    private const REPORT_OVERHEAD_BYTES = 1024;

    private readonly EngineClient $engine;
    private readonly JobRequests $requests;

    private int $pendingReportBytes = 0;

    /**
     * Does not connect: the first request opens the connection.
     *
     * @param string                $address redis://user:password@host:port/database, with rediss:// in place of
     *                                       redis:// for TLS, or unix://user:password@/path/of/the/socket
     * @param TlsOptions|null       $tls     for rediss://: trusted certificates and this client's certificate; null to
     *                                       trust the certificates that the system trusts
     * @param float                 $timeout seconds to connect. A request fails if the engine has neither sent nor
     *                                       accepted bytes for this time
     *
     * @throws \ValueError when the address is malformed
     * @throws \LogicException when predis/predis is missing or older than 3.0
     */
    public function __construct(
        #[\SensitiveParameter]
        string $address,
        ?TlsOptions $tls = null,
        float $timeout = 5.0,
    ) {
        if (!interface_exists(StreamFactoryInterface::class)) {
            throw new \LogicException(
                'RedisBroker needs predis/predis 3.0 or newer, which is not installed;'
                    . ' install it: composer require predis/predis:^3.0',
            );
        }
        $this->engine = new EngineClient(Address::parse($address), $tls, $timeout);
        $this->requests = new JobRequests($this->engine);
    }

    public function durability(): Durability
    {
        $this->engine->loadScripts(); // agents call this method first, and need nearly all scripts later

        return $this->engine->settings()->durability;
    }

    public function maxFrameBytes(): int
    {
        return $this->engine->settings()->maxRequestBytes - JobRequests::ENTRY_OVERHEAD_BYTES;
    }

    public function submit(string $queue, array $jobs, int $maxJobs, string $mailbox, bool $checkIds): SubmitResult
    {
        return $this->requests->submit($queue, $jobs, $maxJobs, $mailbox, $checkIds);
    }

    public function attach(string $queue, array $ids, string $mailbox): array
    {
        $decode = static fn(string $answer): array => Codec::decodeAttachResults($answer, $ids);

        return $this->runOnIds($decode, 'attach', $queue, $ids, $mailbox);
    }

    public function cancel(string $queue, array $ids): array
    {
        return $this->sendCancellation($queue, $ids);
    }

    public function cancelAndRecord(string $queue, array $ids): array
    {
        $decode = static fn(string $answer): array => Codec::decodeStatuses($answer, $ids);

        return $this->runOnIds($decode, 'cancel-and-record', $queue, $ids);
    }

    public function cancelUnclaimed(string $queue, array $ids): array
    {
        return $this->sendCancellation($queue, $ids, 'unclaimed');
    }

    public function dropOutcomes(string $queue, array $ids): void
    {
        $this->engine->runOrSend('drop-outcomes', $queue, ...$ids);
    }

    public function openMailbox(string $mailbox, \Closure $onMessage, \Closure $onOpen): \Closure
    {
        $subscription = new Mailbox($this->engine, $mailbox, $onMessage, $onOpen);

        return $subscription->close(...);
    }

    public function renewLease(
        string $queue,
        string $owner,
        float $lease,
        bool $isNew,
        string $description,
        int $maxDeadLetters = \PHP_INT_MAX,
        float $deadLetterRetention = \INF,
    ): ?float {
        $answer = JobRequests::requireLease($owner, $this->engine->runHedged(
            $lease * self::RENEWAL_RETRY_FRACTION,
            'renew',
            $queue,
            $owner,
            (string) (int) ($lease * 1000),
            $isNew ? '1' : '0',
            $description,
            (string) min(self::UNLIMITED, $maxDeadLetters),
            (string) (int) min(self::UNLIMITED, ceil($deadLetterRetention)),
        ));
        $dueInMilliseconds = $this->engine->decode(Codec::decodeInteger(...), 'renew', $answer);

        return $dueInMilliseconds < 0 ? null : $dueInMilliseconds / 1000;
    }

    public function settleAndClaim(
        string $queue,
        string $owner,
        array $settlements,
        int $maxClaims,
        float $outcomeRetention,
        int $firstSequenceNumber = 0,
        ?int $lastStartableSequenceNumber = null,
        int $maxFrameBytes = \PHP_INT_MAX,
    ): ClaimResult {
        return $this->requests->settleAndClaim(
            $queue,
            $owner,
            $settlements,
            $maxClaims,
            $outcomeRetention,
            $firstSequenceNumber,
            $lastStartableSequenceNumber,
            $maxFrameBytes,
        );
    }

    public function claimedJobs(string $queue, string $owner, array $known, int $maxFrameBytes = \PHP_INT_MAX): array
    {
        return $this->run(
            static fn(string $answer): array => Codec::decodeDeliveries(JobRequests::requireLease($owner, $answer), 0),
            'claimed-jobs',
            $queue,
            $owner,
            Codec::encodeClaimNumbers($known),
            (string) \count($known),
            (string) $maxFrameBytes,
        );
    }

    public function putItems(
        string $queue,
        string $owner,
        string $id,
        int $claimNumber,
        int $offset,
        array $frames,
    ): ?int {
        $untakenCount = $this->run(
            static fn(string $answer): int => Codec::decodeInteger(JobRequests::requireLease($owner, $answer)),
            'put-items',
            $queue,
            $owner,
            $id,
            (string) $claimNumber,
            (string) $offset,
            ...$frames,
        );

        return $untakenCount < 0 ? null : $untakenCount;
    }

    public function takeItems(string $queue, string $id, int $offset, int $limit): array
    {
        return $this->run(Codec::decodeStrings(...), 'take-items', $queue, $id, (string) $offset, (string) $limit);
    }

    public function stopTakingItems(string $queue, string $id): void
    {
        $this->engine->runOrSend('stop-taking-items', $queue, $id);
    }

    public function report(string $queue, string $owner, string $id, int $claimNumber, string $frame): void
    {
        $isTooLarge = \strlen($frame) > $this->engine->maxKnownRequestBytes() - JobRequests::ENTRY_OVERHEAD_BYTES;
        if ($isTooLarge || $this->pendingReportBytes > self::MAX_PENDING_REPORT_BYTES) {
            return;
        }
        $this->pendingReportBytes += self::REPORT_OVERHEAD_BYTES + \strlen($frame);
        EventLoop::queue(function () use ($queue, $owner, $id, $claimNumber, $frame): void {
            try {
                $this->engine->run('report', $queue, $owner, $id, (string) $claimNumber, $frame);
            } catch (BrokerException) {
                // Reports can be lost.
            } finally {
                $this->pendingReportBytes -= self::REPORT_OVERHEAD_BYTES + \strlen($frame);
            }
        });
    }

    public function queues(): array
    {
        return $this->engine->queueNames();
    }

    public function statistics(string $queue): array
    {
        return $this->run(Codec::decodeStatistics(...), 'statistics', $queue);
    }

    public function listJobs(string $queue, JobStatus $status, int $limit, ?string $id = null): array
    {
        return $this->run(Codec::decodeDetails(...), 'list', $queue, $status->value, (string) $limit, $id ?? '');
    }

    public function status(string $queue, string $id): ?JobStatus
    {
        return JobStatus::tryFrom($this->engine->run('status', $queue, $id));
    }

    public function retryDeadLetters(string $queue, array $ids): int
    {
        return $this->runOnIds(Codec::decodeInteger(...), 'retry-dead-letters', $queue, $ids);
    }

    public function deleteDeadLetters(string $queue, array $ids): int
    {
        return $this->runOnIds(Codec::decodeInteger(...), 'delete', $queue, $ids);
    }

    public function repair(string $queue): int
    {
        $auditId = bin2hex(random_bytes(8));
        $repaired = 0;
        [$step, $cursor] = ['check', ''];
        while ($step !== 'ok') {
            $decode = Codec::decodeRepair(...);
            [$repairedNow, $step, $cursor] = $this->run($decode, 'repair', $queue, $step, $cursor, $auditId);
            $repaired += $repairedNow;
        }

        return $repaired;
    }

    public function releaseLease(string $queue, string $owner): void
    {
        $this->engine->run('release-lease', $queue, $owner);
    }

    /**
     * @param list<string> $ids
     *
     * @return list<string> as from {@see cancel()}; empty if the process is ending and awaits no answer
     */
    private function sendCancellation(string $queue, array $ids, string ...$arguments): array
    {
        $encoded = [Codec::encodeIds($ids), (string) \count($ids)];
        $answer = $this->engine->runOrSend('cancel', $queue, ...$encoded, ...$arguments);

        return $answer === null ? [] : $this->engine->decode(Codec::decodeIds(...), 'cancel', $answer);
    }

    /**
     * @template T
     *
     * @param \Closure(string): T $decode
     *
     * @return T
     */
    private function run(
        \Closure $decode,
        string $script,
        string $queue,
        #[\SensitiveParameter]
        string ...$arguments,
    ): mixed {
        return $this->engine->decode($decode, $script, $this->engine->run($script, $queue, ...$arguments));
    }

    /**
     * Runs a script whose first arguments are the encoded ids of jobs, and their number.
     *
     * @template T
     *
     * @param \Closure(string): T $decode
     * @param list<string> $ids
     *
     * @return T
     */
    private function runOnIds(
        \Closure $decode,
        string $script,
        string $queue,
        array $ids,
        #[\SensitiveParameter]
        string ...$arguments,
    ): mixed {
        return $this->run($decode, $script, $queue, Codec::encodeIds($ids), (string) \count($ids), ...$arguments);
    }
}
