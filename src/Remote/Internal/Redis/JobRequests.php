<?php

declare(strict_types=1);

namespace Spindle\Remote\Internal\Redis;

use Spindle\Remote\BrokerException;
use Spindle\Remote\BrokerUnavailableException;
use Spindle\Remote\ClaimResult;
use Spindle\Remote\Job;
use Spindle\Remote\LeaseLostException;
use Spindle\Remote\PayloadTooLargeException;
use Spindle\Remote\QueueFullException;
use Spindle\Remote\Settlement;
use Spindle\Remote\SubmitResult;

/** Submits and settles jobs. Divides them into several requests if the engine does not accept a large one. */
final class JobRequests
{
    /** Maximum bytes that a job or settlement has in a request beside its frame and reason. */
    public const ENTRY_OVERHEAD_BYTES = 512;

    private const LEASE_ENDED = 'lease ended';

    public function __construct(private readonly EngineClient $engine) {}

    /**
     * Does what {@see \Spindle\Remote\Broker::submit()} says.
     *
     * @param list<Job> $jobs
     *
     * @throws QueueFullException|PayloadTooLargeException|BrokerException
     */
    public function submit(string $queue, array $jobs, int $maxJobs, string $mailbox, bool $checkIds): SubmitResult
    {
        $limit = $this->engine->settings()->maxRequestBytes - self::ENTRY_OVERHEAD_BYTES;
        $refusal = null;
        foreach ($jobs as $i => $job) {
            if (\strlen($job->frame) > $limit) {
                $refusal = PayloadTooLargeException::forEngine($job->id, \strlen($job->frame), $limit);
                $jobs = $i > 0 ? \array_slice($jobs, 0, $i) : throw $refusal;
                break;
            }
        }
        $accepted = 0;
        $conflicts = [];
        foreach ($this->parts($jobs) as $part) {
            try {
                $result = $this->submitPart($queue, $part, $maxJobs, $mailbox, $checkIds);
            } catch (QueueFullException $failure) {
                // After an exception, the caller would submit the accepted jobs again.
                $result = $accepted > 0 ? new SubmitResult(0, refusal: $failure) : throw $failure;
            }
            foreach ($result->conflicts as $index) {
                $conflicts[] = $accepted + $index;
            }
            $accepted += $result->accepted;
            if ($result->accepted < \count($part)) {
                return new SubmitResult($accepted, $conflicts, $result->refusal);
            }
        }

        return new SubmitResult($accepted, $conflicts, $refusal);
    }

    /** @param list<Job> $jobs */
    private function submitPart(
        string $queue,
        array $jobs,
        int $maxJobs,
        string $mailbox,
        bool $checkIds,
    ): SubmitResult {
        try {
            $answer = $this->engine->run(
                'submit',
                $queue,
                Codec::encodeJobs($jobs),
                (string) \count($jobs),
                (string) $maxJobs,
                $mailbox,
                $checkIds ? '1' : '0',
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
                'it did not add the jobs, because they arrived late: it had already received a newer request of this '
                    . 'process over another connection',
            );
        }

        return $this->engine->decode(
            static fn(string $answer): SubmitResult => Codec::decodeSubmitResult($answer, \count($jobs)),
            'submit',
            $answer,
        );
    }

    /**
     * Does what {@see \Spindle\Remote\Broker::settleAndClaim()} says. If an earlier part was settled and a later
     * request fails, the caller can repeat all settlements: repeated ones have no effect.
     *
     * @param list<Settlement> $settlements
     *
     * @throws LeaseLostException|BrokerException
     */
    public function settleAndClaim(
        string $queue,
        string $owner,
        array $settlements,
        int $maxClaims,
        float $outcomeRetention,
        int $firstSequenceNumber,
        ?int $lastStartableSequenceNumber,
        int $maxFrameBytes,
    ): ClaimResult {
        $parts = $this->parts($settlements);
        $last = array_pop($parts) ?? [];
        $stale = [];
        $others = [
            (string) (int) ceil($outcomeRetention),
            (string) $firstSequenceNumber,
            (string) $lastStartableSequenceNumber,
            (string) $maxFrameBytes,
        ];
        foreach ($parts as $part) {
            $stale = [...$stale, ...$this->settlePart($queue, $owner, $part, 0, ...$others)->stale];
        }
        $result = $this->settlePart($queue, $owner, $last, $maxClaims, ...$others);

        return new ClaimResult($result->deliveries, [...$stale, ...$result->stale]);
    }

    /** @param list<Settlement> $settlements */
    private function settlePart(
        string $queue,
        string $owner,
        array $settlements,
        int $maxClaims,
        string ...$others,
    ): ClaimResult {
        $answer = self::requireLease($owner, $this->engine->run(
            'settle',
            $queue,
            $owner,
            Codec::encodeSettlements($settlements),
            (string) \count($settlements),
            (string) $maxClaims,
            ...$others,
        ));

        $decode = static function (string $answer): ClaimResult {
            $at = 0;
            $stale = Codec::decodeIds($answer, $at);

            return new ClaimResult(Codec::decodeDeliveries($answer, $at), $stale);
        };

        return $this->engine->decode($decode, 'settle', $answer);
    }

    /** @throws LeaseLostException */
    public static function requireLease(string $owner, string $answer): string
    {
        return $answer === self::LEASE_ENDED ? throw LeaseLostException::of($owner) : $answer;
    }

    /**
     * @template T of Job|Settlement
     *
     * @param list<T> $entries
     *
     * @return list<list<T>> one part for each request
     */
    private function parts(array $entries): array
    {
        $limit = $this->engine->settings()->maxRequestBytes;
        [$parts, $part, $size] = [[], [], 0];
        foreach ($entries as $entry) {
            $bytes = \strlen($entry->frame) + self::ENTRY_OVERHEAD_BYTES;
            $bytes += $entry instanceof Settlement ? \strlen($entry->reason) : 0;
            if ($part !== [] && $size + $bytes > $limit) {
                $parts[] = $part;
                [$part, $size] = [[], 0];
            }
            $part[] = $entry;
            $size += $bytes;
        }

        return $part === [] ? $parts : [...$parts, $part];
    }
}
